import TambourProtocol
import TambourTesting
import Testing

/// Maps, lists and values of any type with limits. A refusal names the place that exceeds a limit.
@Suite("Bounded readers")
struct BoundedReaderTests {
    private typealias Marks = IDMap<UserID, Int64>
    private typealias Names = NameMap<Int64>

    private func ids(
        _ bytes: [UInt8],
        maxItems: Int = 100,
        _ duplicates: Duplicates = .merged
    ) throws(PayloadError) -> [[Int64]] {
        try MessagePackReader.read(Bytes(bytes), limits: .standard) {
            (reader: inout MessagePackReader) throws(PayloadError) in
            try Marks.read(from: &reader, maxItems: maxItems, duplicates: duplicates) {
                (reader: inout MessagePackReader) throws(PayloadError) in try reader.readInt()
            }.pairs.map { [$0.0.rawValue, $0.1] }
        }
    }

    private func names(
        _ bytes: [UInt8],
        maxItems: Int = 100,
        _ duplicates: Duplicates = .merged
    ) throws(PayloadError) -> [String] {
        try MessagePackReader.read(Bytes(bytes), limits: .standard) {
            (reader: inout MessagePackReader) throws(PayloadError) in
            try Names.read(from: &reader, maxItems: maxItems, duplicates: duplicates) {
                (reader: inout MessagePackReader) throws(PayloadError) in try reader.readInt()
            }.pairs.map { "\($0.0) \($0.1)" }
        }
    }

    private func list(
        _ bytes: [UInt8],
        maxItems: Int = 100,
        _ duplicates: Duplicates = .merged
    ) throws(PayloadError) -> [Int64] {
        try MessagePackReader.read(Bytes(bytes), limits: .standard) {
            (reader: inout MessagePackReader) throws(PayloadError) in
            try reader.readList(maxItems: maxItems, duplicates: duplicates) {
                (reader: inout MessagePackReader) throws(PayloadError) in try reader.readInt()
            }
        }
    }

    private func any(
        _ bytes: [UInt8],
        maxBytes: Int = 64,
        limits: Limits = .standard
    ) throws(PayloadError) -> [UInt8] {
        try MessagePackReader.read(Bytes(bytes), limits: limits) {
            (reader: inout MessagePackReader) throws(PayloadError) in
            try AnyValue.read(from: &reader, maxBytes: maxBytes).bytes.array
        }
    }

    /// Returns `count` pairs of a key and a position, with keys from 0 to `different` - 1.
    private func tree(_ count: Int, different: Int, named: Bool) -> [UInt8] {
        let entries = (0..<count).map { index in
            let key = index % different
            return Tree.Entry(
                key: named ? .text(Text("\(key)")) : .int(Int64(key)),
                value: .int(Int64(index))
            )
        }
        return encode(Tree.map(entries))
    }

    @Test("the last value of a repeated key counts, in the place of the first", arguments: [3, 90])
    func merged(different: Int) throws {
        let count = different * 2 - 1
        let expected = (0..<different).map { index in
            [Int64(index), Int64(index + different < count ? index + different : index)]
        }
        #expect(
            try ids(tree(count, different: different, named: false), maxItems: 500) == expected
        )
        #expect(
            try names(tree(count, different: different, named: true), maxItems: 500)
                == expected.map { "\($0[0]) \($0[1])" }
        )
    }

    @Test("a repeated key is refused where the field says so", arguments: [1, 50])
    func refused(different: Int) throws {
        let count = different + 1
        #expect(
            complaint { () throws(PayloadError) in
                try ids(tree(count, different: different, named: false), .refused)
            } == "/0: duplicate key"
        )
        #expect(
            complaint { () throws(PayloadError) in
                try names(tree(count, different: different, named: true), .refused)
            } == "/0: duplicate key"
        )
        #expect(try ids(tree(count, different: different, named: false), .kept).count == count)
    }

    @Test("a repeated item counts once, or is refused", arguments: [3, 70])
    func items(different: Int) throws {
        let items = (0..<different) + [1] + (0..<different)
        let bytes = encode(items.map { Int64($0) })
        #expect(try list(bytes, maxItems: 500) == (0..<different).map { Int64($0) })
        #expect(try list(bytes, maxItems: 500, .kept).count == items.count)
        #expect(
            complaint { () throws(PayloadError) in try list(bytes, maxItems: 500, .refused) }
                == "/\(different): duplicate item"
        )
        #expect(try list(encode([Int64(7)]), .refused) == [7])
    }

    @Test("a container with one entry more than its bound is refused by its header")
    func tooManyItems() throws {
        #expect(try ids(tree(4, different: 4, named: false), maxItems: 4).count == 4)
        // The reader refuses the count before it reads the entries, which are invalid.
        #expect(
            complaint { () throws(PayloadError) in try ids(hex("82 c0c0 c0c0"), maxItems: 1) }
                == "2 items, limit 1"
        )
        #expect(
            complaint { () throws(PayloadError) in try names(hex("82 c0c0 c0c0"), maxItems: 1) }
                == "2 items, limit 1"
        )
        #expect(
            complaint { () throws(PayloadError) in try list(hex("92 c0 c0"), maxItems: 1) }
                == "2 items, limit 1"
        )
    }

    @Test("a value of any type is read when every client can decode it")
    func decodable() throws {
        let values: [Tree] = [
            .null, .bool(true), .int(.min), .int(.max), .float(Double.nan.bitPattern),
            .text("ё"), .bytes(Bytes([1, 2])),
            .array([.map([.init(key: .text("a"), value: .array([.int(1)]))])]),
        ]
        for value in values {
            let bytes = encode(value)
            #expect(try any(bytes) == bytes)
        }
    }

    @Test("a value that some client cannot decode is refused", arguments: undecodable)
    func refusesUndecodable(value: Hostile) {
        #expect(
            complaint { () throws(PayloadError) in try any(hex(value.bytes)) } == value.reason
        )
        // An older store may contain a value like this. The rest of the value's container must stay
        // readable.
        if value.isMessagePack {
            let element = encode(
                Element(type: "STRONG", attributes: AnyValue(unchecked: Bytes(hex(value.bytes))))
            )
            #expect(Packed<Element>(unchecked: Bytes(element)).stored?.type == "STRONG")
        }
    }

    struct Hostile: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let bytes: String
        let reason: String
        var isMessagePack = true
    }

    static let undecodable: [Hostile] = [
        .init("a list as a key", "81 9101 01", "expected a string as a key, found an array"),
        .init("a map as a key", "81 80 01", "expected a string as a key, found a map"),
        .init("an integer as a key", "81 01 01", "expected a string as a key, found an integer"),
        .init("nil as a key", "91 81 c0 01", "expected a string as a key, found nil"),
        .init(
            "a timestamp with bad nanoseconds",
            "d7ff ffffffffffffffff",
            "an extension, which clients cannot read"
        ),
        .init("a good timestamp", "d6ff 00000001", "an extension, which clients cannot read"),
        .init(
            "an extension of type 1 in a map",
            "81 a161 c70301 c1c1c1",
            "an extension, which clients cannot read"
        ),
        .init("an integer above Int64", "91 cf8000000000000000", "an integer above \(Int64.max)"),
        .init(
            "28 lists",
            String(repeating: "91", count: 28) + "c0",
            "nested deeper than \(Limits.standard.maxAnyDepth)"
        ),
        .init(
            "9 maps",
            String(repeating: "81 a161", count: 9) + "c0",
            "nested deeper than \(Limits.standard.maxAnyDepth)"
        ),
        .init("a string that is not UTF-8", "81 a161 a2ffff", "not valid UTF-8", false),
        .init("a key that is not UTF-8", "81 a1ff c0", "not valid UTF-8", false),
        .init("no value", "81 a161", "ends after 3 bytes", false),
        .init("no key", "91 81", "ends after 2 bytes", false),
    ]

    @Test("a value of any type has a bound of its bytes")
    func tooManyBytes() throws {
        let text = encode(String(repeating: "a", count: 30))
        #expect(try any(text, maxBytes: 31) == text)
        #expect(
            complaint { () throws(PayloadError) in try any(text, maxBytes: 30) }
                == "31 bytes, limit 30"
        )
    }

    @Test("eight levels are read, nine are not, wherever they stand")
    func levels() throws {
        let eight = hex(String(repeating: "91", count: 8) + "01")
        #expect(try any(eight) == eight)
        let limits = try Limits(overrides: ["maxDepth": 7])
        #expect(
            complaint { () throws(PayloadError) in try any(eight, limits: limits) }
                == "nested deeper than 7"
        )
    }
}

extension BoundedReaderTests.Hostile {
    init(_ name: String, _ bytes: String, _ reason: String, _ isMessagePack: Bool = true) {
        self.init(
            testDescription: name,
            bytes: bytes,
            reason: reason,
            isMessagePack: isMessagePack
        )
    }
}
