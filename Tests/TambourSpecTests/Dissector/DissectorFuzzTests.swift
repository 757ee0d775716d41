import Foundation
import TambourFraming
import TambourProtocol
import TambourTesting
import Testing

@testable import tambour_spec

/// Tests the dissector with randomly damaged packets. `TAMBOUR_SEED` repeats a run.
/// `TAMBOUR_SOAK=1` makes the run long.
@Suite("Dissector on broken packets", .enabled(if: Wireshark.isInstalled, "\(Wireshark.missing)"))
struct DissectorFuzzTests {
    /// Error messages. No line of the tree may begin with one of them.
    private static let complaints = [
        "Lua Error", "[Dissector bug", "[Malformed Packet", "[Exception occurred",
    ]

    @Test("never ends in an error of Lua")
    func noLuaError() throws {
        var run = RandomRun("Dissector on broken packets", count: 600, soak: 10_000)
        let specimens = try Specimen.all(in: Repository.specification())
        let sources = specimens + specimens.filter { $0.wireLength > 0 }.map { $0.compressed() }
        var mutants: [[UInt8]] = []
        for _ in 0..<run.count {
            var mutant = sources.randomElement(using: &run.random)?.packet ?? []
            for _ in 0..<Int.random(in: 1...4, using: &run.random) {
                mutant = mutate(mutant, with: sources, using: &run.random)
            }
            // Give most mutants a correct length, so that the dissector reads the payload.
            if Int.random(in: 0..<8, using: &run.random) > 0 { mutant = measured(mutant) }
            if !mutant.isEmpty { mutants.append(mutant) }
        }

        let wireshark = try Wireshark()
        for first in stride(from: 0, to: mutants.count, by: 500) {
            let chunk = Array(mutants[first..<min(first + 500, mutants.count)])
            try expectNoComplaint(
                wireshark,
                try wireshark.capture(frames: chunk),
                "TAMBOUR_SEED=\(run.seed), packets from \(first), each alone"
            )
        }
        // A packet with a wrong length swallows the packets after it in the stream. So keep the
        // streams short.
        for first in stride(from: 0, to: mutants.count, by: 100) {
            let chunk = mutants[first..<min(first + 100, mutants.count)]
            let segments = chunk.map {
                Segment(isToServer: Bool.random(using: &run.random), bytes: $0)
            }
            try expectNoComplaint(
                wireshark,
                try wireshark.capture(segments),
                "TAMBOUR_SEED=\(run.seed), packets from \(first), in a stream"
            )
        }
    }

    private func expectNoComplaint(
        _ wireshark: Wireshark,
        _ capture: URL,
        _ name: String
    ) throws {
        let text = try wireshark.read(capture, ["-V", "-O", "tambour"])
        var frame = Substring()
        for line in text.split(separator: "\n") {
            if line.hasPrefix("Frame ") { frame = line.prefix { $0 != ":" } }
            let content = line.drop { $0 == " " }
            if Self.complaints.contains(where: content.hasPrefix) {
                Issue.record("\(name), \(frame): \(content)")
            }
        }
    }

    @Test("names the problem that a server would name, and shows what decode shows")
    func problems() throws {
        var run = RandomRun("Problems of broken requests", count: 1500, soak: 20_000)
        let specimens = try Specimen.all(in: Repository.specification())
            .filter { $0.role == .request && $0.wireLength > 0 }
        let sources = specimens + specimens.map { $0.compressed() }
        var mutants: [[UInt8]] = []
        for _ in 0..<run.count {
            let source = try #require(sources.randomElement(using: &run.random))
            var mutant = source.packet
            for _ in 0..<Int.random(in: 1...2, using: &run.random) {
                mutant = mutate(mutant, with: sources, using: &run.random)
            }
            mutants.append(
                measured(Array(source.packet[..<10]) + mutant.dropFirst(10))
            )
        }
        let refused = try expectAgreement(on: mutants, "TAMBOUR_SEED=\(run.seed)")
        #expect(refused > run.count / 3)
    }

    @Test("judges texts and numbers at their edges as a server does")
    func edges() throws {
        func send(id: [UInt8], cid: [UInt8], text: [UInt8]) -> [UInt8] {
            let message: [UInt8] =
                [0x82] + WireEncoder.encode(.string("cid")) + cid
                + WireEncoder.encode(.string("text")) + WireEncoder.encode(.badString(text))
            return measured(
                [10, 0, 0, 1, 0, 64, 0, 0, 0, 0, 0x82] + WireEncoder.encode(.string("chatId")) + id
                    + WireEncoder.encode(.string("message")) + message
            )
        }
        var packets: [[UInt8]] = []
        // Bytes at the limits that the rules of UTF-8 set.
        let starts: [UInt8] = [
            0x24, 0x80, 0xC1, 0xC2, 0xDF, 0xE0, 0xE1, 0xED, 0xEE, 0xEF, 0xF0, 0xF1, 0xF4, 0xF5,
        ]
        let seconds: [UInt8] = [0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0]
        for start in starts {
            packets.append(send(id: [1], cid: [1], text: [start]))
            for second in seconds {
                for more in 0...2 {
                    let text = [start, second] + Array(repeating: 0x80, count: more)
                    packets.append(send(id: [1], cid: [1], text: text))
                    packets.append(send(id: [1], cid: [1], text: text.dropLast() + [0xC0]))
                }
            }
        }
        // Numbers with as many digits as the largest integer.
        for digits in ["9999999999999999999", "9300000000000000000", "00000000000000000001"] {
            let id = WireEncoder.encode(.string(digits))
            packets.append(send(id: id, cid: [1], text: []))
        }
        for power in 0..<64 {
            let one = UInt64(1) << UInt64(power)
            let numbers: [UInt64] = [one, one &- 1, 0 &- one, ~one]
            for number in numbers {
                let signed = WireNode.forced("i64", .int(Int64(bitPattern: number)))
                for node in [.uint(number), signed, .string("\(number)"), .string("-\(number)")] {
                    packets.append(send(id: WireEncoder.encode(node), cid: [1], text: []))
                }
                packets.append(send(id: [1], cid: WireEncoder.encode(.uint(number)), text: []))
                packets.append(send(id: [1], cid: WireEncoder.encode(signed), text: []))
            }
        }
        for block in EdgeBlocks.all {
            packets.append(measured([10, 0, 0, 1, 0, 64, 9, 0, 0, 0] + block))
        }
        let refused = try expectAgreement(on: packets, "edges")
        #expect(refused > packets.count / 4 && refused < packets.count)
    }

    /// Compares what the dissector shows for requests with the server's answers and with the output
    /// of `decode`.
    /// - Returns: The number of refused requests.
    private func expectAgreement(on mutants: [[UInt8]], _ name: String) throws -> Int {
        let wireshark = try Wireshark()
        let capture = try wireshark.capture(
            mutants.map { Segment(isToServer: true, bytes: $0) }
        )
        let rows = try wireshark.rows(capture, ["tambour.problem", "tambour.kind"])
        try #require(rows.count == mutants.count)
        var refused = 0
        // A problem text that contains a control character breaks the lines of tshark's output.
        var unprintable: Set<Int> = []
        for (index, (mutant, row)) in zip(mutants, rows).enumerated() {
            let expected = serverProblem(of: mutant) ?? ""
            if !expected.isEmpty { refused += 1 }
            guard !expected.unicodeScalars.contains(where: { $0.value < 0x20 || $0 == "\u{7F}" })
            else {
                unprintable.insert(index)
                continue
            }
            #expect(
                row["tambour.problem"] == expected,
                "\(name), packet \(index): \(Hex.text(mutant))"
            )
        }
        // If the payload is readable, the tree must show the output of `decode`.
        let specification = try Repository.specification()
        let text = PayloadText(specification: specification)
        let trees = try wireshark.trees(capture)
        try #require(trees.count == mutants.count)
        for (index, (mutant, tree)) in zip(mutants, trees).enumerated()
        where !unprintable.contains(index) {
            let opcode = Int(mutant[4]) << 8 | Int(mutant[5])
            let request = specification.families.flatMap(\.opcodes)
                .first { $0.number == opcode }?.request
            guard let payload = inflated(mutant), let node = try? WireDecoder.decode(payload),
                case .map = node
            else { continue }
            let expected = text.linesWithoutMarks(of: node, as: request)
            // Wireshark cuts labels after about 240 bytes.
            guard expected.allSatisfy({ $0.utf8.count < 200 }) else { continue }
            #expect(
                tree.payload == expected,
                "\(name), packet \(index): \(Hex.text(mutant))"
            )
        }
        return refused
    }

    private func inflated(_ packet: [UInt8]) -> [UInt8]? {
        let payload = Array(packet[10...])
        return packet[6] == 0 ? payload : try? WireBlock.inflate(payload, limit: 1 << 20)
    }

    /// Returns the reason why the server refuses a request; nil if the server would accept it.
    private func serverProblem(of packet: [UInt8]) -> String? {
        let opcode = Opcode(rawValue: UInt16(packet[4]) << 8 | UInt16(packet[5]))
        return packet.withUnsafeBytes { bytes in
            let frame = Frame(
                header: PacketHeader(bytes),
                wirePayload: UnsafeRawBufferPointer(rebasing: bytes[10...])
            )
            do throws(PayloadError) {
                let payload = try frame.payload(limits: .standard)
                _ = try ClientRequest.decode(opcode, payload, limits: .standard)
                return nil
            } catch {
                return error.description
            }
        }
    }

    /// Returns the packet with the correct length in its header.
    private func measured(_ packet: [UInt8]) -> [UInt8] {
        guard packet.count >= 10 else { return packet }
        var packet = packet
        for (index, shift) in [(7, 16), (8, 8), (9, 0)] {
            packet[index] = UInt8(truncatingIfNeeded: (packet.count - 10) >> shift)
        }
        return packet
    }

    private func mutate(
        _ packet: [UInt8],
        with sources: [Specimen],
        using random: inout SeededGenerator
    ) -> [UInt8] {
        guard !packet.isEmpty else { return [UInt8.random(in: 0...255, using: &random)] }
        var packet = packet
        let at = Int.random(in: packet.indices, using: &random)
        // First bytes that are likely to cause errors: many announce a large MessagePack value.
        let telling: [UInt8] = [
            0x80, 0x8F, 0x9F, 0xA0, 0xBF, 0xC0, 0xC1, 0xC3, 0xC4, 0xC6, 0xC7, 0xC9, 0xCA, 0xCB,
            0xCF, 0xD3, 0xD4, 0xD8, 0xD9, 0xDB, 0xDC, 0xDD, 0xDE, 0xDF, 0xFF,
        ]
        switch Int.random(in: 0..<8, using: &random) {
        case 0: packet[at] ^= 1 << UInt8.random(in: 0..<8, using: &random)
        case 1: packet[at] = UInt8.random(in: 0...255, using: &random)
        case 2: packet[at] = telling.randomElement(using: &random) ?? 0
        case 3: packet.insert(telling.randomElement(using: &random) ?? 0, at: at)
        case 4: packet.remove(at: at)
        case 5: packet.removeLast(packet.count - at)
        case 6:
            let to = min(at + Int.random(in: 1...16, using: &random), packet.count)
            packet.insert(contentsOf: packet[at..<to], at: at)
        default:
            let other = sources.randomElement(using: &random)?.packet ?? []
            guard other.count > 10 else { return packet }
            let from = Int.random(in: 10..<other.count, using: &random)
            packet.replaceSubrange(at..., with: other[from...])
        }
        return packet
    }
}
