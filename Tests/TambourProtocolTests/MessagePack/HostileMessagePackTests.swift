import TambourProtocol
import TambourTesting
import Testing

/// Payloads that try to do harm: deep nesting, high counts, and false lengths.
@Suite("hostile MessagePack")
struct HostileMessagePackTests {
    @Test("nesting is allowed to the limit and refused beyond, read or stepped over")
    func depth() throws {
        for (open, close) in [(hex("91"), hex("90")), (hex("81 05"), hex("80"))] {
            let legal = [UInt8](repeating: open, times: 31) + close
            try skip(legal)
            _ = try decode(Tree.self, legal)
            let deep = [UInt8](repeating: open, times: 32) + close
            #expect(complaint { () throws(PayloadError) in try skip(deep) } == Self.tooDeep)
            #expect(
                complaint { () throws(PayloadError) in try decode(AnyValue.self, deep) }
                    == Self.tooDeep
            )
            let error = #expect(throws: PayloadError.self) { try decode(Tree.self, deep) }
            #expect(error?.reason == Self.tooDeep)
        }
    }

    private static let tooDeep = "nested deeper than 32"

    @Test("what is stepped over counts from the depth it is at")
    func depthUnderKnownKeys() {
        func payload(_ levels: Int) -> [UInt8] {
            hex("81 a178") + [UInt8](repeating: [0x91], times: levels - 1) + [0x90]
        }
        func says(_ levels: Int) -> String {
            complaint { () throws(PayloadError) in
                try SampleMessage.decode(payload(levels), limits: .standard)
            }
        }
        #expect(says(31) == "/chatId: missing")
        #expect(says(32) == "nested deeper than 32")
    }

    @Test("100,000 levels end at once, and a high limit costs no call stack")
    func abyss() throws {
        let abyss = [UInt8](repeating: 0x91, count: 100_000)
        #expect(complaint { () throws(PayloadError) in try skip(abyss) } == "nested deeper than 32")
        let limits = try Limits(overrides: ["maxDepth": 1 << 30, "maxElements": 1 << 30])
        #expect(
            complaint { () throws(PayloadError) in try skip(abyss, limits: limits) }
                == "ends after 100000 bytes"
        )
        try skip(abyss + [0xC0], limits: limits)
    }

    @Test("siblings leave their depth behind")
    func siblings() throws {
        let limits = try Limits(overrides: ["maxDepth": 3])
        let inner = hex("92 90 90")
        try skip([0x9F] + [UInt8](repeating: inner, times: 15), limits: limits)
        let tree = try decode(Tree.self, [0x92] + inner + inner, limits: limits)
        #expect(
            tree == .array([.array([.array([]), .array([])]), .array([.array([]), .array([])])])
        )
        // Successive unknown fields, each with the maximum depth.
        let deepest = [UInt8](repeating: 0x91, count: 30) + [0x90]
        let unknown = [0x8F] + [UInt8](repeating: [0xA1, 0x78] + deepest, times: 15)
        #expect(
            complaint { () throws(PayloadError) in
                try SampleMessage.decode(unknown, limits: .standard)
            } == "/chatId: missing"
        )
        // Empty containers of both kinds, at the beginnings and ends of containers.
        try skip(hex("84 c0 80 90 80 80 90 c0 93 80 90 80"), limits: limits)
    }

    @Test("a header that claims more than is there is refused before anything is made room for")
    func claims() {
        for encoding in [
            "dd ffffffff", "df ffffffff", "dc ffff", "de ffff", "9f", "8f c0", "db ffffffff",
            "c6 ffffffff", "c9 ffffffff 01", "dd 7fffffff 00", "df 80000000 0000",
        ] {
            let bytes = hex(encoding)
            let expected =
                bytes.count == 1 ? "ends after 1 byte" : "ends after \(bytes.count) bytes"
            #expect(complaint { () throws(PayloadError) in try skip(bytes) } == expected)
            #expect(
                complaint { () throws(PayloadError) in try decode(Tree.self, bytes) } == expected
            )
            #expect(
                complaint { () throws(PayloadError) in
                    try decode(IDMap<UserID, Tree>.self, bytes)
                }.isEmpty == false
            )
        }
        // An entry has at least two bytes, so 5 bytes cannot contain 3 entries.
        #expect(
            complaint { () throws(PayloadError) in
                try decode(SampleAttach.self, hex("83 0505050505"))
            }
                == "ends after 6 bytes"
        )
    }

    @Test("elements are counted over the whole payload, read or stepped over")
    func elements() throws {
        let limits = try Limits(overrides: ["maxElements": 10])
        // 3 + 7 elements; an entry counts as one element.
        let legal = hex("93 94 01020304 90 83 0101 0202 0303")
        try skip(legal, limits: limits)
        _ = try decode(Tree.self, legal, limits: limits)
        let more = hex("93 94 01020304 9101 83 0101 0202 0303")
        let reason = "more than 10 elements"
        #expect(complaint { () throws(PayloadError) in try skip(more, limits: limits) } == reason)
        let error = #expect(throws: PayloadError.self) {
            try decode(Tree.self, more, limits: limits)
        }
        #expect(error?.reason == reason)

        let flood = hex("dd 00010001") + [UInt8](repeating: 0xC0, count: 65537)
        #expect(
            complaint { () throws(PayloadError) in try skip(flood) } == "more than 65536 elements"
        )
        try skip(hex("dd 00010000") + [UInt8](repeating: 0xC0, count: 65536))
    }

    @Test("strings that are stepped over may be anything, unless their bytes are kept")
    func skippedText() throws {
        let payload = hex("81 a178 a1ff")
        #expect(
            complaint { () throws(PayloadError) in
                try SampleMessage.decode(payload, limits: .standard)
            } == "/chatId: missing"
        )
        #expect(
            complaint { () throws(PayloadError) in try decode(AnyValue.self, payload) }
                == "not valid UTF-8"
        )
        let attaches = hex("91") + payload
        #expect(
            complaint { () throws(PayloadError) in
                try decode(Packed<[SampleAttach]>.self, attaches)
            } == "/0: not valid UTF-8"
        )
        // After the kept bytes, skipped strings may be invalid again.
        let both = hex("82 a5 6578747261 c0") + hex("a178 a1ff")
        #expect(
            complaint { () throws(PayloadError) in
                try SampleMessage.decode(both, limits: .standard)
            } == "/chatId: missing"
        )
    }

    @Test("an array that promises much makes room for little")
    func promises() {
        // 60,000 arrays of 60,000 items would have 3.6 billion items.
        let bytes = hex("dc ea60") + [UInt8](repeating: hex("dc ea60"), times: 30000)
        let error = #expect(throws: PayloadError.self) { try decode([[Int64]].self, bytes) }
        #expect(error?.description == "/0: more than 65536 elements")
    }
}
