import Synchronization
import TambourProtocol
import TambourSQL
import Testing

@testable import TambourStore

@Suite("Ids of new users")
struct UserIDTests {
    /// Returns a source that yields these numbers in order. Then it repeats the last number.
    private static func scripted(_ numbers: [UInt64]) -> UserIDSource {
        let left = Mutex(numbers)
        return UserIDSource {
            left.withLock { $0.count > 1 ? $0.removeFirst() : $0[0] }
        }
    }

    private func make(_ phone: Int64, in store: TestStore) throws -> UserID {
        try store.batch { try $0.createAccount(phone: phone, firstName: "N", lastName: nil) }
    }

    @Test("an id has the last 43 bits of a random number, and is never 0")
    func bits() {
        let source = UserIDSource.random { [UInt8](repeating: 0xFF, count: $0) }
        #expect(source.candidate() == UserID(1 << 43 - 1))
        let zero = UserIDSource.random { [UInt8](repeating: 0, count: $0) }
        #expect(zero.candidate() == nil)
        #expect(UserIDSource { 1 << 43 | 5 }.candidate() == UserID(5))
        #expect(UserIDSource { 1 << 43 }.candidate() == nil)
    }

    @Test("each bit of an id is random")
    func spread() {
        let source = UserIDSource.random { count in
            (0..<count).map { _ in UInt8.random(in: .min ... .max) }
        }
        let ids = (0..<200).compactMap { _ in source.candidate()?.rawValue }
        #expect(ids.reduce(0, |) == 1 << 43 - 1)
        #expect(ids.reduce(-1, &) == 0)
        #expect(Set(ids).count == ids.count)
    }

    @Test(
        "an id that is taken, or was an erased user's, is drawn again",
        arguments: SQLEngine.available
    )
    func collisions(engine: SQLEngine) throws {
        let store = try TestStore(engine, userIDs: Self.scripted([70, 5, 0, 70, 5, 6, 7, 6, 8]))
        let first = try make(1, in: store)
        let erased = try make(2, in: store)
        try store.batch { tx in
            let account = try #require(try tx.reader.account(erased))
            try tx.beginErasure(of: account)
            try tx.endErasure(of: erased)
        }
        #expect([first, erased] == [UserID(70), UserID(5)])
        #expect(try make(3, in: store) == UserID(6))

        // The batch that fails draws 7. The next batch draws 6, which is taken, and then 8.
        struct Failure: Error {}
        #expect(throws: Failure.self) {
            try store.batch { tx in
                _ = try tx.createAccount(phone: 4, firstName: "N", lastName: nil)
                throw Failure()
            }
        }
        #expect(try make(4, in: store) == UserID(8))
    }

    @Test("a source that brings one id for ever ends no process", arguments: SQLEngine.available)
    func exhausted(engine: SQLEngine) throws {
        let store = try TestStore(engine, userIDs: Self.scripted([9]))
        #expect(try make(1, in: store) == UserID(9))
        #expect(throws: UserIDsExhausted.self) { try make(2, in: store) }
        #expect(try store.read { try $0.account(phone: 2) } == nil)
    }
}
