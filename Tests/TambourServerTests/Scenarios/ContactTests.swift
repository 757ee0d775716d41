import TambourProtocol
import TambourServer
import TambourTesting
import Testing

@Suite("CONTACT_INFO (32)")
struct ContactInfoTests {
    @Test("unknown ids are left out, repeated ones come once, phones stay with their owner")
    func contacts() throws {
        try withPair { _, alice, bob, _ in
            let ids = [bob.userID, UserID(999), alice.userID, bob.userID, UserID(.min)]
            let contacts = try alice.call(ContactInfoRequest(contactIDs: ids)).contacts
            #expect(contacts.map(\.id) == [bob.userID, alice.userID])
            #expect(contacts[0].phone == nil)
            #expect(contacts[1].phone != nil)
            #expect(contacts[0].names.first?.firstName == "Bob")
        }
    }
}

@Suite("CONTACT_INFO_BY_PHONE (46)")
struct ContactInfoByPhoneTests {
    @Test("a number is found however it is written")
    func formats() throws {
        try withPair { _, alice, bob, _ in
            let own = try bob.call(ContactInfoRequest(contactIDs: [bob.userID])).contacts
            let phone = try #require(own.first?.phone)
            let digits = "\(phone)"
            let spaced =
                "+\(digits.prefix(1)) (\(digits.dropFirst(1).prefix(3))) "
                + "\(digits.dropFirst(4).prefix(3))-\(digits.dropFirst(7))"
            for text in ["+\(digits)", digits, spaced] {
                let reply = try alice.call(ContactInfoByPhoneRequest(phone: text))
                #expect(reply.contact.id == bob.userID, "\(text)")
            }
        }
    }

    @Test("what nobody has, what is no number and who is blocked look alike")
    func unknown() throws {
        try withPair { server, alice, bob, _ in
            let own = try bob.call(ContactInfoRequest(contactIDs: [bob.userID])).contacts
            let phone = try #require(own.first?.phone)
            try server.block(bob.userID)
            for text in ["+\(phone)", "+70000000000", "", "abc", "7999+0000001", "1234"] {
                let refusal = try alice.refusal(of: ContactInfoByPhoneRequest(phone: text))
                #expect(refusal == .userNotFound, "\(text)")
            }
        }
    }
}

@Suite("CONTACT_UPDATE (34)")
struct ContactUpdateTests {
    @Test("a phone for contacts alone comes and goes with being one, also for who was away")
    func phone() throws {
        try withPair { server, alice, bob, dialog in
            let contacts = NameMap([("PHONE_NUMBER_PRIVACY" as Text, AnyValue("CONTACTS" as Text))])
            try bob.call(ConfigRequest(settings: SettingsChange(user: contacts)))
            try alice.send("hi", to: dialog, cid: 1)
            try alice.call(ContactUpdateRequest(contactID: bob.userID, action: .add))
            func delta(_ mark: Int64) throws -> (phones: [Int64?], time: Int64) {
                let login = try server.reconnect(alice, since: mark).login
                return (login.contacts.filter { $0.id == bob.userID }.map(\.phone), login.time)
            }
            let first = try delta(-1)
            #expect(first.phones == [nil])
            try bob.call(
                ContactUpdateRequest(contactID: alice.userID, action: .add, firstName: "Al")
            )
            let shown = try delta(first.time)
            #expect(shown.phones == [try bob.phone])
            try bob.call(ContactUpdateRequest(contactID: alice.userID, action: .remove))
            let hidden = try delta(shown.time)
            #expect(hidden.phones == [nil])
        }
    }
}

@Suite("CONTACT_CREATE (41)")
struct ContactCreateTests {
    @Test("a contact too many is refused, and the refusal names a field of the request")
    func limit() throws {
        try withServer(limits: ["maxContacts": 1]) { server in
            let alice = try server.signUp("Alice")
            let phones = try ["Bob", "Carol"].map { name in
                let other = try server.signUp(name)
                let own = try other.call(ContactInfoRequest(contactIDs: [other.userID])).contacts
                return "+\(try #require(own.first?.phone))"
            }
            try alice.call(ContactCreateRequest(phone: phones[0], firstName: "Bob"))
            let create = ContactCreateRequest(phone: phones[1], firstName: "Carol")
            #expect(
                try alice.refusal(of: create) == .protoPayload("/phone: limit 1 contacts")
            )
        }
    }
}

@Suite("NOTIF_PRESENCE (132)")
struct PresenceTests {
    @Test("a dialog partner's coming is told at once, its going after a delay")
    func comingAndGoing() throws {
        try withPair(limits: ["presenceOfflineDelayMs": 20]) { server, alice, bob, dialog in
            try alice.send("hi", to: dialog, cid: 1)
            _ = try alice.takePushes()
            try bob.call(PingRequest(interactive: false))
            let gone = try alice.next(.notifPresence, as: NotifPresence.self)
            #expect(gone.userID == bob.userID)
            #expect(gone.presence.status == 0)
            try bob.call(PingRequest(interactive: true))
            let here = try alice.next(.notifPresence, as: NotifPresence.self)
            #expect(here.presence.status == 1)
            // On the wire, `seen` is in seconds.
            #expect(abs(try #require(here.presence.seen) - wallNow / 1000) < 60)
            let login = try server.login(alice)
            #expect(login.presence[bob.userID]?.status == 1)
        }
    }

    @Test("what changes while the commit clock is ahead of the wall is in the next delta")
    func clockAhead() throws {
        let clock = ManualClock()
        let limits = ["presenceOfflineDelayMs": 20]
        try withPair(limits: limits, environment: clock.environment) { server, alice, bob, dialog in
            try alice.send("hi", to: dialog, cid: 1)
            _ = try alice.takePushes()
            clock.advance(ms: -60_000)
            let mark = try server.reconnect(alice).login.time
            #expect(mark > clock.now)
            clock.advance(ms: 1_000)
            try bob.call(PingRequest(interactive: false))
            let gone = try alice.next(.notifPresence, as: NotifPresence.self)
            #expect(gone.presence.status == 0)
            #expect(gone.time ?? 0 > mark)
            let delta = try server.reconnect(alice, since: mark).login
            #expect(delta.presence[bob.userID]?.status == 0)
        }
    }

    @Test("a login in the background while the clock is ahead is in the next delta")
    func seenWhileClockAhead() throws {
        let clock = ManualClock()
        try withPair(environment: clock.environment) { server, alice, bob, dialog in
            clock.advance(ms: 1_000)
            try alice.send("hi", to: dialog, cid: 1)
            clock.advance(ms: -60_000)
            let mark = try server.reconnect(alice).login.time
            #expect(mark > clock.now)
            clock.advance(ms: 1_000)
            let client = try server.connect()
            try client.call(LoginRequest(token: bob.token, interactive: false))
            let delta = try server.reconnect(alice, since: mark).login
            #expect(delta.presence[bob.userID] != nil)
        }
    }

    @Test("twenty reconnects in a row cost others no more than one push in the delay")
    func reconnects() throws {
        let delay = 300
        try withPair(limits: ["presenceOfflineDelayMs": delay]) { server, alice, bob, dialog in
            try alice.send("hi", to: dialog, cid: 1)
            try bob.call(PingRequest(interactive: false))
            #expect(try alice.next(.notifPresence, as: NotifPresence.self).presence.status == 0)
            let began = ContinuousClock.now
            var here = bob
            for _ in 0..<20 {
                let next = try server.reconnect(bob).client
                here.close()
                try next.call(PingRequest(interactive: false))
                here = next
            }
            try here.call(PingRequest(interactive: true))
            let last = try alice.next(.notifPresence, as: NotifPresence.self)
            #expect(last.presence.status == 1)
            let turns = (ContinuousClock.now - began) / .milliseconds(delay)
            let more = try alice.takePushes().filter { $0.opcode == .notifPresence }
            #expect(Double(1 + more.count) <= turns + 1)
        }
    }

    @Test("dialogs that rest for a month are not followed before they are opened")
    func months() throws {
        let clock = ManualClock()
        let limits = ["presenceOfflineDelayMs": 20]
        try withPair(limits: limits, environment: clock.environment) { server, alice, bob, dialog in
            try alice.send("hi", to: dialog, cid: 1)
            clock.advance(ms: 29 * 86_400_000)
            #expect(try server.reconnect(alice).login.presence[bob.userID] != nil)
            clock.advance(ms: 2 * 86_400_000)
            // The server's clock advances only with a commit, so Carol sends a message. Alice
            // reconnects, because a connected user follows old dialogs until the connection ends.
            let carol = try server.signUp("Carol")
            try carol.send("hi", to: carol.dialog(with: bob), cid: 1)
            alice.close()
            #expect(try bob.next(.notifPresence, as: NotifPresence.self).userID == alice.userID)
            let (client, login) = try server.reconnect(alice)
            #expect(login.presence.isEmpty)
            try bob.call(PingRequest(interactive: false))
            #expect(try carol.next(.notifPresence, as: NotifPresence.self).presence.status == 0)
            try client.expectNoPresence()
            try client.call(ChatSubscribeRequest(chatID: dialog, subscribe: true))
            try bob.call(PingRequest(interactive: true))
            #expect(try client.next(.notifPresence, as: NotifPresence.self).presence.status == 1)
        }
    }

    @Test("of more than the limit those are told who began to follow last")
    func manyWhoFollow() throws {
        let limits = ["presenceOfflineDelayMs": 20, "presencePushes": 1]
        try withPair(limits: limits) { server, alice, bob, dialog in
            try alice.send("hi", to: dialog, cid: 1)
            let carol = try server.signUp("Carol")
            try carol.send("hi", to: carol.dialog(with: bob), cid: 1)
            _ = try alice.takePushes()
            try bob.call(PingRequest(interactive: false))
            #expect(try carol.next(.notifPresence, as: NotifPresence.self).presence.status == 0)
            try alice.expectNoPresence()
        }
    }

    @Test("strangers hear nothing")
    func strangers() throws {
        try withPair { server, _, bob, _ in
            let carol = try server.signUp("Carol")
            try bob.call(PingRequest(interactive: false))
            try bob.call(PingRequest(interactive: true))
            #expect(try carol.takePushes().isEmpty)
        }
    }
}

extension WireClient {
    fileprivate func expectNoPresence(sourceLocation: SourceLocation = #_sourceLocation) throws {
        let told = try takePushes().filter { $0.opcode == .notifPresence }
        #expect(told.isEmpty, sourceLocation: sourceLocation)
    }
}
