import Dispatch
import TambourProtocol
import TambourServer
import TambourStore
import TambourTesting
import Testing

@testable import TambourMessenger

extension TestServer {
    /// Runs the server's housekeeping and waits until it ends.
    fileprivate func keepHouse() {
        let done = DispatchSemaphore(value: 0)
        server.messenger.housekeeper.run { done.signal() }
        done.wait()
    }
}

@Suite("Another phone (98, 99)")
struct PhoneBindTests {
    private func ask(_ client: WireClient, _ phone: Int64) throws -> PhoneBindRequestReply {
        try client.call(PhoneBindRequestRequest(phone: PhoneNumber.format(phone)))
    }

    @Test("the account moves, its sessions stay, the old phone is free")
    func move() throws {
        try withPair { server, alice, bob, dialog in
            try alice.send("hi", to: dialog, cid: 1)
            let laptop = try server.signIn(phoneOf: alice, device: "laptop")
            let before = try alice.phone
            let phone = server.freshPhone()
            let asked = try ask(alice, phone)
            #expect(asked.codeLength == 6)
            let code = try server.receivedCode(of: phone)
            let guess = PhoneBindConfirmRequest(token: asked.token, verifyCode: "x")
            #expect(try alice.code(of: guess) == .errorCodeWrong)
            let confirm = PhoneBindConfirmRequest(token: asked.token, verifyCode: code)
            #expect(try alice.call(confirm).profile.contact.phone == phone)
            let push = try laptop.next(.notifProfile, as: NotifProfile.self)
            #expect(push.profile.contact.phone == phone)
            #expect(try alice.news().isEmpty)
            #expect(try alice.code(of: confirm) == .errorCodeExpired)
            let lookup = ContactInfoByPhoneRequest(phone: "\(before)")
            #expect(try bob.code(of: lookup) == .userNotFound)
            let found = try bob.call(ContactInfoByPhoneRequest(phone: "\(phone)")).contact
            #expect(found.id == alice.userID)
            let client = try server.connect()
            #expect(try server.enterCode(phone: before, on: client).tokenAttrs.register != nil)
            let reply = try server.enterCode(phone: phone, on: client)
            #expect(reply.profile?.contact.id == alice.userID)
        }
    }

    @Test("a phone that is taken stays whose it is")
    func taken() throws {
        try withPair { server, alice, bob, _ in
            let before = try (alice.phone, bob.phone)
            let asked = try ask(alice, before.1)
            let code = try server.receivedCode(of: before.1)
            let confirm = PhoneBindConfirmRequest(token: asked.token, verifyCode: code)
            #expect(try alice.code(of: confirm) == .errorPhoneTaken)
            #expect(try (alice.phone, bob.phone) == before)
        }
    }

    @Test("a code moves whom it was sent for, and signs nobody in")
    func purposes() throws {
        try withPair { server, alice, bob, _ in
            let phone = server.freshPhone()
            let asked = try ask(alice, phone)
            let code = try server.receivedCode(of: phone)
            let auth = AuthCodeRequest(token: asked.token, verifyCode: code)
            #expect(try server.connect().code(of: auth) == .errorCodeExpired)
            let confirm = PhoneBindConfirmRequest(token: asked.token, verifyCode: code)
            #expect(try bob.code(of: confirm) == .errorCodeExpired)
            let signIn = try alice.call(AuthRequestRequest(phone: PhoneNumber.format(phone)))
            let other = PhoneBindConfirmRequest(
                token: signIn.token,
                verifyCode: try server.receivedCode(of: phone)
            )
            #expect(try alice.code(of: other) == .errorCodeExpired)
            try alice.call(confirm)
        }
    }

    @Test("codes are limited as those to sign in with are, and together with them")
    func limits() throws {
        try withServer(limits: ["maxCodesPerPhonePerHour": 2]) { server in
            let alice = try server.signUp("Alice")
            let phone = server.freshPhone()
            _ = try ask(alice, phone)
            try alice.call(AuthRequestRequest(phone: PhoneNumber.format(phone)))
            let more = PhoneBindRequestRequest(phone: PhoneNumber.format(phone))
            #expect(try alice.code(of: more) == .authBlocked)
            #expect(try alice.code(of: PhoneBindRequestRequest(phone: "x")) == .errorPhoneWrong)
        }
    }
}

@Suite("The end of an account (199, 200)")
struct AccountEndTests {
    private let week = Int64(Limits.standard.profileDeleteDelayMs)

    @Test("is asked for, taken back, and comes at its time")
    func timer() throws {
        let clock = ManualClock()
        try withServer(environment: clock.environment) { server in
            let alice = try server.signUp("Alice")
            func time() throws -> Int64 { try alice.call(ProfileDeleteTimeRequest()).time }
            #expect(try time() == 0)
            try alice.call(ProfileDeleteRequest(delete: true))
            let planned = try time()
            #expect(abs(planned - clock.now - week) < 1000)
            clock.advance(ms: day)
            try alice.call(ProfileDeleteRequest(delete: true))
            #expect(try time() == planned)
            try alice.call(ProfileDeleteRequest(cancel: true))
            #expect(try time() == 0)
            try alice.call(ProfileDeleteRequest(cancel: true))
            clock.advance(ms: week)
            server.keepHouse()
            let again = try server.reconnect(alice).client
            try again.call(ProfileDeleteRequest(delete: true))
            clock.advance(ms: week - 1000)
            server.keepHouse()
            _ = try server.reconnect(alice)
            clock.advance(ms: 2000)
            server.keepHouse()
            try again.waitForClose()
            let late = try server.connect()
            #expect(try late.code(of: LoginRequest(token: alice.token)) == .loginToken)
        }
    }

    @Test("others see that somebody is gone, and what they wrote with them")
    func others() throws {
        let clock = ManualClock()
        try withPair(environment: clock.environment) { server, alice, bob, dialog in
            let phone = try alice.phone
            let mine = try alice.send("my secret", to: dialog, cid: 1).message.id
            try bob.send("yours", to: dialog, cid: 1)
            let group = try alice.createGroup("Friends", with: [bob], cid: 2)
            let said = try alice.send("also secret", to: group, cid: 3).message.id
            let left = try bob.createGroup("Left", with: [alice], cid: 4)
            let gone = try alice.send("secret too", to: left, cid: 5).message.id
            try alice.call(ChatLeaveRequest(chatID: left))
            try alice.send("to myself", to: ChatID(0), cid: 6)
            try alice.setPassword("correct horse", hint: "secret hint")
            let mark = try server.reconnect(bob).login.time
            try alice.call(ProfileDeleteRequest(delete: true))
            _ = try bob.takePushes()
            clock.advance(ms: week + 1000)
            server.keepHouse()

            // Connected users get pushes.
            let pushes = try bob.news()
            let deleted = try pushes.filter { $0.opcode == .notifMsgDelete }
                .flatMap { try $0.decode(as: NotifMsgDelete.self).messageIDs }
            #expect(Set(deleted) == [mine, said, gone])
            let events = try pushes.filter { $0.opcode == .notifMessage }
                .map { try $0.decode(as: NotifMessage.self) }
            #expect(events.map(\.chatID) == [group])
            #expect(events.first?.message.sender == alice.userID)
            #expect(try bob.texts(dialog) == ["yours"])

            // At login, users who were away learn that the account is deleted.
            let (away, login) = try server.reconnect(bob, since: mark)
            #expect(Set(login.chats.map(\.id)) == [dialog, group, left])
            let contact = try #require(login.contacts.first { $0.id == alice.userID })
            #expect(contact.names.isEmpty && contact.phone == nil)
            #expect(contact.status == nil && contact.accountStatus == 2)
            #expect(login.chats.first { $0.id == group }?.owner == bob.userID)
            #expect(login.chats.first { $0.id == dialog }?.participants.pairs.count == 1)
            let write = MsgSendRequest(chatID: dialog, message: NewMessage(cid: 9, text: "hello?"))
            #expect(try away.code(of: write) == .chatNotFound)
            #expect(
                try away.code(of: ContactInfoByPhoneRequest(phone: "\(phone)")) == .userNotFound
            )

            // The phone is free, and its next owner is a new user.
            let client = try server.connect()
            #expect(try server.enterCode(phone: phone, on: client).tokenAttrs.register != nil)
        }
    }

    @Test("an administrator inherits a group, else who has been there longest")
    func heirs() throws {
        let clock = ManualClock()
        try withServer(environment: clock.environment) { server in
            let owner = try server.signUp("Owner")
            let old = try server.signUp("Old")
            let admin = try server.signUp("Admin")
            let first = try owner.createGroup("With", with: [old], cid: 1)
            let second = try owner.createGroup("Without", with: [old], cid: 2)
            clock.advance(ms: 1000)
            for group in [first, second] {
                try owner.call(
                    ChatMembersUpdateRequest(
                        chatID: group,
                        userIDs: [admin.userID],
                        operation: .add
                    )
                )
            }
            try owner.call(
                ChatMembersUpdateRequest(
                    chatID: first,
                    userIDs: [admin.userID],
                    operation: .add,
                    type: .admin,
                    permissions: 2
                )
            )
            let alone = try owner.createGroup("Alone", with: [], cid: 3)
            try owner.call(ProfileDeleteRequest(delete: true))
            clock.advance(ms: week + 1000)
            server.keepHouse()
            #expect(try old.chat(first)?.owner == admin.userID)
            #expect(try old.chat(second)?.owner == old.userID)
            #expect(try old.chat(alone) == nil)
            try old.call(ChatUpdateRequest(chatID: second, theme: "Mine"))
        }
    }

    @Test("who is away for as long as they said is erased; who looks in is not")
    func inactivity() throws {
        let clock = ManualClock()
        try withPair(environment: clock.environment) { server, alice, bob, _ in
            let carol = try server.signUp("Carol")
            for client in [alice, bob, carol] {
                func set(_ value: Text) -> ConfigRequest {
                    let user = NameMap([("INACTIVE_TTL" as Text, AnyValue(value))])
                    return ConfigRequest(settings: SettingsChange(user: user))
                }
                for value: Text in ["", "M", "0D", "1000D", "6", "6W", "-1D", "١D"] {
                    #expect(try client.code(of: set(value)) == .protoPayload, "\(value)")
                }
                try client.call(set("1M"))
            }
            for client in [alice, bob] { try client.call(PingRequest(interactive: false)) }
            server.live(days: 29, by: clock)
            let again = try server.reconnect(alice).client
            // The next commit stores the time at which Alice was last seen.
            try again.send("x", to: ChatID(0), cid: 1)
            server.live(days: 1, by: clock)
            clock.advance(ms: 1000)
            server.keepHouse()
            try bob.waitForClose()
            let gone = try again.call(ContactInfoRequest(contactIDs: [bob.userID])).contacts
            #expect(gone.first?.accountStatus == 2)
            _ = try server.reconnect(alice)
            // Carol was connected all the time.
            try carol.send("x", to: ChatID(0), cid: 1)
        }
    }

    @Test("who could not reach the server was not inactive")
    func outage() throws {
        let clock = ManualClock()
        try withPair(environment: clock.environment) { server, alice, bob, _ in
            let user = NameMap([("INACTIVE_TTL" as Text, AnyValue("1M" as Text))])
            try bob.call(ConfigRequest(settings: SettingsChange(user: user)))
            try bob.call(PingRequest(interactive: false))
            func isThere() throws -> Bool {
                let found = try alice.call(ContactInfoRequest(contactIDs: [bob.userID])).contacts
                return found.first?.accountStatus != 2
            }
            server.live(days: 10, by: clock)
            clock.advance(ms: 60 * day)
            server.keepHouse()
            #expect(try isThere())
            server.live(days: 6, by: clock)
            #expect(try isThere())
            server.live(days: 1, by: clock)
            #expect(try !isThere())
        }
    }

    @Test("goes a chat a step, and on from wherever it was")
    func steps() throws {
        let clock = ManualClock()
        try withServer(limits: ["erasedChatsPerStep": 1], environment: clock.environment) {
            server in
            let alice = try server.signUp("Alice")
            let others = try (0..<5).map { try server.signUp("User \($0)") }
            for (index, other) in others.enumerated() {
                try alice.send("secret", to: alice.dialog(with: other), cid: Int64(index))
            }
            func left() throws -> Int {
                try others.count { try $0.texts($0.dialog(with: alice)).count == 1 }
            }
            try alice.call(ProfileDeleteRequest(delete: true))
            clock.advance(ms: week + 1000)
            try server.step(1)
            #expect(try left() == 5)
            try server.step(2)
            #expect(try left() == 3)
            server.keepHouse()
            #expect(try left() == 0)
            let gone = try others[0].call(ContactInfoRequest(contactIDs: [alice.userID])).contacts
            #expect(gone.first?.accountStatus == 2)
        }
    }

    @Test("those who are there are told of the reactions and votes that go, a few a step")
    func reactionsAndVotes() throws {
        let clock = ManualClock()
        let limits = ["erasedChatsPerStep": 2]
        try withPair(limits: limits, environment: clock.environment) { server, alice, bob, _ in
            let group = try bob.createGroup("Group", with: [alice], cid: 1)
            var reacted: [MessageID] = []
            var asked: [MessageID] = []
            for number in 0..<3 {
                let cid = Int64(10 * number + 10)
                reacted.append(try bob.send("?", to: group, cid: cid).message.id)
                let reaction = NewReaction(id: "🔥")
                try alice.call(
                    MsgReactionRequest(
                        chatID: group,
                        messageID: reacted[number],
                        reaction: reaction
                    )
                )
                let message = NewMessage(cid: cid + 1, text: "poll", attaches: [.poll()])
                let sent = try bob.call(MsgSendRequest(chatID: group, message: message)).message
                asked.append(sent.id)
                let vote = SendVoteRequest(
                    chatID: group,
                    messageID: sent.id,
                    pollID: try #require(sent.attaches.stored?.first?.pollID),
                    answersIDs: [1]
                )
                try alice.call(vote)
            }
            try alice.call(ProfileDeleteRequest(delete: true))
            clock.advance(ms: week + 1000)
            _ = try bob.takePushes()
            // The first step removes the profile. The second step removes two of the three
            // reactions.
            try server.step(2)
            let first = try bob.takePushes().filter { $0.opcode == .notifMsgReactionsChanged }
            #expect(first.count == 2)
            server.keepHouse()

            let pushes = try bob.takePushes()
            let counters = try (first + pushes).filter { $0.opcode == .notifMsgReactionsChanged }
                .map { try $0.decode(as: NotifMsgReactionsChanged.self) }
            #expect(counters.map(\.messageID) == reacted)
            #expect(counters.allSatisfy { $0.chatID == group && $0.totalCount == 0 })
            let polls = try pushes.filter { $0.opcode == .notifMessage }
                .map { try $0.decode(as: NotifMessage.self).message }
                .filter { asked.contains($0.id) }
            #expect(polls.map(\.id) == asked)
            #expect(polls.allSatisfy { $0.status == .edited })
            #expect(polls.map { $0.attaches.stored?.first?.state?.total } == [0, 0, 0])
            #expect(try server.admin(.user("\(alice.userID)")).contains("erasure done"))
        }
    }

    @Test("a step withdraws a few reactions in all chats together")
    func reactionsInManyChats() throws {
        let clock = ManualClock()
        let limits = ["erasedChatsPerStep": 3]
        try withPair(limits: limits, environment: clock.environment) { server, alice, bob, _ in
            for number in 0..<2 {
                let cid = Int64(10 * number + 10)
                let group = try bob.createGroup("Group \(number)", with: [alice], cid: cid)
                for place in 1...2 {
                    let message = try bob.send("?", to: group, cid: cid + Int64(place)).message
                    let reaction = NewReaction(id: "🔥")
                    try alice.call(
                        MsgReactionRequest(
                            chatID: group,
                            messageID: message.id,
                            reaction: reaction
                        )
                    )
                }
            }
            try alice.call(ProfileDeleteRequest(delete: true))
            clock.advance(ms: week + 1000)
            _ = try bob.takePushes()
            // The first step removes the profile.
            try server.step(2)
            func withdrawn() throws -> Int {
                try bob.takePushes().count { $0.opcode == .notifMsgReactionsChanged }
            }
            #expect(try withdrawn() == 3)
            server.keepHouse()
            #expect(try withdrawn() == 1)
            #expect(try server.admin(.user("\(alice.userID)")).contains("erasure done"))
        }
    }

    @Test("goes a few messages a step where there are many, and on from wherever it was")
    func longChats() throws {
        let clock = ManualClock()
        try withServer(limits: ["erasedRowsPerStep": 4], environment: clock.environment) {
            server in
            let alice = try server.signUp("Alice")
            let bob = try server.signUp("Bob")
            let group = try bob.createGroup("Group", with: [alice], cid: 1)
            let saved = ChatID(0)
            var polls: [Attach] = []
            for number in 0..<10 {
                let cid = Int64(10 + number)
                try alice.send("secret", to: group, cid: cid)
                try alice.send("note", to: saved, cid: cid)
                let message = NewMessage(cid: cid, text: "poll", attaches: [.poll()])
                let sent = try bob.call(MsgSendRequest(chatID: group, message: message)).message
                let reaction = NewReaction(id: "🔥")
                try alice.call(
                    MsgReactionRequest(chatID: group, messageID: sent.id, reaction: reaction)
                )
                polls += sent.attaches.stored?.filter { $0.type == .poll } ?? []
                let vote = SendVoteRequest(
                    chatID: group,
                    messageID: sent.id,
                    pollID: try #require(polls.last?.pollID),
                    answersIDs: [1]
                )
                try alice.call(vote)
            }
            func left() throws -> (secrets: Int, reactions: Int64, votes: Int64) {
                let history = ChatHistoryRequest(chatID: group, backward: 100)
                let messages = try bob.call(history).messages ?? []
                return (
                    messages.count { $0.text == "secret" },
                    messages.compactMap { $0.reactionInfo?.stored?.totalCount }.reduce(0, +),
                    messages.compactMap { $0.attaches.stored?.first?.state?.total }.reduce(0, +)
                )
            }
            #expect(try left() == (10, 10, 10))
            try alice.call(ProfileDeleteRequest(delete: true))
            clock.advance(ms: week + 1000)
            // The first step removes the profile. The second removes the entry of the audit log,
            // the group's creation event and the first messages.
            try server.step(2)
            var before = try left()
            #expect(before == (9, 10, 10))
            var steps = 0
            while before != (0, 0, 0) {
                // Bob's messages between two steps do not disturb the erasure.
                try bob.send("meanwhile", to: group, cid: Int64(100 + steps))
                try server.step(1)
                let after = try left()
                let gone = before.secrets - after.secrets
                #expect(gone <= 4)
                #expect(before.reactions - after.reactions <= 4)
                #expect(before.votes - after.votes <= 4)
                before = after
                steps += 1
                try #require(steps < 30)
            }
            #expect(steps >= 9)
            server.keepHouse()
            #expect(try server.admin(.user("\(alice.userID)")).contains("erasure done"))
            #expect(try server.admin(.check) == ["ok"])
            let members = try bob.call(ChatMembersRequest(chatID: group)).members
            #expect(members.map(\.contact.id) == [bob.userID])
        }
    }
}

private let day: Int64 = 86_400_000

extension TestServer {
    /// Advances the clock day by day while the server runs. Runs the housekeeping each day.
    fileprivate func live(days: Int, by clock: ManualClock) {
        keepHouse()
        for _ in 0..<days {
            clock.advance(ms: day)
            keepHouse()
        }
    }

    fileprivate func step(_ count: Int) throws {
        let eraser = AccountEraser(limits: LiveAdminBackend(server).limits)
        for _ in 0..<count {
            try run { tx in
                let isMore = try eraser.step(in: tx)
                #expect(isMore)
            }
        }
    }
}
