import TambourEvents
import TambourProtocol
import TambourSQL
import TambourStore
import Testing

@Suite("Passwords, tracks and the end of accounts are stored")
struct SafetyStoreTests {
    private func hash(_ byte: UInt8) -> [UInt8] { [UInt8](repeating: byte, count: 32) }

    private func password(_ byte: UInt8) -> HashedPassword {
        HashedPassword(salt: hash(byte), hash: hash(byte + 1), logRounds: 15, version: .digested)
    }

    @Test("a password is set, replaced, counted against, removed", arguments: SQLEngine.available)
    func passwords(engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let user = try store.users(1)[0]
        #expect(try store.read { try $0.password(of: user) } == nil)
        try store.batch { tx in
            try tx.setPassword(password(1), hint: "a\0b", email: "a@example.org", of: user)
        }
        let first = try #require(try store.read { try $0.password(of: user) })
        #expect(first.password == password(1))
        #expect((first.hint, first.email) == ("a\0b", "a@example.org"))
        try store.batch { try $0.setPasswordTries(3, since: 77, of: user) }
        let tried = try #require(try store.read { try $0.password(of: user) })
        #expect((tried.tries, tried.triesSince) == (3, 77))
        try store.batch { try $0.setPassword(password(3), hint: nil, email: nil, of: user) }
        let second = try #require(try store.read { try $0.password(of: user) })
        #expect(second.password == password(3))
        #expect((second.hint, second.email, second.tries) == (nil, nil, 0))
        try store.batch { try $0.removePassword(of: user) }
        #expect(try store.read { try $0.password(of: user) } == nil)
    }

    @Test("tracks end, are counted, and are forgotten", arguments: SQLEngine.available)
    func tracks(engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let user = try store.users(1)[0]
        func open(_ kind: Track.Kind, _ byte: UInt8, link: UInt8? = nil, at time: Int64) throws {
            try store.batch(at: time) { tx in
                try tx.createTrack(
                    kind,
                    idHash: hash(byte),
                    linkHash: link.map { hash($0) },
                    user: link == nil ? user : nil,
                    session: kind == .settings ? SessionID(5) : nil,
                    expires: time + 100,
                    keptSince: time - 1000
                )
            }
        }
        func track(_ byte: UInt8, _ now: Int64) throws -> Track? {
            try store.read { try $0.track(idHash: hash(byte), now: now) }
        }
        try open(.settings, 1, at: 10_000)
        try open(.challenge, 2, at: 10_010)
        try open(.qr, 3, link: 4, at: 10_020)
        let settings = try #require(try track(1, 10_099))
        #expect((settings.kind, settings.user, settings.session) == (.settings, user, SessionID(5)))
        #expect(try track(1, 10_100) == nil)
        #expect(try track(9, 10_030) == nil)
        let count = try store.read { try $0.tracks(.settings, of: user, since: 9_999) }
        #expect(count == 1)
        #expect(try store.read { try $0.tracks(.settings, of: user, since: 10_000) } == 0)

        try store.batch(at: 10_030) { tx in
            try tx.setEmailCode(hash(8), to: "a@b.c", expires: 10_090, track: hash(1))
            try tx.countEmailTry(track: hash(1))
            try tx.checkTrack(hash(1))
        }
        let asked = try #require(try track(1, 10_040))
        #expect((asked.email, asked.isEmailChecked, asked.codeTries) == ("a@b.c", false, 1))
        #expect((asked.codeHash, asked.codeExpires, asked.codesSent) == (hash(8), 10_090, 1))
        #expect(asked.isChecked)
        try store.batch(at: 10_041) { try $0.checkEmail(track: hash(1)) }
        #expect(try track(1, 10_050)?.isEmailChecked == true)

        let found = try #require(
            try store.read { try $0.track(linkHash: hash(4), now: 10_050) }
        )
        #expect((found.idHash, found.track.user) == (hash(3), nil))
        try store.batch(at: 10_051) {
            try $0.approveTrack(hash(3), by: user, session: SessionID(5))
        }
        #expect(try track(3, 10_060)?.user == user)
        #expect(try track(3, 10_060)?.session == SessionID(5))
        try store.batch(at: 10_061) { try $0.endTrack(hash(3)) }
        #expect(try track(3, 10_062) == nil)
        #expect(try store.read { try $0.track(linkHash: hash(4), now: 10_062) } == nil)

        try store.batch(at: 10_063) { tx in
            try tx.setPassword(password(1), hint: nil, email: nil, of: user)
        }
        #expect(try track(2, 10_064) == nil)
        // This track is void, too. It still counts towards the limit.
        #expect(try track(1, 10_064) == nil)
        #expect(try store.read { try $0.tracks(.settings, of: user, since: 9_999) } == 1)
        try open(.settings, 7, at: 11_001)
        #expect(try store.read { try $0.tracks(.settings, of: user, since: 0) } == 1)
    }

    @Test("the newest dialogs that somebody began are counted", arguments: SQLEngine.available)
    func begunDialogs(engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let users = try store.users(5)
        for (index, partner) in users[1...3].enumerated() {
            try store.send("a", from: users[0], to: partner, at: .max >> 16 + Int64(index))
        }
        try store.send("a", from: users[4], to: users[0])
        try store.send("a", from: users[0], to: users[0])
        func begun(_ place: Int, after time: Int64 = 0) throws -> Int64? {
            try store.read {
                try $0.dialog(begunBy: users[0], after: time, place: place)
            }
        }
        let start: Int64 = .max >> 16
        #expect(try begun(1) == start + 2)
        #expect(try begun(3) == start)
        #expect(try begun(4) == nil)
        #expect(try begun(3, after: start) == nil)
        #expect(try begun(2, after: start) == start + 1)
    }

    @Test("an account that is erased leaves an empty row", arguments: SQLEngine.available)
    func erasure(engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let users = try store.users(2)
        try store.send("my secret", from: users[0], to: users[1])
        try store.send("yours", from: users[1], to: users[0])
        try store.send("note", from: users[0], to: users[0])
        try store.batch { tx in
            let origin = SessionOrigin(
                installation: "phone-1",
                client: "Client",
                info: "Linux",
                address: "127.0.0.1"
            )
            _ = try tx.createSession(of: users[0], tokenHash: hash(1), origin: origin)
            try tx.setPassword(password(1), hint: "hint", email: nil, of: users[0])
            try tx.setDeletion(at: 5, of: users[0])
            try tx.setInactivity(days: 3, of: users[0])
        }
        let end = try store.read { try $0.end(of: users[0]) }
        #expect((end.deleteAt, end.inactiveDays, end.isErasing) == (5, 3, false))
        #expect(try store.read { try $0.accountToErase(now: 4) } == nil)
        #expect(try store.read { try $0.accountToErase(now: 5) } == users[0])

        let account = try #require(try store.read { try $0.account(users[0]) })
        try store.batch { try $0.beginErasure(of: account) }
        let empty = try #require(try store.read { try $0.account(users[0]) })
        #expect(empty.isErased && empty.isBlocked)
        #expect((empty.phone, empty.firstName, empty.lastName) == (-1, "", nil))
        #expect(try store.read { try $0.account(phone: account.phone) } == nil)
        #expect(try store.read { try $0.sessions(of: users[0]) }.isEmpty)
        #expect(try store.read { try $0.password(of: users[0]) } == nil)
        #expect(try store.read { try $0.accountToErase(now: 0) } == users[0])
        #expect(try store.read { try $0.end(of: users[0]) }.isErasing)

        try store.batch { tx in
            for key in try tx.reader.chatsToErase(of: users[0], limit: 10) {
                let chat = try #require(try tx.chatToErase(key))
                let deleted = try tx.remove(
                    after: MessageID(0),
                    upTo: chat.head.id,
                    sentBy: users[0],
                    in: chat
                )
                #expect(deleted.count == 1)
                try tx.remove([users[0]], from: chat)
                if chat.memberCount == 0 {
                    #expect(try tx.eraseDeserted(chat, limit: 1) == 1)
                    #expect(try tx.eraseDeserted(chat, limit: 1) == 0)
                }
                try tx.forget(users[0], in: key)
            }
            try tx.endErasure(of: users[0])
        }
        #expect(try store.read { try $0.accountToErase(now: .max >> 1) } == nil)
        let tables = ["device", "session", "track", "password", "account_end", "former_member"]
        for table in tables + ["member"] {
            let rows = try store.database.connect().prepare(
                "SELECT count(*) FROM \(table) WHERE user_id = 1"
            )
            #expect(try rows.step())
            #expect(rows.int(0) == 0, "\(table)")
        }
        #expect(try store.problems().isEmpty)
    }
}
