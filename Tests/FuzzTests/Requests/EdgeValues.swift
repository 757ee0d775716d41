@testable import tambour_spec

/// A value to put at a site of a request, or another change of this site.
struct Edge: Sendable {
    enum Change: Sendable {
        case value(WireNode)
        /// The given number of copies of one valid item. If not all copies fit into the frame, as
        /// many as fit.
        case copies(Int)
        /// A list or a text that is as long as the frame permits. Each of its parts has the maximum
        /// size for such a part.
        case largest
        /// A valid id, written as a string of digits.
        case digits
        /// An id that is valid elsewhere: in another account, in another chat, or for another kind
        /// of object.
        case foreign
        case removed
        /// The key of the site occurs twice in its map.
        case twice
    }

    let name: String
    let change: Change

    /// Returns the edges to try at a site: first the edges for its type, then values of wrong
    /// types.
    static func edges(of site: FuzzSite, in specification: Specification) -> [Edge] {
        let limit = site.limit(in: specification)
        var edges: [Edge] =
            switch site.type {
            case .int, .ms: numbers
            case .chatID, .userID, .messageID: numbers + ids
            case .bool: [true, false].map { Edge(name: "\($0)", change: .value(.bool($0))) }
            case .double: doubles
            case .text, .string: texts(limit)
            case .bytes: blobs(limit)
            case .any: anything
            case .list: lists(limit)
            case .map, .names: maps(limit)
            case .named(let name): named(name, in: specification)
            default: []
            }
        edges += wrongKinds
        if case .key = site.steps.last {
            edges.append(Edge(name: "removed", change: .removed))
            edges.append(Edge(name: "twice", change: .twice))
        }
        return edges
    }

    private static func edge(_ name: String, _ node: WireNode) -> Edge {
        Edge(name: name, change: .value(node))
    }

    // MARK: - By type

    /// The numbers at which integer arithmetic is most likely to fail.
    static let sharpNumbers: [Int64] = [
        .min, .max, .min + 1, .max - 1, -1, 0, 1, 2, -(1 << 31), 1 << 31, (1 << 31) - 1,
        -(1 << 31) - 1, 1 << 32, 1 << 53, (1 << 53) + 1, -(1 << 53), 1 << 47, -(1 << 47), 1 << 62,
        65_535, 65_536, 1_000_000_000_000,
    ]

    private static let numbers =
        sharpNumbers.map { edge("\($0)", .int($0)) } + [
            edge("2^63", .uint(1 << 63)), edge("2^64-1", .uint(.max)),
            edge("1 in nine bytes", .forced("u64", .int(1))),
            edge("-1 in nine bytes", .forced("i64", .int(-1))),
        ]

    private static let ids =
        [Edge(name: "digits", change: .digits), Edge(name: "foreign", change: .foreign)]
        + [
            "\(Int64.min)", "\(Int64.max)", "9223372036854775808", "-9223372036854775809", "0",
            "-0", "-1", "01", "+1", " 1", "1 ", "1e3", "0x10", "", "-", "\u{0661}",
            String(repeating: "9", count: 400),
        ].map { edge("\"\($0.prefix(24))\"", .string($0)) }

    private static let doubles =
        [
            0, -0.0, .nan, .infinity, -.infinity, .greatestFiniteMagnitude,
            .leastNonzeroMagnitude, 1e18, -1e19, 180.0001, -90.5,
        ].map { edge("\($0)", .double($0)) } + [edge("an integer", .int(.min))]

    private static func texts(_ limit: Int?) -> [Edge] {
        let length = limit ?? 4_096
        func repeated(_ text: String, _ count: Int) -> WireNode {
            .string(String(repeating: text, count: max(count, 0)))
        }
        return [
            edge("empty", .string("")), edge("NUL", .string("\0")),
            edge("NUL inside", .string("a\0b")), edge("blanks", .string(" \t\r\n\u{A0}\u{2003}")),
            edge("at the limit", repeated("a", length)),
            edge("over the limit", repeated("a", length + 1)),
            edge("two bytes a unit", repeated("\u{436}", length)),
            edge("three bytes a unit", repeated("\u{4E16}", length)),
            edge("surrogate pairs", repeated("\u{1F600}", length / 2)),
            edge("combining", .string("e" + String(repeating: "\u{301}", count: 500))),
            edge("right to left", .string("\u{202E}\u{2066}abc\u{200F}\u{FEFF}")),
            edge("last scalars", .string("\u{10FFFF}\u{FFFF}\u{FFFE}\u{D7FF}\u{E000}")),
            edge("one code", .string("\u{1F468}\u{200D}\u{1F469}\u{200D}\u{1F467}")),
            edge("100 KB", repeated("x", 100_000)),
            edge("many words", repeated("ab cd ", min(length, 100_000) / 6)),
            edge("query operators", .string("\"a\" OR b* NEAR(c d) -e ^f:g (")),
            edge("wildcards", .string("%_\\%' \" ; -- *")),
            edge("digits", .string("79990000001")), edge("phone", .string("+7 999 000-00-01")),
            edge("negative", .string("-9223372036854775808")),
            edge("path", .string("../../etc/passwd")),
            edge("link", .string("https://example.org/join/abc?x=1#y")),
            edge("bare link", .string("join/")), edge("at", .string("@")),
            edge("cut UTF-8", .badString([0xC3])), edge("bad UTF-8", .badString([0xC3, 0x28])),
            edge("a surrogate", .badString([0xED, 0xA0, 0x80])),
            edge("above Unicode", .badString([0xF4, 0x90, 0x80, 0x80])),
            edge("overlong", .badString([0xC0, 0xAF])),
            edge("str32", .forced("str32", .string("a"))),
        ]
    }

    private static func blobs(_ limit: Int?) -> [Edge] {
        let length = limit ?? 4_096
        return [0, 1, length, length + 1, 100_000].map {
            edge("\($0) bytes", .bytes(Array(repeating: 7, count: $0)))
        }
    }

    /// Values for a field without a type, including values that other clients may be unable to
    /// read.
    private static let anything: [Edge] =
        [
            edge("nil", .null), edge("minimum", .int(.min)), edge("2^64-1", .uint(.max)),
            edge("NaN", .double(.nan)), edge("bytes", .bytes(Array(repeating: 1, count: 300))),
            edge("a text of 500 KB", .string(String(repeating: "y", count: 500_000))),
            edge("bytes of 900 KB", .bytes(Array(repeating: 1, count: 900_000))),
            edge("a list of 60,000", .list(of: .int(1), count: 60_000)),
            edge("a list of 70,000", .list(of: .int(1), count: 70_000)),
            edge("number as key", .map([.init(key: .int(1), value: .int(2))])),
            edge("list as key", .map([.init(key: .array([.int(1)]), value: .null)])),
            edge("map as key", .map([.init(key: .map([]), value: .null)])),
            edge("nil as key", .map([.init(key: .null, value: .null)])),
            edge("key twice", .object(["k": .int(1), "k": .int(1)])),
            edge("bad key", .map([.init(key: .badString([0xFF]), value: .null)])),
            edge("bad text", .badString([0xFF])),
            edge("extension 1", .ext(type: 1, [1, 2, 3])),
            edge("timestamp", .ext(type: -1, [0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0])),
            edge("a byte of no format", .raw([0xC1])), edge("a cut map", .raw([0x82, 0xA1, 0x61])),
        ]
        + [4, 16, 24, 28, 29, 30, 31, 32, 33, 1_000].flatMap { depth in
            [
                edge("\(depth) lists deep", nested(depth) { .array([$0]) }),
                edge("\(depth) maps deep", nested(depth) { .object(["k": $0]) }),
            ]
        }

    private static func nested(_ depth: Int, _ wrap: (WireNode) -> WireNode) -> WireNode {
        // Encode the nested value here, because copying a deeply nested node would recurse through
        // every level.
        var opening: [UInt8] = []
        let level = WireEncoder.encode(wrap(.null)).dropLast()
        for _ in 0..<depth { opening += level }
        return .raw(opening + [0x01])
    }

    private static func lists(_ limit: Int?) -> [Edge] {
        let most = limit ?? 1_000
        return [
            edge("empty", .array([])), edge("nil inside", .array([.null])),
            Edge(name: "one", change: .copies(1)), Edge(name: "two alike", change: .copies(2)),
            Edge(name: "as many as may be", change: .copies(most)),
            Edge(name: "one too many", change: .copies(most + 1)),
            Edge(name: "70,000", change: .copies(70_000)),
            Edge(name: "largest", change: .largest),
            edge("array32", .forced("array32", .array([]))),
            edge("claims 2^32-1", .raw([0xDD, 0xFF, 0xFF, 0xFF, 0xFF])),
        ]
    }

    private static func maps(_ limit: Int?) -> [Edge] {
        [
            edge("empty", .map([])), Edge(name: "one", change: .copies(1)),
            Edge(name: "one key twice", change: .copies(2)),
            Edge(name: "one key 400 times", change: .copies(400)),
            Edge(name: "one key \(limit ?? 5_000) times", change: .copies(limit ?? 5_000)),
            Edge(name: "largest", change: .largest),
            edge("nil as key", .map([.init(key: .null, value: .null)])),
            edge("list as key", .map([.init(key: .array([]), value: .null)])),
            edge("empty key", .object(["": .int(1)])),
            edge("claims 2^32-1", .raw([0xDF, 0xFF, 0xFF, 0xFF, 0xFF])),
        ]
    }

    private static func named(_ name: String, in specification: Specification) -> [Edge] {
        guard let type = specification.enumType(named: name) else {
            return [
                edge("empty", .map([])),
                edge("only unknown", .object(["nobody": .array([])])),
            ]
        }
        return type.values.map { edge($0.value, .string($0.value)) } + [
            edge("unknown", .string("NOBODY_KNOWS")), edge("empty", .string("")),
            edge("lower case", .string(type.values[0].value.lowercased())),
            edge("long", .string(String(repeating: "A", count: 100_000))),
        ]
    }

    private static let wrongKinds = [
        edge("nil", .null), edge("a boolean", .bool(true)), edge("a number", .int(7)),
        edge("a text", .string("x")), edge("a float", .double(1.5)), edge("bytes", .bytes([0x61])),
        edge("a list", .array([])), edge("a map", .map([])),
        edge("an extension", .ext(type: 5, [])),
    ]
}

extension WireNode {
    /// Returns a list that repeats one item. Encodes the list at once, because it would be slow to
    /// create a node for each item.
    static func list(of item: WireNode, count: Int) -> WireNode {
        repeated(WireEncoder.encode(item), count, first: 0xDD)
    }

    /// Returns a map that repeats one entry.
    static func map(of entry: Pair, count: Int) -> WireNode {
        repeated(Array(WireEncoder.encode(.map([entry])).dropFirst()), count, first: 0xDF)
    }

    private static func repeated(_ bytes: [UInt8], _ count: Int, first: UInt8) -> WireNode {
        var all = [first] + (0..<4).map { UInt8(count >> (24 - 8 * $0) & 0xFF) }
        all.reserveCapacity(5 + bytes.count * count)
        for _ in 0..<count { all += bytes }
        return .raw(all)
    }

    /// A map with string keys.
    static func object(_ entries: KeyValuePairs<String, WireNode>) -> WireNode {
        .map(entries.map { Pair(key: .string($0.key), value: $0.value) })
    }
}
