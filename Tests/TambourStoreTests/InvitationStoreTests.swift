import TambourEvents
import TambourProtocol
import TambourSQL
import TambourStore
import Testing

@Suite("Invitations are stored")
struct InvitationStoreTests {
    private let hash = [UInt8](repeating: 7, count: 32)
    private static let day: Int64 = 86_400_000

    private func make(
        _ store: TestStore,
        uses: Int = 1,
        by maker: UserID? = nil
    ) throws -> InvitationID {
        try store.batch { tx in
            try tx.createInvitation(
                codeHash: hash,
                maxUses: uses,
                expires: tx.ct + Self.day,
                by: maker,
                keptSince: tx.ct - Self.day
            )
        }
    }

    @Test("one with a code is found by it, until it is used up", arguments: SQLEngine.available)
    func code(engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let id = try make(store, uses: 2)
        let users = try store.users(2)
        let made = try #require(try store.read { try $0.invitation(codeHash: hash) })
        #expect(made.id == id && made.hasCode && made.phone == nil && made.maker == nil)
        #expect(made.isOpen(at: made.expires - 1) && !made.isOpen(at: made.expires))
        #expect(try store.read { try $0.invitation(codeHash: [7]) } == nil)
        for (uses, user) in users.enumerated() {
            let found = try #require(try store.read { try $0.invitation(id) })
            #expect(found.uses == uses && found.isOpen(at: found.created))
            try store.batch { try $0.use(id, by: user) }
        }
        let used = try #require(try store.read { try $0.invitation(codeHash: hash) })
        #expect(used.uses == 2 && !used.isOpen(at: used.created))
        #expect(try store.read { try $0.users(of: id, limit: 9) } == users)
        #expect(try store.problems() == [])
    }

    @Test(
        "a phone is invited once, and forgotten when it registers",
        arguments: SQLEngine.available
    )
    func phone(engine: SQLEngine) throws {
        let store = try TestStore(engine)
        func invite(until expires: Int64) throws -> InvitationID {
            try store.batch { try $0.invite(phone: 11, expires: expires, keptSince: 0) }
        }
        let end = store.now + Self.day
        let id = try invite(until: end)
        // The second invitation only extends the first invitation.
        #expect(try invite(until: end + Self.day) == id)
        let known = try #require(try store.read { try $0.invitation(phone: 11) })
        #expect(known.expires == end + Self.day && known.maxUses == 1 && !known.hasCode)
        let user = try store.batch { tx in
            let user = try tx.createAccount(phone: 11, firstName: "A", lastName: nil)
            try tx.use(id, by: user)
            return user
        }
        #expect(try store.read { try $0.invitation(phone: 11) } == nil)
        #expect(try store.read { try $0.invitation(id) }?.uses == 1)
        #expect(try store.read { try $0.invitationUse(by: user) }?.invitation == id)
        // The store even invites a phone that has an account. Only the admin command refuses this.
        #expect(try invite(until: end) != id)
        #expect(try store.problems() == [])
    }

    @Test(
        "a use and the account are stored together or not at all",
        arguments: SQLEngine.available
    )
    func together(engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let id = try make(store)
        #expect(throws: Failure.self) {
            try store.batch { tx in
                let user = try tx.createAccount(phone: 11, firstName: "A", lastName: nil)
                try tx.use(id, by: user)
                throw Failure()
            }
        }
        #expect(try store.read { try $0.invitation(id) }?.uses == 0)
        #expect(try store.read { try $0.users(of: id, limit: 9) } == [])
        #expect(try store.read { try $0.account(phone: 11) } == nil)
    }

    @Test("ids never come back, and what ended long ago goes", arguments: SQLEngine.available)
    func pruning(engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let first = try make(store)
        #expect(try store.batch { try $0.deleteInvitation(first) })
        #expect(try !store.batch { try $0.deleteInvitation(first) })
        let second = try make(store)
        #expect(second > first)
        try store.reopen()
        let now = store.now + 3 * Self.day
        try store.batch(at: now) { tx in
            _ = try tx.invite(phone: 11, expires: now + Self.day, keptSince: now - Self.day)
        }
        let left = try store.read { try $0.invitations(after: InvitationID(0), limit: 9) }
        #expect(left.map(\.phone) == [11] && left[0].id > second)
    }

    @Test("code requests and registrations name theirs", arguments: SQLEngine.available)
    func pending(engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let id = try make(store)
        try store.batch { tx in
            try tx.createLoginCode(
                tokenHash: [1],
                codeHash: [],
                phone: 11,
                invitation: id,
                address: "a",
                now: 0,
                expires: 1000,
                keptSince: 0
            )
            try tx.createRegistration(
                tokenHash: [2],
                phone: 11,
                invitation: id,
                expires: 1000
            )
        }
        try store.read { snapshot throws in
            let code = try #require(try snapshot.loginCode(tokenHash: [1]))
            #expect(code.invitation == id && code.codeHash == [])
            let pending = try #require(try snapshot.registration(tokenHash: [2], now: 0))
            #expect(pending.phone == 11 && pending.invitation == id)
        }
    }

    @Test("more uses than it is for are a problem", arguments: SQLEngine.available)
    func check(engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let id = try make(store)
        for user in try store.users(2) { try store.batch { try $0.use(id, by: user) } }
        #expect(
            try store.problems()
                == ["invitation \(id.rawValue): for 1, 2 uses recorded, 2 users found"]
        )
    }

    @Test("those that a user made are counted and exported", arguments: SQLEngine.available)
    func makers(engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let maker = try store.users(1)[0]
        let since = store.now
        let id = try make(store, by: maker)
        try store.read { snapshot throws in
            #expect(try snapshot.invitations(of: maker, since: since) == 1)
            #expect(try snapshot.invitations(of: maker, since: store.now) == 0)
            let account = try #require(try snapshot.account(maker))
            #expect(try snapshot.invitations(concerning: account).map(\.id) == [id])
        }
    }
}
