import Foundation
import TambourFraming
import TambourProtocol
import TambourTesting
import Testing

@testable import tambour_spec

/// Tests the output of `tambour-spec decode`.
@Suite("Packets as text")
struct DecodeTests {
    private static func decode(
        _ bytes: [UInt8],
        secrets: Bool = false,
        inPiecesOf piece: Int = 1_000_000
    ) throws -> (lines: [String], failures: [PacketText.Failure]) {
        var text = PacketText(specification: try Repository.specification())
        text.showsSecrets = secrets
        var lines: [String] = []
        var failures: [PacketText.Failure] = []
        var packets = PacketStream(
            text,
            line: { lines.append($0) },
            failure: { failures.append($0) }
        )
        for begin in stride(from: 0, to: bytes.count, by: piece) {
            packets.take(Array(bytes[begin...].prefix(piece)))
        }
        packets.end()
        return (lines, failures)
    }

    private static func decode(hex: String) throws -> (
        lines: [String], failures: [PacketText.Failure]
    ) {
        try decode(try bytes(hex))
    }

    /// - Parameter piece: The number of characters that the reader gets at once.
    private static func bytes(_ text: String, inPiecesOf piece: Int = 1_000_000) throws(HexText
        .Failure)
        -> [UInt8]
    {
        var digits = HexText()
        var bytes: [UInt8] = []
        let characters = Array(text.utf8)
        for begin in stride(from: 0, to: characters.count, by: piece) {
            try digits.read(characters[begin...].prefix(piece), into: &bytes)
        }
        try digits.end()
        return bytes
    }

    // MARK: Valid packets

    @Test("say of a number that is none just that", arguments: ["7ff8", "fff8", "fffc", "7ff4"])
    func notANumber(head: String) throws {
        let lines = try Self.decode(
            hex: "0a0000010001 00000013 81 a8 6c61746974756465 cb \(head)000000000001"
        ).lines
        #expect(lines.contains { $0.contains("latitude: nan") }, "\(lines)")
    }

    @Test("show header, names and values, and mark what the specification does not know")
    func request() throws {
        let (lines, failures) = try Self.decode(
            hex: """
                0a00001700400000005e 84 a6636861744964 03 a46d6f6f64 a3617765 a7 6d657373616765 84
                a3636964 cf0000019871c1e7f0 a474657874 a6 6869 0a 22 07 5c a8 656c656d656e7473
                91 82 a474797065 a5 48454c4c4f a466726f6d c3 a4 74696d65 01 a6 6e6f74696679 01
                """
        )
        #expect(failures.isEmpty)
        #expect(
            lines == [
                "offset 0: MSG_SEND request, seq 23",
                "  ver 10, cmd 0 (request or push), seq 23, opcode 64 (MSG_SEND), flags 0 (plain), length 94",
                "  chatId: 3",
                "  mood: \"awe\"  # unknown key",
                "  message: 4 keys",
                "    cid: 1754255190000",
                "    text: \"hi\\n\\\"\\u0007\\\\\"",
                "    elements: 1 item",
                "      0: 2 keys",
                "        type: \"HELLO\"",
                "        from: true  # expected an integer, found a boolean",
                "    time: 1  # unknown key",
                "  notify: 1  # expected a boolean, found an integer",
            ]
        )
    }

    @Test("quote a key that would be misread")
    func oddKeys() throws {
        let (lines, _) = try Self.decode(
            hex: "0a000017000100000014 85 a0 01 a220 61 02 a2 61 20 03 a3 61 3a 20 04 a2 61 3a 05"
        )
        #expect(
            lines.dropFirst(2).map { $0.replacing("  # unknown key", with: "") }
                == ["  \"\": 1", "  \" a\": 2", "  \"a \": 3", "  \"a: \": 4", "  a:: 5"]
        )
    }

    @Test("show errors with what they mean")
    func error() throws {
        let (lines, failures) = try Self.decode(
            hex:
                "0a03001700400000002d82a56572726f72ae636861742e6e6f742e666f756e64a76d657373616765ae43686174206e6f7420666f756e64"
        )
        #expect(failures.isEmpty)
        let error = try #require(
            Repository.specification().errors.first { $0.code == "chat.not.found" }
        )
        #expect(
            lines == [
                "offset 0: MSG_SEND error, seq 23",
                "  ver 10, cmd 3 (error), seq 23, opcode 64 (MSG_SEND), flags 0 (plain), length 45",
                "  error: \"chat.not.found\"",
                "  message: \"Chat not found\"",
                "  # chat.not.found (soft, retry never): \(error.when)",
            ]
        )
    }

    @Test("find nothing to mark in any example, and show every value of it")
    func examples() throws {
        let specimens = try Specimen.all(in: Repository.specification()).filter {
            $0.problem == nil
        }
        for specimen in specimens + specimens.filter({ $0.wireLength > 0 }).map({ $0.compressed() })
        {
            let (lines, failures) = try Self.decode(specimen.packet, secrets: true)
            #expect(failures.isEmpty, "\(specimen.name)")
            let marks = lines.filter { $0.contains("  # ") && !$0.hasSuffix("# unknown key") }
            #expect(marks.count == (specimen.role == .error ? 1 : 0), "\(specimen.name): \(marks)")
            #expect(
                lines.first
                    == "offset 0: \(specimen.opcode.name) \(specimen.role.rawValue), seq \(specimen.sequence)"
            )
            for value in Self.scalars(specimen.value) {
                #expect(
                    lines.contains { $0.contains(": \(value)") },
                    "\(specimen.name) lacks \(value)"
                )
            }
        }
    }

    /// Returns each scalar of a value in the form that the output must have.
    private static func scalars(_ node: WireNode?) -> [String] {
        switch node {
        case .map(let pairs)?: pairs.flatMap { scalars($0.value) }
        case .array(let items)?: items.flatMap { scalars($0) }
        case .string(let text)?: ["\"\(PayloadText.escaped(text))\""]
        case .int(let int)?: ["\(int)"]
        case .bool(let bool)?: ["\(bool)"]
        case .double(let double)?: ["\(double)"]
        default: []
        }
    }

    @Test("mark what the specification refuses, in its words")
    func refusals() throws {
        let specimens = try Specimen.all(in: Repository.specification()).filter {
            $0.problem != nil
        }
        try #require(specimens.count > 30)
        for specimen in specimens {
            let problem = try #require(specimen.problem)
            let (lines, failures) = try Self.decode(specimen.packet)
            // The output shows a problem in the line of its field, so it omits the path. A missing
            // field has no line, so search the failures, too.
            let reason =
                problem.hasPrefix("/") ? String(problem.drop { $0 != " " }.dropFirst()) : problem
            let told = lines + failures.map(\.reason)
            #expect(told.contains { $0.contains(reason) }, "\(specimen.name): \(told)")
            #expect(failures.isEmpty == (specimen.value != nil), "\(specimen.name): \(failures)")
        }
    }

    @Test("mask secrets, known and guessed by their keys")
    func secrets() throws {
        let specification = try Repository.specification()
        var shown = 0
        for specimen in try Specimen.all(in: specification) where specimen.problem == nil {
            var found: [String: [String]] = [:]
            var values = FieldValues(specification: specification)
            values.showsSecrets = true
            values.onlySecrets = true
            guard let value = specimen.value else { continue }
            values.collect(value, specimen.type, into: &found)
            let masked = try Self.decode(specimen.packet).lines.joined(separator: "\n")
            let open = try Self.decode(specimen.packet, secrets: true).lines.joined(separator: "\n")
            for secret in found.values.flatMap({ $0 }) where secret.count > 4 {
                shown += 1
                #expect(!masked.contains(secret), "\(specimen.name)")
                #expect(open.contains(secret), "\(specimen.name)")
            }
        }
        #expect(shown > 20)
        // The server does not serve this known opcode, so the specification says nothing about its
        // payload.
        let payload = WireEncoder.encode(
            .map([
                .init(key: .string("token"), value: .string("tell nobody")),
                .init(
                    key: .string("more"),
                    value: .map([.init(key: .string("phone"), value: .int(79_990_000_001))])
                ),
            ])
        )
        let lines = try Self.decode([10, 0, 0, 1, 0, 2, 0, 0, 0, UInt8(payload.count)] + payload)
            .lines
        #expect(
            lines.dropFirst(2) == ["  token: (secret)", "  more: 1 key", "    phone: (secret)"]
        )
    }

    @Test("tell who sent an opcode that both sides send by what fits")
    func bothDirections() throws {
        for specimen in try Specimen.all(in: Repository.specification())
        where specimen.opcode.direction == .both && specimen.problem == nil {
            let first = try Self.decode(specimen.packet).lines.first
            #expect(
                first
                    == "offset 0: \(specimen.opcode.name) \(specimen.role.rawValue), seq \(specimen.sequence)"
            )
        }
    }

    @Test("come out as the page about Wireshark shows")
    func page() throws {
        let page = try String(
            contentsOf: Repository.root.appending(path: "protocol-spec/prose/wireshark.md"),
            encoding: .utf8
        )
        let command = "$ swift run tambour-spec decode "
        let lines = page.split(separator: "\n", omittingEmptySubsequences: false)
        let start = try #require(lines.firstIndex { $0.hasPrefix(command) })
        let shown = lines[(start + 1)...].prefix { !$0.hasPrefix("$") && !$0.hasPrefix("`") }
        let (told, failures) = try Self.decode(hex: String(lines[start].dropFirst(command.count)))
        #expect(failures.isEmpty)
        #expect(told == shown.map(String.init))
    }

    // MARK: Invalid packets

    @Test(
        "say where the bytes stop being packets",
        arguments: [
            ("0a0000020001000000", "offset 0: cut short: a header has 10 bytes, 9 left", 0),
            (
                "0a00000200010000000180 0a00",
                "offset 11: cut short: a header has 10 bytes, 2 left", 1
            ),
            ("0a00000200010000000281", "offset 0: cut short: the payload has 2 bytes, 1 left", 0),
            ("09000002000100000000", "offset 0: protocol version 9, expected 10 or 11", 0),
            ("0a040002000100000000", "offset 0: command 4, expected 0 to 3", 0),
            (
                "0a00000200010000ffff",
                "offset 0: cut short: the payload has 65535 bytes, 0 left", 0
            ),
            ("0a000002000100ffffff", "offset 0: a payload of 16777215 bytes, limit 1048576", 0),
            (
                "0a00000200010000000180 47455420",
                "offset 11: cut short: a header has 10 bytes, 4 left", 1
            ),
            ("0a0000020001000000028000", "offset 11: payload: 1 byte after the payload", 1),
            ("0a00000200010000000281a1", "offset 11: payload: ends after 2 bytes", 1),
            ("0a000002000100000001c1", "offset 11: payload: the byte 0xc1 is not MessagePack", 1),
            ("0a000002000107000001f0", "offset 10: payload: not an LZ4 block", 1),
            ("0a0000020001070000022081", "offset 10: payload: not an LZ4 block", 1),
            (
                "0a000002000101000004 30 81a0c1",
                "offset 10: payload: byte 3 of what it inflates to: the byte 0xc1 is not MessagePack",
                1
            ),
            ("0a0000020001ff00000180", "offset 10: payload: zstd is not supported", 1),
        ] as [(String, String, Int)]
    )
    func failures(hex: String, message: String, packets: Int) throws {
        let (lines, failures) = try Self.decode(hex: hex)
        #expect(failures.map(\.description) == [message])
        #expect(lines.count { $0.hasPrefix("offset ") } == packets)
    }

    @Test("go on behind a payload that cannot be read")
    func goesOn() throws {
        let (lines, failures) = try Self.decode(
            hex: "0a000002000100000001c1 0a01000200010000000180"
        )
        #expect(failures.count == 1)
        #expect(
            lines.filter { $0.hasPrefix("offset") } == [
                "offset 0: PING request, seq 2", "offset 11: PING reply, seq 2",
            ]
        )
    }

    @Test("bound what a payload may take")
    func bounds() throws {
        func packet(_ payload: [UInt8], flags: UInt8 = 0) -> [UInt8] {
            [10, 0, 0, 1, 0, 64, flags]
                + [16, 8, 0].map { UInt8(truncatingIfNeeded: payload.count >> $0) } + payload
        }
        let nested = Array(repeating: UInt8(0x91), count: 500_000)
        #expect(
            try Self.decode(packet(nested)).failures.first?.reason
                == "payload: nested deeper than 32"
        )
        let wide = [0xDD, 0, 1, 0, 1] + Array(repeating: UInt8(1), count: 65_537)
        #expect(
            try Self.decode(packet(wide)).failures.first?.reason
                == "payload: more than 65536 elements"
        )
        let bomb =
            [0x1F, 0, 1, 0] + Array(repeating: UInt8(255), count: 65_000) + [
                0, 0x50, 0, 0, 0, 0, 0,
            ]
        #expect(
            try Self.decode(packet(bomb, flags: 254)).failures.first?.reason
                == "payload: inflates to more than 1048576 bytes"
        )
    }

    @Test("survive every cut and thousands of mutations")
    func mutations() throws {
        let environment = ProcessInfo.processInfo.environment
        let seed = environment["TAMBOUR_SEED"].flatMap { UInt64($0) } ?? .random(in: 0 ... .max)
        let count = environment["TAMBOUR_SOAK"] == "1" ? 50_000 : 2000
        print("Packets as text: \(count) packets, TAMBOUR_SEED=\(seed)")
        var random = SeededGenerator(seed: seed)
        let specimens = try Specimen.all(in: Repository.specification())
        let short = try #require(specimens.first { $0.name.hasPrefix("MSG_SEND request") }).packet
        for end in short.indices.dropFirst() {
            let failures = try Self.decode(Array(short[..<end])).failures
            #expect(failures.count == 1 && failures.first?.reason.hasPrefix("cut short") == true)
        }
        let sources = specimens + specimens.filter { $0.wireLength > 0 }.map { $0.compressed() }
        for _ in 0..<count {
            var packet = try #require(sources.randomElement(using: &random)).packet
            for _ in 0..<Int.random(in: 1...4, using: &random) {
                let at = Int.random(in: packet.indices, using: &random)
                packet[at] = UInt8.random(in: 0...255, using: &random)
            }
            let (lines, failures) = try Self.decode(packet)
            #expect(!lines.isEmpty || !failures.isEmpty)
            // The output must contain no character that moves a terminal's cursor.
            for line in lines {
                #expect(
                    !line.unicodeScalars.contains {
                        $0.value < 0x20 || (0x7F..<0xA0).contains($0.value)
                    }
                )
            }
        }
    }

    @Test("are the same in whatever pieces they come")
    func pieces() throws {
        let specimens = try Specimen.all(in: Repository.specification())
        let packets = specimens.map(\.packet).filter { $0.count < 200 }
        // Cut the last packet short.
        let bytes = packets.flatMap { $0 } + specimens[0].packet.dropLast()
        let whole = try Self.decode(bytes)
        for piece in [1, 7, 10, 64] {
            let told = try Self.decode(bytes, inPiecesOf: piece)
            #expect(told.lines == whole.lines && told.failures == whole.failures, "\(piece)")
        }
        #expect(whole.lines.count { $0.hasPrefix("offset ") } == packets.count)
        #expect(whole.failures.last?.reason.hasPrefix("cut short: ") == true)
    }

    @Test("are held no longer than until they are whole")
    func held() throws {
        let specification = try Repository.specification()
        let limit = try #require(specification.limit(named: "maxFrameBytes")?.value)
        var told = 0
        var stream = PacketStream(
            PacketText(specification: specification),
            line: { _ in },
            failure: { _ in told += 1 }
        )
        // Use an unknown compression. The decoder then does not parse the megabytes of the payload.
        let length = [16, 8, 0].map { UInt8(truncatingIfNeeded: limit >> $0) }
        let longest: [UInt8] =
            [10, 0, 0, 1, 0, 64, 255] + length + Array(repeating: 0, count: limit)
        for count in 1...16 {
            for begin in stride(from: 0, to: longest.count, by: 65_536) {
                stream.take(Array(longest[begin...].prefix(65_536)))
                #expect(stream.held.count < longest.count)
            }
            #expect(told == count && stream.held.isEmpty)
        }
        // After an invalid header, the decoder does not wait for more bytes.
        stream.take([9] + Array(repeating: 0, count: 9))
        #expect(told == 17 && stream.isOver)
        stream.take(longest)
        #expect(told == 17 && stream.held.isEmpty)
    }

    // MARK: LZ4 and digits

    @Test("inflate what the LZ4 library inflates and nothing else")
    func blocks() throws {
        let environment = ProcessInfo.processInfo.environment
        let seed = environment["TAMBOUR_SEED"].flatMap { UInt64($0) } ?? .random(in: 0 ... .max)
        let count = environment["TAMBOUR_SOAK"] == "1" ? 200_000 : 5000
        print("LZ4 blocks: \(count), TAMBOUR_SEED=\(seed)")
        var random = SeededGenerator(seed: seed)
        var inflated = 0
        for round in 0..<count {
            let plain = (0..<Int.random(in: 0...300, using: &random)).map { _ in
                UInt8.random(in: 0...3, using: &random)
            }
            var block = plain.withUnsafeBytes { LZ4.compress($0) } ?? [UInt8(0x10), 7]
            for _ in 0..<Int.random(in: 0...2, using: &random) {
                let at = Int.random(in: block.indices, using: &random)
                if Bool.random(using: &random) {
                    block[at] = UInt8.random(in: 0...255, using: &random)
                } else {
                    block.remove(at: at)
                }
                if block.isEmpty { block = [0] }
            }
            let library = try? block.withUnsafeBytes { try LZ4.decompress($0, limit: 2000) }
            let own = try? WireBlock.inflate(block, limit: 2000)
            if own != nil { inflated += 1 }
            #expect(own == library, "TAMBOUR_SEED=\(seed), round \(round): \(Hex.text(block))")
        }
        #expect(inflated > count / 4 && inflated < count)
        for block in EdgeBlocks.all {
            let library = try? block.withUnsafeBytes { try LZ4.decompress($0, limit: 2000) }
            #expect((try? WireBlock.inflate(block, limit: 2000)) == library, "\(Hex.text(block))")
        }
    }

    @Test(
        "read digits as tools write them",
        arguments: [
            "0a000aff", "0A 00 0a FF", "0a:00:0a:ff", "0x0a000aff", "0x0a, 0x00, 0X0A,0xff",
            " 0a00\n\t0aff\r\n",
        ]
    )
    func digits(text: String) throws {
        for piece in [100, 1, 3] {
            #expect(try Self.bytes(text, inPiecesOf: piece) == [10, 0, 10, 255])
        }
    }

    @Test(
        "say which character is no digit",
        arguments: [
            ("0a0", "line 1, column 4: a byte has two digits"),
            ("0a 0 00", "line 1, column 5: a byte has two digits"),
            ("0a\n0g", "line 2, column 2: \"g\" is no hexadecimal digit"),
            ("+a", "line 1, column 1: \"+\" is no hexadecimal digit"),
            ("0a0x00", "line 1, column 4: \"x\" is no hexadecimal digit"),
            ("0a\u{1B}", "line 1, column 3: the byte 0x1b is no hexadecimal digit"),
        ]
    )
    func badDigits(text: String, message: String) throws {
        for piece in [100, 1] {
            let failure = #expect(throws: HexText.Failure.self) {
                try Self.bytes(text, inPiecesOf: piece)
            }
            #expect(failure?.description == message)
        }
    }

    // MARK: The program

    @Test(
        "come from arguments, digits or bytes on the standard input, and decide how the program ends"
    )
    func program() throws {
        let folder = try TemporaryFolder()
        let program = try #require(Tool.built("tambour-spec"))
        func run(_ arguments: [String], _ input: [UInt8] = []) throws -> ChildProcess.Outcome {
            try Tool.run(
                program,
                ["decode", "--root", Repository.root.path] + arguments,
                input: Data(input),
                in: folder
            )
        }
        let ping: [UInt8] = [10, 0, 0, 2, 0, 1, 0, 0, 0, 1, 0x80]
        let expected = try Self.decode(ping).lines.map { $0 + "\n" }.joined()
        for (arguments, input) in [
            (["0a000002000100000001 80"], []),
            (["0a00", "0002000100000001", "80"], []),
            (["-"], Array("0a:00:00:02:00:01:00:00:00:01:80".utf8)),
            ([], Array("0a000002\n000100000001\n80\n".utf8)),
            (["--raw"], ping), (["--raw", "-"], ping),
        ] {
            let outcome = try run(arguments, input)
            #expect(outcome.status == 0 && outcome.errors == "", "\(outcome)")
            #expect(outcome.output == expected)
        }
        for (arguments, input, message) in [
            (["0a00"], [], "offset 0: cut short: a header has 10 bytes, 2 left\n"),
            (
                ["-"], Array("0a0000020001000000 0180 0a0q".utf8),
                "line 1, column 28: \"q\" is no hexadecimal digit\n"
            ),
            (["0q"], [], "line 1, column 2: \"q\" is no hexadecimal digit\n"),
            (["--raw"], [1, 2, 3], "offset 0: cut short: a header has 10 bytes, 3 left\n"),
        ] as [([String], [UInt8], String)] {
            let outcome = try run(arguments, input)
            #expect(outcome.status == 1 && outcome.errors == message, "\(outcome)")
        }
        #expect(try run(["--raw", "0a"]).status == 64)
        #expect(try run([], []).output == "")
    }

    @Test("are told while more of them is on the way")
    func openPipe() async throws {
        let folder = try TemporaryFolder()
        let program = try #require(Tool.built("tambour-spec"))
        for (name, arguments, input) in [
            ("raw", ["--raw"], [10, 0, 0, 2, 0, 1, 0, 0, 0, 1, 0x80]),
            ("digits", [], Array("0a000002 000100000001 80".utf8)),
        ] as [(String, [String], [UInt8])] {
            let pipe = folder.file(name).path
            try #require(mkfifo(pipe, 0o600) == 0)
            // Open the pipe for both reading and writing, so that opening does not wait for a
            // reader. The program sees the end of its input only after this test closes the pipe.
            let end = open(pipe, O_RDWR | O_CLOEXEC)
            try #require(end >= 0)
            let decoder = try ChildProcess(
                URL(filePath: "/bin/sh"),
                [
                    "-c", "exec \"$0\" decode --root \"$1\" $3 < \"$2\"", program.path,
                    Repository.root.path, pipe,
                ] + arguments
            )
            try #require(write(end, input, input.count) == input.count)
            #expect(await decoder.line(after: "offset 0: ") == "PING request, seq 2", "\(name)")
            close(end)
            #expect(try await decoder.exitStatus(within: .seconds(120)) == 0, "\(decoder.errors)")
        }
    }

    /// Limits the memory of the program. A decoder that reads to the end of the input would use up
    /// the machine's memory.
    @Test("end the program where they are none, however much follows", arguments: ["--raw", "-"])
    func endless(from: String) throws {
        let program = try #require(Tool.built("tambour-spec"))
        let source = from == "--raw" ? "cat /dev/zero" : "yes 00000000"
        let outcome = try ChildProcess.run(
            URL(filePath: "/bin/sh"),
            [
                "-c",
                "\(source) | { ulimit -v 1000000; exec timeout 60 \"$0\" decode --root \"$1\" \"$2\"; }",
                program.path, Repository.root.path, from,
            ]
        )
        #expect(
            outcome.status == 1
                && outcome.errors == "offset 0: protocol version 0, expected 10 or 11\n",
            "\(outcome)"
        )
    }
}
