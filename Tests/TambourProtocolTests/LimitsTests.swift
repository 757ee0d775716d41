import TambourProtocol
import Testing

@Suite("limits")
struct LimitsTests {
    @Test("an override changes one limit and leaves the others")
    func override() throws {
        let limits = try Limits(overrides: ["maxDepth": 3])
        #expect(limits.maxDepth == 3)
        #expect(limits.maxElements == Limits.standard.maxElements)
        #expect(Limits.standard.maxDepth == 32)
    }

    @Test(
        "an override that cannot be is refused by name",
        arguments: [
            ("maxDepth", 0, "limit maxDepth: 0 is below 1"),
            ("maxDepth", -1, "limit maxDepth: -1 is below 1"),
            ("maxDepht", 5, "limit maxDepht: there is no such limit"),
            ("maxFrameBytes", 16_777_216, "limit maxFrameBytes: 16777216 is above 16777215"),
        ]
    )
    func refused(name: String, value: Int, reason: String) {
        let error = #expect(throws: LimitError.self) { try Limits(overrides: [name: value]) }
        #expect(error?.description == reason)
    }
}
