import TambourProtocol
import TambourTesting
import Testing

/// The exact errors for invalid payloads, because people search logs for them.
@Suite("errors of the reader")
struct ReaderErrorTests {
    @Test(
        "a value of another type is named",
        arguments: [
            ("a161", "a string"), ("c0", "nil"), ("c3", "a boolean"), ("ca00000000", "a float"),
            ("c40100", "bytes"), ("90", "an array"), ("80", "a map"), ("d40100", "an extension"),
            ("c1", "the byte 0xc1"),
        ]
    )
    func wrongType(encoding: String, name: String) {
        let bytes = hex(encoding)
        #expect(
            complaint { () throws(PayloadError) in try decode(Int64.self, bytes) }
                == "expected an integer, found \(name)"
        )
    }

    @Test("every read says what it wanted")
    func expectations() {
        let number: [UInt8] = [0x05]
        func says(_ type: (some WireValue).Type, _ bytes: [UInt8], _ expected: String) {
            #expect(complaint { () throws(PayloadError) in try decode(type, bytes) } == expected)
        }
        says(Bool.self, number, "expected a boolean, found an integer")
        says(Text.self, number, "expected a string, found an integer")
        says(String.self, number, "expected a string, found an integer")
        says(Text.self, [0xC4, 0], "expected a string, found bytes")
        says(Bytes.self, number, "expected bytes, found an integer")
        says([Bool].self, number, "expected an array, found an integer")
        says(SampleAttach.self, number, "expected a map, found an integer")
        says(Double.self, [0xA0], "expected a number, found a string")
        says(UserID.self, [0xC0], "expected an id, found nil")
        says(UserID.self, hex("a3313261"), "expected an id, found a string that is not one")
        says(AnyValue.self, [0xC1], "the byte 0xc1 is not MessagePack")
    }

    @Test("an error names the field, through maps, arrays and ids")
    func paths() {
        func says(_ tree: Tree, _ expected: String) {
            let payload = encode(tree)
            #expect(
                complaint { () throws(PayloadError) in
                    try SampleMessage.decode(payload, limits: .standard)
                } == expected
            )
        }
        func map(_ key: String, _ value: Tree) -> Tree {
            .map([
                .init(key: .text("zzz"), value: .null), .init(key: .text(Text(key)), value: value),
            ])
        }
        says(.map([]), "/chatId: missing")
        says(map("chatId", .int(5)), "/text: missing")
        says(map("text", .int(5)), "/text: expected a string, found an integer")
        says(map("chatId", .text("x")), "/chatId: expected an id, found a string that is not one")
        says(
            .map(Array(repeating: .init(key: .text("chatId"), value: .int(5)), count: 2)),
            "/chatId: duplicate key"
        )
        let attach = map("size", .text("x"))
        says(
            map("attaches", .array([.map([]), .map([]), attach])),
            "/attaches/2/size: expected an integer, found a string"
        )
        says(
            map("packed", .array([.map([]), attach])),
            "/packed/1/size: expected an integer, found a string"
        )
        says(
            map("marks", .map([.init(key: .text("-17"), value: .bool(true))])),
            "/marks/-17: expected an integer, found a boolean"
        )
        says(
            map("marks", .map([.init(key: .text("x"), value: .bool(true))])),
            "/marks: expected an id, found a string that is not one"
        )
        says(
            map("attaches", .array(Array(repeating: .map([]), count: 17))),
            "/attaches: 17 items, limit 16"
        )
        says(
            map("hash", .bytes(Bytes([UInt8](repeating: 1, count: 65)))),
            "/hash: 65 bytes, limit 64"
        )
        says(
            map("name", .text(Text(String(repeating: "ы", count: 33)))),
            "/name: 66 bytes, limit 64"
        )
        says(.array([]), "expected a map, found an array")
        says(.null, "/chatId: missing")
    }

    @Test("a text is measured in UTF-16 units, and in bytes first")
    func textLimits() throws {
        func says(_ text: String) -> String {
            let payload = encode(
                Tree.map([
                    .init(key: .text("chatId"), value: .int(1)),
                    .init(key: .text("text"), value: .text(Text(text))),
                ])
            )
            return complaint { () throws(PayloadError) in
                try SampleMessage.decode(payload, limits: .standard).text.utf16Count
            }
        }
        #expect(says(String(repeating: "a", count: 4000)) == "no error: 4000")
        #expect(says(String(repeating: "a", count: 4001)) == "/text: 4001 UTF-16 units, limit 4000")
        #expect(says(String(repeating: "漢", count: 4000)) == "no error: 4000")
        #expect(says(String(repeating: "ы", count: 4000)) == "no error: 4000")
        #expect(
            says(String(repeating: "ыы ", count: 1334)) == "/text: 4002 UTF-16 units, limit 4000"
        )
        #expect(says(String(repeating: "ы", count: 4001)) == "/text: 4001 UTF-16 units, limit 4000")
        #expect(says(String(repeating: "🌍", count: 2000)) == "no error: 4000")
        #expect(says(String(repeating: "🌍", count: 2001)) == "/text: 4002 UTF-16 units, limit 4000")
        #expect(says(String(repeating: "a", count: 20001)) == "/text: 20001 bytes, limit 16000")
    }

    @Test("a payload that ends early says after how many bytes, wherever it is cut")
    func truncated() throws {
        let payload = SampleMessage.full.encoded()
        #expect(try SampleMessage.decode(payload, limits: .standard) == .full)
        // The cut bytes stay in memory after the end, so a read past the end would find valid
        // bytes.
        for cut in 1..<payload.count {
            let error = #expect(throws: PayloadError.self) {
                try MessagePackReader.read(Bytes(payload, range: 0..<cut), limits: .standard) {
                    (reader: inout MessagePackReader) throws(PayloadError) in
                    try SampleMessage.read(from: &reader)
                }
            }
            #expect(error?.reason == (cut == 1 ? "ends after 1 byte" : "ends after \(cut) bytes"))
            #expect(throws: PayloadError.self) {
                try MessagePackReader.read(Bytes(payload, range: 0..<cut), limits: .standard) {
                    (reader: inout MessagePackReader) throws(PayloadError) in
                    try reader.skip()
                }
            }
        }
        #expect(
            complaint { () throws(PayloadError) in try skip(hex("ac 68656c6c6f")) }
                == "ends after 6 bytes"
        )
        #expect(complaint { () throws(PayloadError) in try skip([]) } == "ends after 0 bytes")
    }

    @Test("what follows the payload is counted")
    func trailing() {
        func says(_ bytes: [UInt8]) -> String {
            complaint { () throws(PayloadError) in
                try EmptyPayload.decode(bytes, limits: .standard)
            }
        }
        #expect(says([0x80, 0, 0, 0]) == "3 bytes after the payload")
        #expect(says([0x80, 0]) == "1 byte after the payload")
        #expect(says([0x80]).hasPrefix("no error"))
        #expect(says([]).hasPrefix("no error"))
    }

    @Test("extension type 1 around a payload is unwrapped once")
    func extensionOne() {
        func says(_ encoding: String) -> String {
            let bytes = hex(encoding)
            return complaint { () throws(PayloadError) in
                try EmptyPayload.decode(bytes, limits: .standard)
            }
        }
        #expect(says("d401 80").hasPrefix("no error"))
        #expect(says("c70301 81c0c0").hasPrefix("no error"))
        #expect(says("c8000101 80").hasPrefix("no error"))
        #expect(says("c90000000101 80").hasPrefix("no error"))
        #expect(says("c70301 d40180") == "expected a map, found an extension")
        #expect(says("d402 80") == "expected a map, found an extension")
        #expect(says("d401 80 80") == "1 byte after the payload")
        #expect(says("c70201 8080") == "1 byte after the payload")
        // The payload may not extend beyond the end of the extension.
        #expect(says("c70101 81c0c0") == "2 bytes after the payload")
        #expect(says("c70001") == "ends after 3 bytes")
        #expect(says("c7 05 01 80") == "ends after 4 bytes")
        #expect(says("c7") == "ends after 1 byte")
        #expect(says("c8 0001") == "ends after 3 bytes")
    }
}

/// A payload without fields, so all fields in it are unknown.
private struct EmptyPayload: WirePayload {
    static func read(from reader: inout MessagePackReader) throws(PayloadError) -> EmptyPayload {
        for _ in 0..<(try reader.readMapHeader()) {
            _ = try reader.readKey()
            try reader.skip()
        }
        reader.endContainer()
        return EmptyPayload()
    }

    func write(to writer: inout MessagePackWriter) { writer.writeMapHeader(0) }
}
