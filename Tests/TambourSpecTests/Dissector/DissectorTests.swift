import Foundation
import TambourProtocol
import TambourTesting
import Testing

@testable import tambour_spec

/// Compares what Wireshark shows for packets with the specification's examples.
@Suite("Dissector", .enabled(if: Wireshark.isInstalled, "\(Wireshark.missing)"))
struct DissectorTests {
    private static let header = [
        "tambour.ver", "tambour.cmd", "tambour.seq", "tambour.opcode", "tambour.flags",
        "tambour.length", "tambour.kind", "tambour.error", "tambour.problem",
    ]

    /// Returns every key of the specification. A key is also the name of its filter field.
    private static func keys(in specification: Specification) -> [String] {
        Set(specification.maps.flatMap(\.fields).map(\.key)).sorted()
    }

    private static func specimens() throws -> [Specimen] {
        let plain = try Specimen.all(in: Repository.specification())
        // Skip empty payloads, because a compressed empty payload would make a different packet.
        return plain + plain.filter { $0.wireLength > 0 }.map { $0.compressed() }
    }

    // MARK: Rows

    @Test("shows the same rows for whole packets, single bytes and several packets in a segment")
    func rows() throws {
        let specification = try Repository.specification()
        let wireshark = try Wireshark()
        let specimens = try Self.specimens()
        let keys = Self.keys(in: specification)
        let fields = Self.header + keys.map { "tambour.payload.\($0)" }

        let whole = try wireshark.rows(
            try wireshark.capture(specimens.map(\.segment)),
            fields,
            ["-Y", "tambour"]
        )
        try #require(whole.count == specimens.count)
        for (specimen, row) in zip(specimens, whole) {
            let expected = expectedRow(specimen, keys: keys, in: specification)
            for field in fields {
                #expect(row[field] == expected[field, default: ""], "\(specimen.name): \(field)")
            }
        }

        let bytes = specimens.flatMap { specimen in
            specimen.packet.map { Segment(isToServer: specimen.isToServer, bytes: [$0]) }
        }
        let cut = try wireshark.rows(try wireshark.capture(bytes), fields, ["-Y", "tambour"])
        #expect(cut == whole)

        // Put up to ten packets of one direction into a segment. The frame then has the field
        // values of all these packets.
        var coalesced: [Segment] = []
        var parts: [[Int]] = []
        for index in specimens.indices {
            let segment = specimens[index].segment
            if let last = coalesced.last, last.isToServer == segment.isToServer,
                parts[parts.count - 1].count < 10
            {
                coalesced[coalesced.count - 1].bytes += segment.bytes
                parts[parts.count - 1].append(index)
            } else {
                coalesced.append(segment)
                parts.append([index])
            }
        }
        try #require(parts.contains { $0.count == 10 })
        let joined = try wireshark.rows(
            try wireshark.capture(coalesced),
            fields,
            ["-Y", "tambour"]
        )
        try #require(joined.count == parts.count)
        for (row, part) in zip(joined, parts) {
            for field in fields {
                let values = part.compactMap { whole[$0][field] }.filter { !$0.isEmpty }
                let got = (row[field] ?? "").split(separator: "|").map(String.init)
                let expected = values.flatMap { $0.split(separator: "|").map(String.init) }
                #expect(got == expected, "\(specimens[part[0]].name) and what follows: \(field)")
            }
        }
    }

    /// Returns the row that tshark must print for a packet.
    private func expectedRow(
        _ specimen: Specimen,
        keys: [String],
        in specification: Specification
    ) -> [String: String] {
        let example = specimen.role
        var row = [
            "tambour.ver": "10",
            "tambour.cmd": ["request": "0", "push": "0", "reply": "1", "error": "3"][
                example.rawValue
            ],
            "tambour.seq": "\(specimen.sequence)",
            "tambour.opcode": "\(specimen.opcode.number)",
            "tambour.flags": "\(specimen.flags)",
            "tambour.length": "\(specimen.wireLength)",
            "tambour.kind": example.rawValue,
            "tambour.problem": specimen.problem,
        ].compactMapValues { $0 }
        guard let value = specimen.value else { return row }
        if example == .error, case .string(let code)? = value["error"] {
            row["tambour.error"] = code
        }
        // If the payload is refused, the dissector shows as much of it as possible. If it is
        // accepted, the test of trees compares every value.
        var found: [String: [String]] = [:]
        FieldValues(specification: specification).collect(value, specimen.type, into: &found)
        for (key, values) in found {
            row["tambour.payload.\(key)"] = values.joined(separator: Wireshark.aggregator)
        }
        return row
    }

    // MARK: Trees

    @Test("shows every value of a payload, with secrets masked or not", arguments: [false, true])
    func trees(showsSecrets: Bool) throws {
        let specification = try Repository.specification()
        let wireshark = try Wireshark()
        let specimens = try Self.specimens()
        let trees = try wireshark.trees(
            try wireshark.capture(specimens.map(\.segment)),
            ["-o", "tambour.show_secrets:\(showsSecrets ? "TRUE" : "FALSE")"]
        )
        try #require(trees.count == specimens.count)
        let text = PayloadText(specification: specification, showsSecrets: showsSecrets)
        for (specimen, tree) in zip(specimens, trees) {
            let title =
                "\(specimen.opcode.name) \(specimen.role.rawValue), seq \(specimen.sequence)"
            #expect(tree.title.hasPrefix("Tambour, \(title)"), "\(specimen.name)")
            #expect(tree.title.hasSuffix(", \(specimen.packet.count) bytes"), "\(specimen.name)")
            guard let value = specimen.value else { continue }
            guard case .map = value else { continue }
            let expected = text.linesWithoutMarks(of: value, as: specimen.type)
            #expect(tree.payload == expected, "\(specimen.name)")
        }
        // Search the trees for the texts of secrets, to find secrets that are not masked.
        let shown = trees.flatMap(\.payload).joined(separator: "\n")
        #expect(shown.contains("(secret)") == !showsSecrets)
        let secrets = specimens.flatMap { self.secrets(in: $0, specification) }
        try #require(secrets.count > 20)
        for secret in secrets { #expect(shown.contains(secret) == showsSecrets, "\(secret)") }
    }

    /// Returns texts of sensitive fields. The texts are so long that they do not occur elsewhere by
    /// chance.
    private func secrets(in specimen: Specimen, _ specification: Specification) -> [String] {
        guard let value = specimen.value, specimen.problem == nil else { return [] }
        var found: [String: [String]] = [:]
        var values = FieldValues(specification: specification)
        values.showsSecrets = true
        values.onlySecrets = true
        values.collect(value, specimen.type, into: &found)
        return found.values.flatMap { $0 }.filter { $0.count > 4 }
    }

    @Test(
        "is read alike by a later Lua",
        .enabled(if: PlainLua.isInstalled, "\(PlainLua.missing)")
    )
    func laterLua() throws {
        let wireshark = try Wireshark()
        let specimens = try Self.specimens()
        let plain = try PlainLua.trees(specimens.map(\.packet))
        let frames = try wireshark.trees(try wireshark.capture(frames: specimens.map(\.packet)))
        try #require(plain.count == specimens.count && frames.count == specimens.count)
        for index in specimens.indices {
            #expect(plain[index].title == frames[index].title, "\(specimens[index].name)")
            #expect(plain[index].payload == frames[index].payload, "\(specimens[index].name)")
            let problems = [plain[index], frames[index]].map { tree in
                tree.header.filter { $0.hasPrefix("[Problem: ") }
            }
            #expect(problems[0] == problems[1], "\(specimens[index].name)")
        }
    }

    // MARK: Exchanges

    @Test("finds the request of a reply and the time between")
    func exchanges() throws {
        func packet(_ toServer: Bool, _ hex: String) throws -> Segment {
            Segment(isToServer: toServer, bytes: try #require(Hex.bytes(hex)))
        }
        let ping = { (seq: Int, command: Int) -> String in
            "0a0\(command)\(Hex.text([UInt8(seq >> 8), UInt8(seq & 255)]))00010000000180"
        }
        let wireshark = try Wireshark()
        // Frames have numbers from 1. Each frame comes one microsecond after the frame before it.
        let capture = try wireshark.capture([
            try packet(true, ping(1, 0)),  // 1
            try packet(true, ping(0x0102, 0)),  // 2
            // A push with the number of a request, and a packet with that number but another
            // opcode. The two packets are not replies to the request.
            try packet(false, "0a00000100850000000180"),  // 3
            try packet(false, "0a01000100200000000180"),  // 4
            try packet(false, ping(0x0102, 1)),  // 5, out of order
            try packet(false, ping(1, 1)),  // 6
            // Two open requests have the same number. The replies belong to them in order.
            try packet(true, ping(7, 0)),  // 7
            try packet(true, ping(7, 0)),  // 8
            try packet(false, ping(7, 1)),  // 9
            try packet(false, ping(7, 3)),  // 10
            try packet(true, ping(9, 0)),  // 11, never answered
            // An answer to a push is not a reply to a request.
            try packet(true, ping(9, 1)),  // 12
        ])
        let rows = try wireshark.rows(
            capture,
            [
                "frame.number", "tambour.kind", "tambour.request_in", "tambour.reply_in",
                "tambour.response_time",
            ],
            ["-2"]
        )
        let lines = rows.map { row in
            [
                "frame.number", "tambour.kind", "tambour.request_in", "tambour.reply_in",
                "tambour.response_time",
            ].map { row[$0] ?? "" }.joined(separator: " ")
        }
        #expect(
            lines == [
                "1 request  6 ", "2 request  5 ", "3 push   ", "4 reply   ",
                "5 reply 2  0.000003000", "6 reply 1  0.000005000", "7 request  9 ",
                "8 request  10 ", "9 reply 7  0.000002000", "10 error 8  0.000002000",
                "11 request   ", "12 reply   ",
            ]
        )
    }

    @Test("tells who sent an opcode that both sides send")
    func bothDirections() throws {
        let specification = try Repository.specification()
        let opcode = try #require(
            specification.families.flatMap(\.opcodes).first { $0.direction == .both }
        )
        let number = Hex.text([UInt8(opcode.number >> 8), UInt8(opcode.number & 255)])
        let packet = try #require(Hex.bytes("0a000001\(number)0000000180"))
        let wireshark = try Wireshark()
        let capture = try wireshark.capture([
            Segment(isToServer: true, bytes: packet), Segment(isToServer: false, bytes: packet),
        ])
        let kinds = try wireshark.rows(capture, ["tambour.kind"]).compactMap { $0["tambour.kind"] }
        #expect(kinds == ["request", "push"])
    }

    // MARK: Errors

    @Test("finds errors, with what they mean")
    func errors() throws {
        let specification = try Repository.specification()
        let wireshark = try Wireshark()
        let specimens = try Specimen.all(in: specification)
        let capture = try wireshark.capture(specimens.map(\.segment))
        let rows = try wireshark.rows(
            capture,
            [
                "tambour.error", "tambour.error.class", "tambour.error.retry",
                "_ws.expert.message", "_ws.expert.severity",
            ],
            ["-Y", "tambour.error"]
        )
        let expected = specimens.filter { $0.role == .error }
        try #require(rows.count == expected.count)
        for (row, specimen) in zip(rows, expected) {
            guard case .string(let code)? = specimen.value?["error"] else { continue }
            let error = try #require(specification.errors.first { $0.code == code })
            #expect(row["tambour.error"] == code)
            #expect(row["tambour.error.class"] == error.errorClass.rawValue)
            #expect(row["tambour.error.retry"] == error.retry.rawValue)
            #expect(row["_ws.expert.message"] == "\(code): \(error.when)")
        }
    }

    @Test("marks keys that the specification does not know")
    func unknownKeys() throws {
        let wireshark = try Wireshark()
        let packet = try #require(
            Hex.bytes(
                "0a00000200010000001d83ab696e746572616374697665c3a76261747465727950079201810203"
            )
        )
        let rows = try wireshark.rows(
            try wireshark.capture([Segment(isToServer: true, bytes: packet)]),
            ["_ws.expert.message", "tambour.problem"],
            ["-Y", "tambour.expert.unknown_key"]
        )
        #expect(rows.count == 1)
        #expect(rows.first?["_ws.expert.message"] == "unknown key battery|unknown key 7")
        #expect(rows.first?["tambour.problem"] == "")
    }

    // MARK: Connections

    @Test("reads the ports it was told, and what Decode As names")
    func ports() throws {
        let wireshark = try Wireshark()
        let ping = try #require(Hex.bytes("0a01000200010000000180"))
        func count(_ port: Int, _ arguments: [String]) throws -> Int {
            let capture = try wireshark.capture(
                [Segment(isToServer: false, bytes: ping)],
                serverPort: port
            )
            return try wireshark.rows(capture, ["frame.number"], ["-Y", "tambour"] + arguments)
                .count
        }
        #expect(try count(7770, []) == 1)
        #expect(try count(7781, []) == 0)
        #expect(try count(7781, ["-o", "tambour.ports:7780-7790"]) == 1)
        #expect(try count(7770, ["-o", "tambour.ports:7780-7790"]) == 0)
        #expect(try count(7781, ["-d", "tcp.port==7781,tambour"]) == 1)
    }

    @Test("takes a connection on another port for what it is by its first packet only")
    func heuristic() throws {
        let specification = try Repository.specification()
        let wireshark = try Wireshark()
        func kinds(_ segments: [Segment]) throws -> [String] {
            try wireshark.rows(
                try wireshark.capture(segments, serverPort: 5555),
                ["tambour.kind"],
                ["-Y", "tambour"]
            ).compactMap { $0["tambour.kind"] }
        }
        let specimens = try Specimen.all(in: specification)
        let hello = try #require(specimens.first { $0.name.hasPrefix("SESSION_INIT request") })
        let reply = try #require(specimens.first { $0.name.hasPrefix("SESSION_INIT reply") })
        let send = try #require(specimens.first { $0.name.hasPrefix("MSG_SEND request") })
        // After it has recognized the first packet, the dissector shows all packets of the
        // connection.
        #expect(
            try kinds([hello.segment, reply.segment, send.segment]) == [
                "request", "reply", "request",
            ]
        )
        // The dissector ignores connections that begin with another packet. This includes a real
        // connection whose beginning is missing.
        for bytes in [reply.packet, send.packet, Array("GET / HTTP/1.1\r\n\r\n".utf8)] {
            #expect(try kinds([Segment(isToServer: true, bytes: bytes)]) == [])
        }
        // If any of these bytes changes, the dissector does not recognize the connection.
        for index in [0, 1, 4, 5, 6, 10, 11] {
            var bytes = hello.packet
            bytes[index] ^= 0xE0
            #expect(try kinds([Segment(isToServer: true, bytes: bytes)]) == [], "byte \(index)")
        }
    }

    @Test("takes a connection on another port however its first packet was cut")
    func cutBeginning() throws {
        let wireshark = try Wireshark()
        let specimens = try Specimen.all(in: Repository.specification())
        let hello = try #require(specimens.first { $0.name.hasPrefix("SESSION_INIT request") })
        let reply = try #require(specimens.first { $0.name.hasPrefix("SESSION_INIT reply") })
        func kinds(_ cuts: [Int]) throws -> [String] {
            let pieces = zip([0] + cuts, cuts + [hello.packet.count]).map { begin, end in
                Segment(isToServer: true, bytes: Array(hello.packet[begin..<end]))
            }
            return try wireshark.rows(
                try wireshark.capture(pieces + [reply.segment], serverPort: 7781),
                ["tambour.kind"],
                ["-Y", "tambour"]
            ).compactMap { $0["tambour.kind"] }
        }
        for cuts in [[], [1], [2], [5], [9], [10], [11], [12], [1, 3], Array(1..<20)] {
            #expect(try kinds(cuts) == ["request", "reply"], "\(cuts)")
        }
    }

    @Test("leaves the bytes of others alone that begin like a packet")
    func othersBeginning() throws {
        let wireshark = try Wireshark()
        func data(_ pieces: [String]) throws -> [String] {
            let segments = pieces.map { Segment(isToServer: true, bytes: Array($0.utf8)) }
            let capture = try wireshark.capture(segments, serverPort: 7781)
            #expect(try wireshark.rows(capture, ["frame.number"], ["-Y", "tambour"]).isEmpty)
            return try wireshark.rows(capture, ["data.data"]).compactMap { $0["data.data"] }
        }
        func hex(_ text: String) -> String { Hex.text(Array(text.utf8)) }
        // A lone byte may be the start of a packet. The dissector shows it together with the next
        // bytes.
        #expect(try data(["\n", "one", "\n"]) == [hex("\none"), hex("\n")])
        // The dissector shows other bytes at once: later bytes, and bytes that cannot start a
        // packet.
        #expect(try data(["one", "\n", "two"]) == [hex("one"), hex("\n"), hex("two")])
        #expect(try data(["\none", "two"]) == [hex("\none"), hex("two")])
    }
}
