import TambourProtocol
import Testing

@testable import TambourMessenger

@Suite("Whom users have found lately is remembered, and bounded")
struct FoundPeopleTests {
    private let alice = UserID(1)

    private func found(_ overrides: [String: Int]) throws -> FoundPeople {
        FoundPeople(limits: try Limits(overrides: overrides))
    }

    @Test("each keeps the last ones")
    func ring() throws {
        let found = try found(["maxFoundPeople": 3])
        found.note((10...12).map { UserID($0) }, by: alice)
        // Noting a known person again needs no further place.
        found.note([UserID(10)], by: alice)
        found.note([UserID(13)], by: alice)
        let kept = (10...13).filter { found.has(UserID($0), foundBy: alice) }
        #expect(kept == [11, 12, 13])
        #expect(!found.has(alice, foundBy: UserID(11)))
    }

    @Test("those who found somebody last are kept")
    func finders() throws {
        let found = try found(["maxFinders": 4])
        for finder in 1...3 { found.note([UserID(100)], by: UserID(Int64(finder))) }
        // Another search makes the finder recent.
        found.note([UserID(101)], by: UserID(2))
        found.note([UserID(100)], by: UserID(4))
        found.note([UserID(100)], by: UserID(5))
        let kept = (1...5).filter { found.has(UserID(100), foundBy: UserID(Int64($0))) }
        #expect(kept == [2, 3, 4, 5])
        #expect(found.has(UserID(101), foundBy: UserID(2)))
    }
}
