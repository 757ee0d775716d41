import Foundation
import TambourTesting
import Testing

@testable import tambour_spec

@Suite("A packet taken apart")
struct PacketAnatomyTests {
    /// Returns every packet of the examples, with the type of its payload.
    private static func packets() throws -> [(name: String, bytes: [UInt8], type: StructType?)] {
        let specification = try Repository.specification()
        return try specification.examples.flatMap { file in
            let opcode = try #require(specification.opcode(named: file.opcode))
            return try file.examples.flatMap { example in
                let type = ExampleCheck.type(of: example, opcode: opcode, in: specification)
                let all =
                    [example.hex] + example.accepts.map(\.hex) + example.rejects.map(\.hex)
                return try all.map { hex in
                    let bytes = try #require(Hex.bytes(hex ?? "none"))
                    return ("\(file.opcode): \(example.name)", bytes, type)
                }
            }
        }
    }

    /// Returns whether the runs are in order and contain each byte exactly once.
    private static func covers(_ anatomy: PacketAnatomy, _ bytes: [UInt8]) -> Bool {
        var position = 0
        for run in anatomy.runs {
            let end = run.offset + run.key.count + run.bytes.count
            guard run.offset == position, end <= bytes.count, end > position,
                run.key + run.bytes == Array(bytes[position..<end])
            else { return false }
            position = end
        }
        return position == bytes.count
    }

    @Test("covers every byte of every example once")
    func coverage() throws {
        let specification = try Repository.specification()
        let packets = try Self.packets()
        #expect(packets.count > 150)
        for (name, bytes, type) in packets {
            let isWhole = Self.covers(PacketAnatomy(bytes, payload: type, in: specification), bytes)
            #expect(isWhole, "\(name): \(Hex.text(bytes))")
        }
    }

    @Test("names a field for every value of an example, and for nothing that is unknown")
    func fields() throws {
        let specification = try Repository.specification()
        for file in specification.examples {
            let opcode = try #require(specification.opcode(named: file.opcode))
            for example in file.examples {
                let type = ExampleCheck.type(of: example, opcode: opcode, in: specification)
                let bytes = try #require(Hex.bytes(example.hex ?? ""))
                let runs = PacketAnatomy(bytes, payload: type, in: specification).runs
                #expect(!runs.contains { $0.part == .unread || $0.isUnknown }, "\(example.name)")
            }
        }
    }

    @Test("names a field that arrives under an alias")
    func alias() throws {
        let specification = try Repository.specification()
        let file = try #require(
            specification.examples.first { $0.opcode == "CHAT_PIN_SET_VISIBILITY" }
        )
        let example = try #require(file.examples.first { !$0.accepts.isEmpty })
        let hex = try #require(example.accepts.first { $0.name == "under another key" }?.hex)
        let opcode = try #require(specification.opcode(named: file.opcode))
        let type = ExampleCheck.type(of: example, opcode: opcode, in: specification)
        let bytes = try #require(Hex.bytes(hex))
        let runs = PacketAnatomy(bytes, payload: type, in: specification).runs
        #expect(!runs.contains { $0.isUnknown })
        #expect(runs.contains { $0.field?.key == "show" })
    }

    @Test("covers every byte of what is no packet at all")
    func mutants() throws {
        let specification = try Repository.specification()
        let packets = try Self.packets()
        let seed =
            ProcessInfo.processInfo.environment["TAMBOUR_SEED"].flatMap(UInt64.init)
            ?? UInt64.random(in: 0...UInt64(UInt32.max))
        var random = SeededGenerator(seed: seed)
        for round in 0..<1500 {
            var (name, bytes, type) = packets[Int.random(in: packets.indices, using: &random)]
            switch round % 3 {
            case 0: bytes.removeLast(Int.random(in: 0...bytes.count, using: &random))
            case 1:
                for _ in 0..<4 {
                    let index = Int.random(in: bytes.indices, using: &random)
                    bytes[index] = UInt8.random(in: 0...255, using: &random)
                }
            default:
                let index = Int.random(in: bytes.indices, using: &random)
                bytes.insert(UInt8.random(in: 0...255, using: &random), at: index)
            }
            let isWhole = Self.covers(PacketAnatomy(bytes, payload: type, in: specification), bytes)
            try #require(
                isWhole,
                "TAMBOUR_SEED=\(seed), round \(round), \(name): \(Hex.text(bytes))"
            )
        }
    }

    @Test("says what each run is")
    func meanings() throws {
        let specification = try Repository.specification()
        let request = try #require(specification.opcode(named: "MSG_SEND")?.request)
        // An unknown key, an id that is a string, and a number in a form that is longer than
        // necessary.
        let wire = WireNode.map([
            .init(key: .string("chatId"), value: .string("3")),
            .init(key: .string("mood"), value: .array([.int(-1)])),
            .init(
                key: .string("message"),
                value: .map([.init(key: .string("cid"), value: .forced("u64", .int(7)))])
            ),
        ])
        let payload = WireEncoder.encode(wire)
        let header: [UInt8] = [10, 0, 1, 2, 0, 64, 0, 0, 0, UInt8(payload.count)]
        let runs = PacketAnatomy(header + payload, payload: request, in: specification).runs
        let lines = runs.map { run in
            "\(run.offset) \(Hex.text(run.key)) \(Hex.text(run.bytes)) \(run.place): \(run.meaning) "
                + "(\(run.encoding))\(run.isUnknown ? " unknown" : "")"
                + (run.field.map { " \($0.type).\($0.key)" } ?? "")
        }
        #expect(
            lines == [
                "0  0a ver: 10 ()", "1  00 cmd: 0, request or push ()", "2  0102 seq: 258 ()",
                "4  0040 opcode: 64, MSG_SEND ()", "6  00 flags: 0, not compressed ()",
                "7  000027 length: 39 bytes follow ()", "10  83 : map of 3 (fixmap)",
                "11 a6636861744964 a133 /chatId: \"3\" (fixstr) MsgSendRequest.chatId",
                "20 a46d6f6f64 91 /mood: array of 1 (fixarray) unknown",
                "26  ff /mood/0: -1 (fixint)",
                "27 a76d657373616765 81 /message: map of 1 (fixmap) MsgSendRequest.message",
                "36 a3636964 cf0000000000000007 /message/cid: 7 (uint 64) NewMessage.cid",
            ],
            "\(lines.joined(separator: "\n"))"
        )
    }

    @Test("shows a date beside milliseconds, and stops where nobody can go on")
    func datesAndEnds() throws {
        let specification = try Repository.specification()
        let request = try #require(specification.opcode(named: "LOGIN")?.request)
        let payload = WireEncoder.encode(
            .map([.init(key: .string("chatsSync"), value: .int(1_754_255_190_000))])
        )
        let header: [UInt8] = [10, 0, 0, 1, 0, 19, 0, 0, 0, UInt8(payload.count + 1)]
        let runs = PacketAnatomy(header + payload + [1], payload: request, in: specification).runs
        let dated = try #require(runs.first { $0.place == "/chatsSync" })
        #expect(dated.meaning == "1754255190000 = 2025-08-03T21:06:30.000Z")
        let last = try #require(runs.last)
        #expect(last.part == .unread)
        #expect(last.meaning == "1 bytes after the map")

        var compressed = header + payload
        compressed[6] = 2
        let block = PacketAnatomy(compressed, payload: request, in: specification).runs.last
        #expect(block?.bytes == payload)
        #expect(block?.meaning == "the compressed payload")
    }
}
