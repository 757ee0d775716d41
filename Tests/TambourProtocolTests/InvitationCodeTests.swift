import TambourProtocol
import Testing

@Suite("The code of an invitation")
struct InvitationCodeTests {
    @Test("is sixteen letters and digits in groups of four")
    func description() {
        #expect("\(InvitationCode([UInt8](repeating: 0, count: 10)))" == "0000-0000-0000-0000")
        #expect("\(InvitationCode([UInt8](repeating: 255, count: 10)))" == "ZZZZ-ZZZZ-ZZZZ-ZZZZ")
        // The bits form groups of five. The values of the groups are 1 to 8, twice.
        let bytes: [UInt8] = [0x08, 0x86, 0x42, 0x98, 0xE8, 0x08, 0x86, 0x42, 0x98, 0xE8]
        #expect("\(InvitationCode(bytes))" == "1234-5678-1234-5678")
    }

    @Test("is read as people write it")
    func reading() {
        let code = InvitationCode("K7QF-9M2X-4TBW-8HRN")
        #expect(code != nil)
        for text in ["k7qf9m2x4tbw8hrn", " K7QF 9M2X\t4TBW 8HRN ", "-K-7-QF9M2X4TBW8HRN"] {
            #expect(InvitationCode(text) == code, "\(text)")
        }
        #expect(InvitationCode("oOiI-lL00-1111-0000") == InvitationCode("0011-1100-1111-0000"))
    }

    @Test(
        "is nothing else",
        arguments: [
            "", "-", "K7QF-9M2X-4TBW-8HR", "K7QF-9M2X-4TBW-8HRN0", "K7QF-9M2X-4TBW-8HRU",
            "K7QF_9M2X_4TBW_8HRN", "K7QF-9M2X-4TBW-8HR\u{0}", "К7QF-9M2X-4TBW-8HRN",
            "+79990000001", String(repeating: "0", count: 1_000_000),
        ]
    )
    func refusals(text: String) {
        #expect(InvitationCode(text) == nil)
    }

    @Test("survives writing and reading")
    func roundTrip() {
        let seed = UInt64.random(in: .min ... .max)
        var state = seed
        for _ in 0..<1_000 {
            let bytes = (0..<InvitationCode.byteCount).map { _ in
                state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
                return UInt8(truncatingIfNeeded: state >> 56)
            }
            let code = InvitationCode(bytes)
            #expect(InvitationCode("\(code)") == code, "seed \(seed)")
            #expect(code.symbols.utf8.count == 16, "seed \(seed)")
        }
    }
}
