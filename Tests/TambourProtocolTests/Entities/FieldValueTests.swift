import TambourProtocol
import Testing

/// Values are equal if their bytes are equal. Values know their encoded size, and can patch fields.
@Suite("Field values")
struct FieldValueTests {
    @Test("are equal when their bytes are")
    func areEqual() {
        #expect(FieldValue.double(.nan) == .double(.nan))
        #expect(FieldValue.double(0) != .double(-0.0))
        #expect(FieldValue.string("\u{E9}") != .string("e\u{301}"))
        #expect(FieldValue.int(1) != .double(1))
        #expect(FieldValue.list([.null, .bool(true)]) == .list([.null, .bool(true)]))
        #expect(Set<FieldValue>([.double(.nan), .double(.nan), .null, .null]).count == 2)
    }

    private typealias Sizes<Value> = [(value: Value, size: Int)]

    @Test("know the size of an integer's shortest MessagePack form")
    func sizeOfIntegers() {
        let sizes: Sizes<Int64> = [
            (127, 1), (128, 2), (255, 2), (256, 3), (65_535, 3), (65_536, 5),
            (4_294_967_295, 5), (4_294_967_296, 9), (.max, 9),
            (-32, 1), (-33, 2), (-128, 2), (-129, 3), (-32_768, 3), (-32_769, 5),
            (-2_147_483_648, 5), (-2_147_483_649, 9), (.min, 9),
        ]
        for (value, size) in sizes { #expect(FieldValue.int(value).encodedSize == size) }
    }

    @Test("know the size of what has a length")
    func sizeByLength() {
        let strings: Sizes<Int> = [(31, 1), (32, 2), (255, 2), (256, 3), (65_535, 3), (65_536, 5)]
        for (count, header) in strings {
            let text = String(repeating: "a", count: count)
            #expect(FieldValue.string(text).encodedSize == header + count)
        }
        let bytes: Sizes<Int> = [(0, 2), (255, 2), (256, 3), (65_535, 3), (65_536, 5)]
        for (count, header) in bytes {
            let value = FieldValue.bytes(Array(repeating: 0, count: count))
            #expect(value.encodedSize == header + count)
        }
        let lists: Sizes<Int> = [(15, 1), (16, 3), (65_535, 3), (65_536, 5)]
        for (count, header) in lists {
            let value = FieldValue.list(Array(repeating: .null, count: count))
            #expect(value.encodedSize == header + count)
        }
        #expect(FieldValue.map(["a": .double(1), "bc": .list([.bool(true)])]).encodedSize == 17)
    }

    @Test("of a patch replace, add and remove")
    func patch() {
        let fields: [String: FieldValue] = ["a": .int(1), "b": .int(2)]
        let patched = fields.patched(with: ["a": .null, "b": .int(3), "c": .list([.null])])
        #expect(patched == ["b": .int(3), "c": .list([.null])])
        #expect(fields.patched(with: fields.patch(to: patched)) == patched)
    }
}
