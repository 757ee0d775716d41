import Foundation
import TambourMessenger
import TambourProtocol
import TambourSQL
import TambourStore
import TambourTesting
import Testing

extension TestServer {
    /// Returns the bytes of the database and its write-ahead log.
    func storedBytes() throws -> Data {
        try ["tambour.db", "tambour.db-wal"].reduce(into: Data()) { bytes, name in
            let path = "\(dataDirectory)/\(name)"
            guard FileManager.default.fileExists(atPath: path) else { return }
            bytes += try Data(contentsOf: URL(fileURLWithPath: path))
        }
    }

    /// Returns, for each table with a `user_id` column, the number of rows about this user.
    fileprivate func rows(of user: UserID) throws -> [String: Int64] {
        let store = try SQLiteConnection(path: "\(dataDirectory)/tambour.db", mode: .readOnly)
        let named = try store.prepare(
            """
            SELECT t.name FROM sqlite_schema t JOIN pragma_table_info(t.name) c
            WHERE t.type = 'table' AND c.name = 'user_id'
            """
        )
        var rows: [String: Int64] = [:]
        while try named.step() {
            let table = named.string(0)
            let count = try store.prepare("SELECT count(*) FROM \(table) WHERE user_id = $1")
            count.bind(1, user.rawValue)
            rows[table] = try count.step() ? count.int(0) : nil
            count.reset()
        }
        named.reset()
        return rows
    }
}

/// The data that a user leaves in a store. The test searches the store's bytes for each piece.
private struct Traces {
    let client: WireClient
    var words: [String: [UInt8]] = [:]

    mutating func add(_ text: String) { words[text] = Array(text.utf8) }

    /// Adds a number as SQLite stores an integer of six bytes.
    mutating func add(number: Int64) {
        words["\(number) in six bytes"] = (0..<6).map {
            UInt8(truncatingIfNeeded: number >> (8 * (5 - $0)))
        }
    }

    func found(in bytes: Data) -> [String] {
        words.filter { bytes.range(of: Data($0.value)) != nil }.map(\.key).sorted()
    }
}

@Suite("Erasing somebody at once")
struct EraseTests {
    /// Returns a user who has left data in every table that can contain data of a user.
    private func live(_ server: TestServer, beside bob: WireClient) throws -> Traces {
        let zoe = try server.signUp("Zwetlanova", device: "zwetlanas-phone")
        let laptop = try server.signIn(phoneOf: zoe, device: "zwetlanas-laptop")
        let dialog = zoe.dialog(with: bob)
        try zoe.call(
            ProfileRequest(
                firstName: "Zwetlanova",
                lastName: "Quarkstein",
                description: "Mirabellen"
            )
        )
        try zoe.send("Xylophonbau im Dialog", to: dialog, cid: 1)
        try zoe.send("Yttriumkugel", to: ChatID(0), cid: 2)
        let group = try bob.createGroup("Friends", with: [zoe], cid: 3)
        try zoe.send("Wacholderduft", to: group, cid: 4)
        let left = try bob.createGroup("Left", with: [zoe], cid: 5)
        try zoe.send("Vanillekipferl", to: left, cid: 6)
        try zoe.call(ChatLeaveRequest(chatID: left))
        let edited = try zoe.send("Urgesteinsmehl", to: dialog, cid: 7).message.id
        try zoe.call(MsgEditRequest(chatID: dialog, messageID: edited, text: "Tulpenzwiebel"))
        let gone = try laptop.send("Schachtelhalm", to: dialog, cid: 8).message.id
        try zoe.call(MsgDeleteRequest(chatID: dialog, messageIDs: [gone]))
        // Enough messages to fill blocks of the word index.
        for number in 0..<200 {
            let cid = Int64(1000 + number)
            for chat in [dialog, group, left] { try bob.send("hay", to: chat, cid: cid) }
            try zoe.send("Heu", to: ChatID(0), cid: cid)
        }
        let his = try bob.send("hello", to: dialog, cid: 9).message.id
        try zoe.call(
            MsgReactionRequest(chatID: dialog, messageID: his, reaction: NewReaction(id: "🦩"))
        )
        // Bob forwards one of the user's messages to a group, so the forward names the user.
        let greeting = try zoe.send("hallo", to: dialog, cid: 10).message.id
        let forward = NewLink(type: .forward, messageID: greeting, chatID: dialog)
        try bob.call(MsgSendRequest(chatID: group, message: NewMessage(cid: 10, link: forward)))
        let draft = NewDraft(text: "Rosenholzkiste")
        try zoe.call(DraftSaveRequest(chatID: dialog, draft: draft))
        try zoe.call(FoldersUpdateRequest(id: "f1", title: "Quittengelee", include: [group]))
        let user = NameMap([("INACTIVE_TTL" as Text, AnyValue("367D" as Text))])
        let muted = IDMap([(group, NameMap([("dontDisturbUntil" as Text, AnyValue(-1 as Int64))]))])
        try zoe.call(ConfigRequest(settings: SettingsChange(user: user, chats: muted)))
        try zoe.setPassword("correct horse", hint: "Pusteblume")
        let track = try zoe.call(AuthCreateTrackRequest()).trackID
        try zoe.call(AuthCheckPasswordRequest(trackID: track, password: "correct horse"))
        try zoe.call(AuthVerifyEmailRequest(trackID: track, email: "hagebutte@example.org"))
        try zoe.call(
            ContactUpdateRequest(contactID: bob.userID, action: .add, firstName: "Ohrenkneifer")
        )
        try bob.call(
            ContactUpdateRequest(contactID: zoe.userID, action: .add, firstName: "Nachtigallin")
        )
        try zoe.call(
            ComplainRequest(
                ids: [his.rawValue],
                parentID: dialog,
                reason: AnyValue("Muckefuck" as Text)
            )
        )
        let tomorrow = Environment.live.wallMs() + 86_400_000
        try zoe.schedule("Kirschkernkissen", at: tomorrow, in: dialog, cid: 20)
        let planned = try zoe.schedule("Zimtschnecke", at: tomorrow, in: dialog, cid: 24).message.id
        try zoe.call(
            MsgDeleteRequest(chatID: dialog, messageIDs: [planned], itemType: .delayed)
        )
        let poll = NewMessage(cid: 21, attaches: [.poll("Lakritzschnecke")])
        try zoe.call(MsgSendRequest(chatID: group, message: poll))
        let hers = NewMessage(cid: 22, attaches: [.poll("Hay?")])
        let asked = try bob.call(MsgSendRequest(chatID: group, message: hers)).message
        let pollID = try #require(asked.attaches.stored?.first?.pollID)
        try zoe.call(
            SendVoteRequest(
                chatID: group,
                messageID: asked.id,
                pollID: pollID,
                answersIDs: [2]
            )
        )
        try zoe.call(
            ObjPushRequest(
                clientNow: 1,
                ops: [
                    ObjectOperation(
                        opID: 1,
                        op: .create,
                        id: AnyValue("#l1"),
                        type: "account",
                        modified: 1,
                        fields: NameMap(["name": .string("Igelstachel")])
                    )
                ]
            )
        )
        try zoe.delete([his], in: dialog, forMe: true)
        // Comment on a post of another user, and on a post of her own.
        let channel = try bob.channel("News", with: [zoe], cid: 25)
        let post = try bob.send("news", to: channel, cid: 26).message.id
        try zoe.comment("Distelfalter", on: post, in: channel, cid: 27)
        try bob.comment("hay", on: post, in: channel, cid: 28)
        try bob.ban(zoe, from: channel)
        let own = try zoe.channel("Alleine", with: [], cid: 29)
        let first = try zoe.send("Eibischtee", to: own, cid: 30).message.id
        try zoe.comment("Froschlöffel", on: first, in: own, cid: 31)
        let closed = try bob.createGroup("Closed", with: [], cid: 23)
        try bob.ask(for: closed)
        let link = try #require(
            try bob.call(ChatUpdateRequest(chatID: closed, revokePrivateLink: true)).chat.link
        )
        try zoe.call(ChatJoinRequest(link: link))
        try zoe.call(AuthCreateTrackRequest())
        try bob.call(ComplainRequest(ids: [zoe.userID.rawValue], reasonID: 7))
        // She is about to move to another phone.
        let next = server.freshPhone()
        try zoe.call(PhoneBindRequestRequest(phone: PhoneNumber.format(next)))
        // She registered with an invitation, and has made another invitation.
        let zoeID = zoe.userID
        try server.run { tx in
            let expires = tx.ct + 86_400_000
            let id = try tx.createInvitation(
                codeHash: Tokens.hash("hers"),
                maxUses: 1,
                expires: expires,
                by: zoeID,
                keptSince: 0
            )
            try tx.use(id, by: zoeID)
        }
        var traces = Traces(client: zoe)
        traces.add(number: next)
        traces.words["hash of her invitation"] = Tokens.hash("hers")
        let phone = try zoe.phone
        for text in [
            "Zwetlanova", "zwetlano", "Quarkstein", "quarkste", "Mirabellen", "zwetlanas-phone",
            "zwetlanas-laptop", "Xylophonbau", "xylophon", "Yttriumkugel", "yttriumk",
            "Wacholderduft", "wacholde", "Vanillekipferl", "vanillek", "Tulpenzwiebel", "tulpenzw",
            "🦩", "Rosenholzkiste", "Quittengelee", "367D", "Pusteblume", "Ohrenkneifer",
            "Nachtigallin", "hagebutte", "Muckefuck", "Kirschkernkissen", "Lakritzschnecke",
            "Igelstachel", "Distelfalter", "Eibischtee", "Froschlöffel",
        ] { traces.add(text) }
        traces.add(number: phone)
        for client in [zoe, laptop] {
            traces.words["hash of \(client.token)"] = Tokens.hash(client.token)
        }
        return traces
    }

    @Test("leaves no byte of the person in the file, in no table and not in the index of words")
    func nothingLeft() throws {
        try withServer { server in
            let bob = try server.signUp("Bob")
            let traces = try live(server, beside: bob)
            let zoe = traces.client
            try server.indexWords()
            // The engine has finished all stepwise deletions, so `object_purge` is empty.
            let rows = try server.rows(of: zoe.userID).filter { $0.key != "object_purge" }
            #expect(rows.values.allSatisfy { $0 > 0 }, "\(rows) has not everything")
            let before = traces.found(in: try server.storedBytes())
            #expect(before == traces.words.keys.sorted(), "some were never stored")

            let asked = #expect(throws: AdminService.Failure.self) {
                try server.admin(.erase(user: "\(zoe.userID)", isConfirmed: false))
            }
            #expect(asked?.description.contains("--yes") == true)
            #expect(try bob.call(PingRequest()) == PingReply())

            let erased = try server.admin(.erase(user: "\(zoe.userID)", isConfirmed: true))
            #expect(erased.first == "\(zoe.userID) erased")
            try zoe.waitForClose()
            #expect(Set(try bob.texts(zoe.dialog(with: bob))) == ["hay", "hello"])
            #expect(try server.admin(.vacuum).count == 1)
            var left = traces
            for text in ["Schachtelhalm", "Urgesteinsmehl"] { left.add(text) }
            let remains = left.found(in: try server.storedBytes())
            #expect(remains.isEmpty, "\(remains)")
            // Only another user's contact entry for her remains, without a name.
            let rest = try server.rows(of: zoe.userID).filter { $0.value > 0 }
            #expect(rest == ["contact": 1], "\(rest)")
            #expect(try server.admin(.check) == ["ok"])
            // Bob can continue to write as before.
            try bob.send("alone", to: ChatID(0), cid: 20)
            #expect(try server.admin(.user("\(zoe.userID)")).contains("erasure done"))
        }
    }
}
