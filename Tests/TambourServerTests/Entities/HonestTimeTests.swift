import TambourMessenger
import Testing

/// A change must be as old on the server as it was on the device.
@Suite("Honest time")
struct HonestTimeTests {
    @Test(
        "takes the age of a change from the device and the rest from the server",
        arguments: [
            (modified: Int64(900), clientNow: Int64(1_000), expected: Int64(9_900)),
            (modified: 1_000, clientNow: 1_000, expected: 10_000),
            // The device's clock is a year ahead.
            (modified: 31_536_000_900, clientNow: 31_536_001_000, expected: 9_900),
            // The change is in the device's own future.
            (modified: 1_001, clientNow: 1_000, expected: 10_000),
            (modified: 0, clientNow: 20_000, expected: 0),
            (modified: .max, clientNow: .min, expected: 10_000),
            (modified: .min, clientNow: .max, expected: 0),
            (modified: .max, clientNow: 0, expected: 10_000),
            (modified: .min, clientNow: 0, expected: 0),
        ]
    )
    func age(modified: Int64, clientNow: Int64, expected: Int64) {
        #expect(
            EntityRules.honestTime(of: modified, clientNow: clientNow, now: 10_000) == expected
        )
    }
}
