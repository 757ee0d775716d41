import TambourProtocol
import TambourTesting
import Testing

/// Vectors of this project: for every type, the shortest form first, then every other form that a
/// peer may use.
@Suite("every encoding of every type")
struct EncodingVectorTests {
    @Test(
        "integers of every width are read, the shortest is written",
        arguments: [
            (
                0,
                [
                    "00", "cc00", "cd0000", "ce00000000", "cf0000000000000000", "d000", "d10000",
                    "d200000000", "d30000000000000000",
                ]
            ),
            (
                1,
                [
                    "01", "cc01", "cd0001", "ce00000001", "cf0000000000000001", "d001", "d10001",
                    "d200000001", "d30000000000000001",
                ]
            ),
            (
                127,
                [
                    "7f", "cc7f", "cd007f", "ce0000007f", "cf000000000000007f", "d07f", "d1007f",
                    "d20000007f", "d3000000000000007f",
                ]
            ),
            (
                128,
                [
                    "cc80", "cd0080", "ce00000080", "cf0000000000000080", "d10080", "d200000080",
                    "d30000000000000080",
                ]
            ),
            (
                255,
                [
                    "ccff", "cd00ff", "ce000000ff", "cf00000000000000ff", "d100ff", "d2000000ff",
                    "d300000000000000ff",
                ]
            ),
            (
                256,
                [
                    "cd0100", "ce00000100", "cf0000000000000100", "d10100", "d200000100",
                    "d30000000000000100",
                ]
            ),
            (
                32767,
                [
                    "cd7fff", "ce00007fff", "cf0000000000007fff", "d17fff", "d200007fff",
                    "d30000000000007fff",
                ]
            ),
            (
                32768,
                ["cd8000", "ce00008000", "cf0000000000008000", "d200008000", "d30000000000008000"]
            ),
            (
                65535,
                ["cdffff", "ce0000ffff", "cf000000000000ffff", "d20000ffff", "d3000000000000ffff"]
            ),
            (65536, ["ce00010000", "cf0000000000010000", "d200010000", "d30000000000010000"]),
            (
                2_147_483_647,
                ["ce7fffffff", "cf000000007fffffff", "d27fffffff", "d3000000007fffffff"]
            ),
            (2_147_483_648, ["ce80000000", "cf0000000080000000", "d30000000080000000"]),
            (4_294_967_295, ["ceffffffff", "cf00000000ffffffff", "d300000000ffffffff"]),
            (4_294_967_296, ["cf0000000100000000", "d30000000100000000"]),
            (.max, ["cf7fffffffffffffff", "d37fffffffffffffff"]),
            (-1, ["ff", "d0ff", "d1ffff", "d2ffffffff", "d3ffffffffffffffff"]),
            (-32, ["e0", "d0e0", "d1ffe0", "d2ffffffe0", "d3ffffffffffffffe0"]),
            (-33, ["d0df", "d1ffdf", "d2ffffffdf", "d3ffffffffffffffdf"]),
            (-128, ["d080", "d1ff80", "d2ffffff80", "d3ffffffffffffff80"]),
            (-129, ["d1ff7f", "d2ffffff7f", "d3ffffffffffffff7f"]),
            (-32768, ["d18000", "d2ffff8000", "d3ffffffffffff8000"]),
            (-32769, ["d2ffff7fff", "d3ffffffffffff7fff"]),
            (-2_147_483_648, ["d280000000", "d3ffffffff80000000"]),
            (-2_147_483_649, ["d3ffffffff7fffffff"]),
            (.min, ["d38000000000000000"]),
        ] as [(Int64, [String])]
    )
    func integers(value: Int64, encodings: [String]) throws {
        #expect(hexText(encode(value)) == encodings[0])
        for encoding in encodings {
            let bytes = hex(encoding)
            #expect(try decode(Int64.self, bytes) == value)
            #expect(try decode(Int.self, bytes) == Int(value))
            #expect(try decode(ChatID.self, bytes) == ChatID(value))
            #expect(try decode(Double.self, bytes) == Double(value))
            // The same number as a map key.
            let map = try decode(IDMap<UserID, Bool>.self, [0x81] + bytes + [0xC3])
            #expect(map[UserID(value)] == true)
            let keys = try keys(of: [0x81] + bytes + [0xC0])
            #expect(keys == ["int \(value)"])
            try skip(bytes)
        }
    }

    @Test("an unsigned integer beyond 63 bits is no integer, but a number and skippable")
    func unsigned() throws {
        for encoding in ["cf8000000000000000", "cfffffffffffffffff"] {
            let bytes = hex(encoding)
            let reason = "an integer above 9223372036854775807"
            #expect(
                complaint { () throws(PayloadError) in try decode(Int64.self, bytes) } == reason
            )
            #expect(
                complaint { () throws(PayloadError) in try decode(UserID.self, bytes) } == reason
            )
            #expect(try decode(Double.self, bytes) > 9.2e18)
            #expect(try keys(of: [0x81] + bytes + [0xC0]) == ["other"])
            try skip(bytes)
        }
    }

    @Test("floats of both widths are read, 64 bits are written")
    func floats() throws {
        #expect(hexText(encode(0.5)) == "cb3fe0000000000000")
        #expect(hexText(encode(1.0)) == "cb3ff0000000000000")
        #expect(try decode(Double.self, hex("ca3f000000")) == 0.5)
        #expect(try decode(Double.self, hex("cbbfe0000000000000")) == -0.5)
        #expect(try decode(Double.self, hex("ca7f800000")) == .infinity)
        #expect(try decode(Double.self, hex("cb7ff8000000000000")).isNaN)
    }

    @Test("nil and booleans")
    func small() throws {
        #expect(encode(Tree.null) == [0xC0])
        #expect(encode(true) == [0xC3] && encode(false) == [0xC2])
        #expect(try decode(Bool.self, [0xC3]))
        #expect(try !decode(Bool.self, [0xC2]))
        #expect(try decode(Tree.self, [0xC0]) == .null)
    }

    @Test(
        "strings and binary of every length take the shortest header, any is read",
        arguments: [0, 1, 31, 32, 255, 256, 65535, 65536]
    )
    func lengths(count: Int) throws {
        let content = [UInt8](repeating: UInt8(ascii: "a"), count: count)
        let headers = headers(count, fix: count < 32 ? 0xA0 : nil, 0xD9, 0xDA, 0xDB)
        for header in headers {
            #expect(try decode(Text.self, header + content).bytes.array == content)
            #expect(try decode(String.self, header + content).utf8.count == count)
            #expect(try decode(Bytes.self, header + content).array == content)
            try skip(header + content)
        }
        let text = Text(unchecked: Bytes(content))
        #expect(encode(text) == headers[0] + content)
        #expect(encode(String(text)) == headers[0] + content)

        let binaryHeaders = self.headers(count, fix: nil, 0xC4, 0xC5, 0xC6)
        for header in binaryHeaders {
            #expect(try decode(Bytes.self, header + content).array == content)
            try skip(header + content)
        }
        #expect(encode(Bytes(content)) == binaryHeaders[0] + content)
    }

    @Test(
        "arrays and maps of every size take the shortest header, any is read",
        arguments: [0, 1, 15, 16, 65535, 65536]
    )
    func containers(count: Int) throws {
        let limits = try Limits(overrides: ["maxElements": 70000])
        let items = [UInt8](repeating: 7, count: count)
        let headers = headers(count, fix: count < 16 ? 0x90 : nil, nil, 0xDC, 0xDD)
        for header in headers {
            #expect(try decode([Int64].self, header + items, limits: limits).count == count)
            try skip(header + items, limits: limits)
        }
        #expect(encode([Int64](repeating: 7, count: count)) == headers[0] + items)

        let entries = [UInt8](repeating: 7, count: count * 2)
        let mapHeaders = self.headers(count, fix: count < 16 ? 0x80 : nil, nil, 0xDE, 0xDF)
        for header in mapHeaders {
            let map = try decode(IDMap<UserID, Int64>.self, header + entries, limits: limits)
            #expect(map.count == count)
            try skip(header + entries, limits: limits)
        }
        var writer = MessagePackWriter(capacity: 0)
        writer.writeMapHeader(count)
        #expect(writer.finish() == mapHeaders[0])
    }

    @Test(
        "an extension of every form is stepped over and kept",
        arguments: [
            "d40510", "d5052021", "d60530313233", "d7054041424344454647",
            "d80550515253545556575859 5a5b5c5d5e5f", "c70005", "c8000005", "c90000000005",
            "c70305707172", "c8000305707172", "c90000000305707172",
            // Timestamps of all three sizes.
            "d6ff5a4af6a5", "d7ffa1dcd7c85a4af6a5", "c70cff3b9ac9ffffffffff7c55817f",
        ]
    )
    func extensions(encoding: String) throws {
        let bytes = hex(encoding)
        try skip(bytes)
        #expect(try decode(AnyValue.self, bytes).bytes.array == bytes)
        #expect(encode(try decode(AnyValue.self, bytes)) == bytes)
        #expect(try keys(of: [0x81] + bytes + [0xC0]) == ["other"])
        for cut in 0..<bytes.count {
            #expect(throws: PayloadError.self) { try skip(Array(bytes[..<cut])) }
        }
    }

    @Test("a key of any type is told or stepped over")
    func keyTypes() throws {
        let map = hex("88 a161 01  d90162 01  05 01  ff 01  c0 01  c3 01  c40100 01  9101 01")
        #expect(
            try keys(of: map) == ["a", "b", "int 5", "int -1", "other", "other", "other", "other"]
        )
    }

    /// Returns all headers that announce `count`, shortest first.
    private func headers(
        _ count: Int,
        fix: UInt8?,
        _ one: UInt8?,
        _ two: UInt8,
        _ four: UInt8
    ) -> [[UInt8]] {
        var all: [[UInt8]] = []
        if let fix { all.append([fix | UInt8(count)]) }
        if let one, count < 256 { all.append([one, UInt8(count)]) }
        if count < 65536 { all.append([two, UInt8(count >> 8), UInt8(count & 255)]) }
        all.append([four, 0, UInt8(count >> 16), UInt8(count >> 8 & 255), UInt8(count & 255)])
        return all
    }

    /// Returns the keys of a map and skips its values.
    private func keys(of bytes: [UInt8]) throws(PayloadError) -> [String] {
        try MessagePackReader.read(Bytes(bytes), limits: .standard) {
            (reader: inout MessagePackReader) throws(PayloadError) -> [String] in
            var keys: [String] = []
            for _ in 0..<(try reader.readMapHeader()) {
                switch try reader.readKey() {
                case .name(let name): keys.append(String(decoding: name, as: UTF8.self))
                case .int(let number): keys.append("int \(number)")
                case .other: keys.append("other")
                }
                try reader.skip()
            }
            reader.endContainer()
            return keys
        }
    }
}
