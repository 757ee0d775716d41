import TambourProtocol
import TambourTesting
import Testing

@Suite("MSG_DELETE (66)")
struct MsgDeleteTests {
    @Test("for all: everybody else hears of it, nobody sees it any more")
    func forAll() throws {
        try withPair { server, alice, bob, dialog in
            let tablet = try server.signIn(phoneOf: alice, device: "tablet")
            let ids = try (1...3).map { try alice.send("\($0)", to: dialog, cid: $0).message.id }
            _ = try (bob.takePushes(), tablet.takePushes())

            let reply = try alice.delete([ids[1], ids[1]], in: dialog)

            #expect(reply.chatID == dialog)
            #expect(reply.messageIDs == [ids[1]])
            #expect(reply.failedMessageIDs == nil)
            for other in [bob, tablet] {
                let pushes = try other.only(.notifMsgDelete, as: NotifMsgDelete.self)
                #expect(pushes.map(\.messageIDs) == [[ids[1]]])
                #expect(pushes.map(\.chatID) == [dialog])
            }
            try alice.expectSilence()
            #expect(try bob.texts(dialog) == ["1", "3"])
            #expect(try bob.chat(dialog)?.newMessages == 2)

            let again = try alice.delete([ids[1]], in: dialog)
            #expect(again.messageIDs == [ids[1]])
            try bob.expectSilence()
        }
    }

    @Test("many go in parts, with one reply", arguments: [3, 4, 10])
    func parts(step: Int) throws {
        try withServer(limits: ["deletedPerStep": step]) { server in
            let alice = try server.signUp("Alice")
            let bob = try server.signUp("Bob")
            let group = try alice.createGroup("Group", with: [bob], cid: 1)
            let ids = try (2..<12).map {
                try ($0 == 5 ? bob : alice).send("\($0)", to: group, cid: Int64($0)).message.id
            }
            let unknown = MessageID(ids[9].rawValue + 1)
            func told() throws -> [WireClient.Push] {
                try alice.takePushes() + bob.takePushes()
            }
            func gone(_ pushes: [WireClient.Push]) throws -> [MessageID] {
                try pushes.filter { $0.opcode == .notifMsgDelete }
                    .flatMap { try $0.decode(as: NotifMsgDelete.self).messageIDs }
            }
            _ = try told()
            let reply = try bob.delete(ids.prefix(7) + [ids[3], unknown], in: group)
            #expect(reply.messageIDs == [ids[3]])
            #expect(
                Set(reply.failedMessageIDs ?? [])
                    == Set(ids.prefix(7)).subtracting([ids[3]]).union([unknown])
            )
            #expect(try gone(told()) == [ids[3]])
            let first = try alice.delete(Array(ids.prefix(6)), in: group)
            #expect(Set(first.messageIDs) == Set(ids.prefix(6)))
            #expect(try gone(told()).sorted() == ids.prefix(6).filter { $0 != ids[3] })
            try alice.call(
                MsgDeleteRangeRequest(
                    chatID: group,
                    startTime: ids[0].timeMs,
                    endTime: ids[8].timeMs
                )
            )
            let pushes = try told()
            #expect(pushes.filter { $0.opcode == .notifMsgDeleteRange }.count == 1)
            #expect(try gone(pushes) == Array(ids[6...8]))
            #expect(try bob.texts(group).contains("11"))
            #expect(try bob.texts(group).contains { ["8", "9", "10"].contains($0) } == false)
        }
    }

    @Test("members who begin at many places share pushes, and none of them misses an id")
    func sharedPushes() throws {
        try withServer(limits: ["fanOutMembers": 2]) { server in
            let alice = try server.signUp("Alice")
            let group = try alice.createGroup("Group", with: [], cid: 1)
            var sent: [MessageID] = []
            var late: [WireClient] = []
            for number in 0..<5 {
                sent.append(
                    try alice.send("\(number)", to: group, cid: Int64(number + 2)).message.id
                )
                let client = try server.signUp("Late \(number)")
                try alice.call(
                    ChatMembersUpdateRequest(
                        chatID: group,
                        userIDs: [client.userID],
                        operation: .add,
                        showHistory: false
                    )
                )
                late.append(client)
            }
            for client in late { _ = try client.takePushes() }
            try alice.delete(sent, in: group)
            let told = try late.map { client in
                try client.takePushes().filter { $0.opcode == .notifMsgDelete }
                    .flatMap { try $0.decode(as: NotifMsgDelete.self).messageIDs }
            }
            for (place, ids) in told.enumerated() {
                #expect(Set(ids).isSuperset(of: sent.suffix(4 - place)))
                #expect(Set(ids).count == ids.count)
            }
            #expect(Set(told.filter { !$0.isEmpty }).count == 2)
        }
    }

    /// The ways to delete messages for everybody.
    enum Deletion: CaseIterable {
        case named, range, cleared, withTheirAuthor
    }

    @Test(
        "for all: nobody is told the id of what is not there for them",
        arguments: Deletion.allCases,
        [32, 2]
    )
    func withheld(deletion: Deletion, fanOut: Int) throws {
        try withServer(limits: ["fanOutMembers": fanOut]) { server in
            let names = ["Alice", "Bob", "Carol", "Dave"]
            let people = try names.map { try server.signUp($0) }
            let (alice, bob, carol, dave) = (people[0], people[1], people[2], people[3])
            let group = try alice.createGroup("Group", with: [bob, dave], cid: 1)
            let old = try (2...3).map { try bob.send("\($0)", to: group, cid: $0).message.id }
            try alice.call(
                ChatMembersUpdateRequest(
                    chatID: group,
                    userIDs: [carol.userID],
                    operation: .add,
                    showHistory: false
                )
            )
            try dave.call(ChatClearRequest(chatID: group, lastEventTime: old[0].timeMs))
            let new = try bob.send("new", to: group, cid: 4).message.id
            for client in people { _ = try client.takePushes() }
            switch deletion {
            case .named: try bob.delete(old + [new], in: group)
            case .range:
                try bob.call(
                    MsgDeleteRangeRequest(
                        chatID: group,
                        startTime: old[0].timeMs,
                        endTime: new.timeMs
                    )
                )
            case .cleared: try alice.call(ChatClearRequest(chatID: group, forAll: true))
            case .withTheirAuthor:
                try alice.call(
                    ChatMembersUpdateRequest(
                        chatID: group,
                        userIDs: [bob.userID],
                        operation: .remove,
                        cleanMsgPeriod: -1
                    )
                )
            }
            func told(_ client: WireClient) throws -> Set<MessageID> {
                let pushes = try client.takePushes().filter { $0.opcode == .notifMsgDelete }
                let ids = try pushes.flatMap { try $0.decode(as: NotifMsgDelete.self).messageIDs }
                return Set(ids).intersection(old + [new])
            }
            #expect(try told(carol) == [new])
            #expect(try told(dave) == [old[1], new])
            if deletion != .cleared, deletion != .withTheirAuthor {
                #expect(try told(alice) == Set(old + [new]))
            }
        }
    }

    @Test("for me: only the own other sessions hear of it, the others keep it")
    func forMe() throws {
        try withPair { server, alice, bob, dialog in
            let tablet = try server.signIn(phoneOf: bob, device: "tablet")
            let ids = try (1...2).map { try alice.send("\($0)", to: dialog, cid: $0).message.id }
            _ = try (alice.takePushes(), bob.takePushes(), tablet.takePushes())

            try bob.delete([ids[1]], in: dialog, forMe: true)

            #expect(try tablet.only(.notifMsgDelete, as: NotifMsgDelete.self).count == 1)
            try alice.expectSilence()
            try bob.expectSilence()
            #expect(try bob.texts(dialog) == ["1"])
            #expect(try alice.texts(dialog) == ["1", "2"])
            let chat = try #require(try bob.chat(dialog))
            #expect(chat.newMessages == 1)
            #expect(chat.lastMessage?.id == ids[0])
            #expect(try alice.chat(dialog)?.lastMessage?.id == ids[1])
        }
    }

    @Test("the messages that a user hides in a chat are limited; then the user clears it")
    func hiddenQuota() throws {
        try withServer(limits: ["maxHiddenPerChat": 3]) { server in
            let alice = try server.signUp("Alice")
            let bob = try server.signUp("Bob")
            let group = try alice.createGroup("Group", with: [bob], cid: 1)
            let ids = try (2..<8).map {
                try alice.send("\($0)", to: group, cid: Int64($0)).message.id
            }
            try bob.delete(Array(ids[0...2]), in: group, forMe: true)
            try bob.delete([ids[1]], in: group, forMe: true)
            let more = MsgDeleteRequest(chatID: group, messageIDs: [ids[2], ids[3]], forMe: true)
            #expect(try bob.code(of: more) == .protoPayload)
            #expect(try bob.texts(group).contains("5"))
            try bob.call(ChatClearRequest(chatID: group, lastEventTime: ids[3].timeMs))
            #expect(try bob.texts(group) == ["6", "7"])
        }
    }

    @Test("hidden and then removed counts once in unread")
    func unreadOfBoth() throws {
        try withPair { _, alice, bob, dialog in
            let ids = try (1...5).map { try alice.send("\($0)", to: dialog, cid: $0).message.id }
            try bob.delete([ids[1], ids[2]], in: dialog, forMe: true)
            #expect(try bob.chat(dialog)?.newMessages == 3)
            try alice.delete([ids[2], ids[3]], in: dialog)
            #expect(try bob.chat(dialog)?.newMessages == 2)
            let mark = try bob.call(
                ChatMarkRequest(type: .readMessage, chatID: dialog, messageID: ids[0])
            )
            #expect(mark.unread == 1)
        }
    }

    @Test("in a dialog one deletes one's own; in a group its owner also those of others")
    func rights() throws {
        try withPair { server, alice, bob, dialog in
            let carol = try server.signUp("Carol")
            let theirs = try alice.send("mine", to: dialog, cid: 1).message.id
            let own = try bob.send("own", to: dialog, cid: 1).message.id
            let mixed = try bob.delete([theirs, own, MessageID(5)], in: dialog)
            #expect(mixed.messageIDs == [own])
            #expect(mixed.failedMessageIDs == [theirs, MessageID(5)])

            let group = try alice.createGroup("Three", with: [bob, carol], cid: 2)
            let event = try #require(try alice.history(group).messages?.first?.id)
            let said = try bob.send("said", to: group, cid: 2).message.id
            #expect(try carol.delete([said], in: group).failedMessageIDs == [said])
            #expect(try alice.delete([event], in: group).failedMessageIDs == [event])
            #expect(try alice.delete([said], in: group).messageIDs == [said])
            #expect(try carol.texts(group) == [""])
        }
    }

    @Test("scheduled messages there are none, and the chat must be the caller's")
    func refusals() throws {
        try withPair { server, alice, bob, dialog in
            let id = try alice.send("1", to: dialog, cid: 1).message.id
            let delayed = try alice.call(
                MsgDeleteRequest(chatID: dialog, messageIDs: [id], itemType: .delayed)
            )
            #expect(delayed.failedMessageIDs == [id])
            let carol = try server.signUp("Carol")
            for chat in [dialog, ChatID(-1), carol.dialog(with: bob)] {
                let request = MsgDeleteRequest(chatID: chat, messageIDs: [id])
                #expect(try carol.code(of: request) == .chatNotFound)
            }
            #expect(try bob.texts(dialog) == ["1"])
        }
    }
}
