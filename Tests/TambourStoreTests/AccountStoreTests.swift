import TambourEvents
import TambourProtocol
import TambourStore
import Testing

@Suite("Accounts, sessions, devices and codes are stored")
struct AccountStoreTests {
    private let origin = SessionOrigin(
        installation: "phone-1",
        client: "Client 1.0",
        info: "Linux",
        address: "127.0.0.1"
    )

    private func hash(_ byte: UInt8) -> [UInt8] {
        [UInt8](repeating: byte, count: 32)
    }

    @Test("an account is found by its id and by its phone", arguments: SQLEngine.available)
    func account(engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let ids = try store.batch(at: 5000) { tx in
            [
                try tx.createAccount(phone: 79_990_000_001, firstName: "Ada", lastName: nil),
                try tx.createAccount(phone: 79_990_000_002, firstName: "Bo", lastName: "Li"),
            ]
        }

        let ada = try #require(try store.read { try $0.account(ids[0]) })
        #expect((ada.phone, ada.firstName, ada.lastName) == (79_990_000_001, "Ada", nil))
        #expect((ada.registered, ada.updated, ada.isBlocked, ada.seen) == (5000, 5000, false, 0))
        let bo = try #require(try store.read { try $0.account(phone: 79_990_000_002) })
        #expect((bo.id, bo.name) == (ids[1], "Bo Li"))
        #expect(try store.read { try $0.account(UserID(99)) } == nil)
        #expect(try store.read { try $0.account(phone: 1) } == nil)
    }

    @Test(
        "a contact takes no more bytes than it is counted for",
        arguments: ["", "A", String(repeating: "\u{20AC}", count: 64)]
    )
    func contactSize(name: String) throws {
        let store = try TestStore(.sqlite)
        for lastName in [nil, "", name] {
            let account = try store.batch(at: .max >> 20) { tx in
                let id = try tx.createAccount(
                    phone: Int64.max - store.nextCID(),
                    firstName: name,
                    lastName: lastName
                )
                return try #require(try tx.reader.account(id))
            }
            var writer = MessagePackWriter()
            account.user(showingPhone: true).write(to: &writer)
            let size = writer.finish().count
            #expect(size <= account.wireSizeEstimate)
            #expect(size > account.wireSizeEstimate - 100)
        }
    }

    @Test("accounts are paged in the order of their ids", arguments: SQLEngine.available)
    func accountPages(engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let users = try store.users(5)

        #expect(
            try store.read { try $0.accounts(after: UserID(0), limit: 3) }.map(\.id)
                == Array(users[0..<3])
        )
        #expect(
            try store.read { try $0.accounts(after: users[2], limit: 3) }.map(\.id)
                == Array(users[3...])
        )
        #expect(try store.read { try $0.accounts(after: users[4], limit: 3) }.isEmpty)
    }

    @Test("a phone belongs to one account", arguments: SQLEngine.available)
    func phoneTwice(engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let users = try store.users(1)

        #expect(throws: (any Error).self) {
            try store.batch { tx in
                try tx.createAccount(phone: 79_990_000_001, firstName: "Again", lastName: nil)
            }
        }
        #expect(
            try store.read { try $0.accounts(after: UserID(0), limit: 9) }.map(\.id) == users
        )
    }

    @Test(
        "a blocked account is not listed until it is let in again",
        arguments: SQLEngine.available
    )
    func blocked(engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let user = try store.users(1)[0]

        try store.batch(at: 1_800_000_000_000) { try $0.setBlocked(true, user) }
        #expect(try store.read { try $0.listedAccount(user) } == nil)
        let account = try #require(try store.read { try $0.account(user) })
        #expect(account.isBlocked)
        #expect(account.updated == 1_800_000_000_000)

        try store.batch { try $0.setBlocked(false, user) }
        #expect(try store.read { try $0.listedAccount(user) } != nil)
    }

    @Test("who is listed is remembered, but not against the store", arguments: SQLEngine.available)
    func listed(engine: SQLEngine) throws {
        struct Failure: Error {}
        let store = try TestStore(engine)
        let user = try store.users(1)[0]
        func isListed() throws -> Bool { try store.batch { try $0.isListed(user) } }

        #expect(try isListed())
        try store.batch { tx in
            try tx.setBlocked(true, user)
            #expect(try !tx.isListed(user))
        }
        #expect(try !isListed())

        #expect(throws: Failure.self) {
            try store.batch { tx in
                try tx.setBlocked(false, user)
                #expect(try tx.isListed(user))
                throw Failure()
            }
        }
        #expect(try !isListed())

        var unborn = UserID(0)
        #expect(throws: Failure.self) {
            try store.batch { tx in
                unborn = try tx.createAccount(phone: 5, firstName: "A", lastName: nil)
                #expect(try tx.isListed(unborn))
                throw Failure()
            }
        }
        #expect(try store.batch { try !$0.isListed(unborn) })
    }

    @Test(
        "a session is found by its token until it is closed",
        arguments: SQLEngine.available
    )
    func sessions(engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let user = try store.users(1)[0]
        let session = try store.batch(at: 7000) { tx in
            try tx.createSession(of: user, tokenHash: hash(1), origin: origin)
        }

        let found = try #require(try store.read { try $0.session(tokenHash: hash(1)) })
        #expect((found.id, found.userID) == (session, user))
        #expect((found.created, found.lastSeen) == (7000, 7000))
        #expect((found.client, found.info, found.address) == ("Client 1.0", "Linux", "127.0.0.1"))
        #expect(try store.read { try $0.session(session) }?.id == session)
        #expect(try store.read { try $0.session(tokenHash: hash(2)) } == nil)

        let events = try {
            try store.writer.begin(.at(store.now)).closeSessions([session], of: user)
            return try store.writer.commit()
        }()
        #expect(try store.read { try $0.session(tokenHash: hash(1)) } == nil)
        #expect(try store.read { try $0.sessions(of: user) }.isEmpty)
        #expect(
            events.contains { event in
                if case .sessionsClosed([session], of: user) = event { true } else { false }
            }
        )
    }

    @Test("the session seen last comes first", arguments: SQLEngine.available)
    func sessionOrder(engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let user = try store.users(1)[0]
        let ids = try store.batch(at: 1000) { tx in
            try (1...3).map {
                try tx.createSession(of: user, tokenHash: hash($0), origin: origin)
            }
        }
        #expect(try store.read { try $0.sessions(of: user) }.map(\.id) == ids)

        try store.batch { try $0.setSeen(9000, user: user, session: ids[1]) }
        #expect(
            try store.read { try $0.sessions(of: user) }.map(\.id) == [ids[1], ids[0], ids[2]]
        )
        #expect(try store.read { try $0.account(user) }?.seen == 9000)

        // An older time must not replace the time at which the account was last online.
        try store.batch { try $0.setSeen(8000, user: user, session: ids[0]) }
        #expect(try store.read { try $0.account(user) }?.seen == 9000)
        #expect(try store.read { try $0.session(ids[0]) }?.lastSeen == 8000)
    }

    @Test(
        "a device keeps its identity across logins and belongs to one user",
        arguments: SQLEngine.available
    )
    func devices(engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let users = try store.users(2)
        let tablet = SessionOrigin(installation: "tablet", client: "", info: "", address: "")
        let sessions = try store.batch { tx in
            [
                try tx.createSession(of: users[0], tokenHash: hash(1), origin: origin),
                try tx.createSession(of: users[0], tokenHash: hash(2), origin: origin),
                try tx.createSession(of: users[0], tokenHash: hash(3), origin: tablet),
                try tx.createSession(of: users[1], tokenHash: hash(4), origin: origin),
            ]
        }
        try store.batch { try $0.closeSessions(Array(sessions[0...1]), of: users[0]) }
        let again = try store.batch { tx in
            try tx.createSession(of: users[0], tokenHash: hash(5), origin: origin)
        }

        let device = try store.read { snapshot in
            try (sessions[2...] + [again]).map { try snapshot.session($0)?.deviceID }
        }
        #expect(Set(device).count == 3)
        #expect(device[2] == DeviceID(1))
    }

    @Test("a session keeps its dialect, also over a restart", arguments: SQLEngine.available)
    func dialect(engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let user = try store.users(1)[0]
        var spoken = origin
        spoken.dialect = "tamtam"
        let sessions = try store.batch { tx in
            [
                try tx.createSession(of: user, tokenHash: hash(1), origin: spoken),
                try tx.createSession(of: user, tokenHash: hash(2), origin: origin),
            ]
        }
        try store.reopen()
        let found = try store.read { snapshot in
            try sessions.map { try snapshot.session($0)?.dialect }
                + [snapshot.session(tokenHash: hash(1))?.dialect]
        }
        #expect(found == ["tamtam", "", "tamtam"])
    }

    @Test(
        "a session's id is not given again while the writer lives",
        arguments: SQLEngine.available
    )
    func sessionIDs(engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let user = try store.users(1)[0]
        let first = try store.batch { tx in
            try tx.createSession(of: user, tokenHash: hash(1), origin: origin)
        }
        try store.batch { try $0.closeSessions([first], of: user) }
        // After a failed batch, the writer reads its counters from the store again.
        #expect(throws: Failure.self) { try store.batch { _ in throw Failure() } }

        let second = try store.batch { tx in
            try tx.createSession(of: user, tokenHash: hash(2), origin: origin)
        }
        #expect(second != first)
    }

    @Test(
        "a restart gives neither a session's id nor the device of an unnamed one again",
        arguments: SQLEngine.available
    )
    func sessionIDsAcrossRestarts(engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let user = try store.users(1)[0]
        let unnamed = SessionOrigin(installation: "", client: "", info: "", address: "")
        var seen: [(session: SessionID, device: DeviceID?)] = []
        for login in 1...3 {
            let session = try store.batch { tx in
                try tx.createSession(of: user, tokenHash: hash(UInt8(login)), origin: unnamed)
            }
            seen.append((session, try store.read { try $0.session(session)?.deviceID }))
            try store.batch { try $0.closeSessions([session], of: user) }
            try store.reopen()
        }
        #expect(Set(seen.map(\.session)).count == 3)
        #expect(Set(seen.map(\.device)).count == 3)
    }

    @Test("a login code counts its tries and is used up once", arguments: SQLEngine.available)
    func loginCodes(engine: SQLEngine) throws {
        let store = try TestStore(engine)
        try store.batch { tx in
            for (number, address) in [(UInt8(1), "a"), (2, "a"), (3, "b")] {
                try tx.createLoginCode(
                    tokenHash: hash(number),
                    codeHash: hash(100 + number),
                    phone: number == 3 ? 22 : 11,
                    address: address,
                    now: 1000 * Int64(number),
                    expires: 60_000,
                    keptSince: 0
                )
            }
        }
        try store.batch { try $0.countLoginTry(tokenHash: hash(1)) }
        try store.batch { try $0.countLoginTry(tokenHash: hash(1)) }

        let code = try #require(try store.read { try $0.loginCode(tokenHash: hash(1)) })
        #expect((code.phone, code.codeHash) == (11, hash(101)))
        #expect((code.expires, code.tries) == (60_000, 2))
        #expect(try store.read { try $0.loginCode(tokenHash: hash(2)) }?.tries == 0)
        #expect(try store.read { try $0.loginCode(tokenHash: hash(9)) } == nil)
        try store.read { snapshot throws in
            #expect(try snapshot.loginCodes(phone: 11, since: 0) == 2)
            #expect(try snapshot.loginCodes(phone: 11, since: 1000) == 1)
            #expect(try snapshot.loginCodes(address: "a", since: 0) == 2)
            #expect(try snapshot.loginCodes(address: "b", since: 0) == 1)
            #expect(try snapshot.loginCodes(address: "c", since: 0) == 0)
        }

        // A used code still counts towards the limit per hour.
        try store.batch { try $0.spendLoginCode(tokenHash: hash(1)) }
        #expect(try store.read { try $0.loginCode(tokenHash: hash(1)) }?.expires == 0)
        #expect(try store.read { try $0.loginCodes(phone: 11, since: 0) } == 2)

        // The next request deletes the codes that are too old to count towards the limit.
        try store.batch { tx in
            try tx.createLoginCode(
                tokenHash: hash(4),
                codeHash: hash(104),
                phone: 11,
                address: "a",
                now: 4000,
                expires: 60_000,
                keptSince: 2000
            )
        }
        #expect(try store.read { try $0.loginCode(tokenHash: hash(1)) } == nil)
        #expect(try store.read { try $0.loginCode(tokenHash: hash(2)) } != nil)
    }

    @Test("a registration runs out, and is used up once", arguments: SQLEngine.available)
    func registrations(engine: SQLEngine) throws {
        let store = try TestStore(engine)
        try store.batch { tx in
            try tx.createRegistration(tokenHash: hash(1), phone: 11, expires: 5000)
            try tx.createRegistration(tokenHash: hash(2), phone: 22, expires: 5000)
        }

        try store.read { snapshot throws in
            #expect(try snapshot.registration(tokenHash: hash(1), now: 4999)?.phone == 11)
            #expect(try snapshot.registration(tokenHash: hash(1), now: 5000) == nil)
            #expect(try snapshot.registration(tokenHash: hash(3), now: 0) == nil)
        }
        try store.batch { try $0.spendRegistration(tokenHash: hash(1)) }
        try store.read { snapshot throws in
            #expect(try snapshot.registration(tokenHash: hash(1), now: 0) == nil)
            #expect(try snapshot.registration(tokenHash: hash(2), now: 0)?.phone == 22)
        }
    }
}

/// A test throws this error to roll back its batch.
struct Failure: Error {}
