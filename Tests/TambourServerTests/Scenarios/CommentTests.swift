import Foundation
import TambourProtocol
import TambourStore
import TambourTesting
import Testing

@testable import TambourMessenger
@testable import TambourServer

@Suite("Comments on posts")
struct CommentTests {
    @Test("go with their post, and with the channel, from the file too", arguments: [false, true])
    func purged(withChannel: Bool) throws {
        try withServer { server in
            let owner = try server.signUp("Owner")
            let reader = try server.signUp("Reader")
            let channel = try owner.channel("News", with: [reader], cid: 1)
            let post = try owner.send("news", to: channel, cid: 2).message.id
            let kept = try owner.send("more news", to: channel, cid: 3).message.id
            // Write more comments than one step removes.
            let count = Limits.standard.purgedRowsPerStep + 10
            for number in 0..<count {
                try reader.comment("Tautropfen", on: post, in: channel, cid: Int64(10 + number))
            }
            try reader.comment("Uferschwalbe", on: kept, in: channel, cid: 5)
            #expect(try server.storedBytes().range(of: Data("Tautropfen".utf8)) != nil)

            if withChannel {
                try owner.call(ChatDeleteRequest(chatID: channel, forAll: true))
            } else {
                try owner.call(MsgDeleteRequest(chatID: channel, messageIDs: [post]))
            }
            try server.run { tx in
                while try tx.purgeMessages(limit: 100) != nil {}
            }
            #expect(try server.admin(.vacuum).count == 1)

            let bytes = try server.storedBytes()
            #expect(bytes.range(of: Data("Tautropfen".utf8)) == nil)
            #expect((bytes.range(of: Data("Uferschwalbe".utf8)) == nil) == withChannel)
            #expect(try server.admin(.check) == ["ok"])
            guard !withChannel else { return }
            #expect(try reader.comments(on: kept, in: channel).map(\.text) == ["Uferschwalbe"])
        }
    }

    @Test("can be written by a banned reader who inherits the channel")
    func heir() throws {
        try withServer { server in
            let owner = try server.signUp("Owner")
            let reader = try server.signUp("Reader")
            let channel = try owner.channel("News", with: [reader], cid: 1)
            try owner.call(
                ChatMembersUpdateRequest(
                    chatID: channel,
                    userIDs: [reader.userID],
                    operation: .add,
                    type: .commentsBlacklist
                )
            )
            let list = ChatMembersRequest(chatID: channel, type: .commentsBlacklist)
            #expect(try owner.call(list).members.count == 1)
            _ = try server.admin(.erase(user: "\(owner.userID)", isConfirmed: true))
            #expect(try reader.call(list).members.isEmpty)
            let post = try reader.send("news", to: channel, cid: 2).message.id
            try reader.comment("mine now", on: post, in: channel, cid: 3)
        }
    }

    @Test("are not there for who joined after their post, or has cleared the channel")
    func floor() throws {
        try withServer { server in
            let owner = try server.signUp("Owner")
            let reader = try server.signUp("Reader")
            let late = try server.signUp("Late")
            let channel = try owner.channel("News", with: [reader], cid: 1)
            let post = try owner.send("news", to: channel, cid: 2).message.id
            try owner.call(
                ChatMembersUpdateRequest(
                    chatID: channel,
                    userIDs: [late.userID],
                    operation: .add,
                    showHistory: false
                )
            )
            try reader.comment("said", on: post, in: channel, cid: 3)
            try reader.call(ChatClearRequest(chatID: channel))
            for client in [late, reader] {
                let refusal = #expect(throws: WireClient.Failure.self) {
                    try client.comments(on: post, in: channel)
                }
                #expect(refusal?.description.contains("not.found") == true)
            }
            #expect(try owner.comments(on: post, in: channel).count == 1)
        }
    }

    @Test(
        "are gone for their author with the post, also when they are sent again",
        arguments: [false, true]
    )
    func again(byHiding: Bool) throws {
        try withServer { server in
            let owner = try server.signUp("Owner")
            let reader = try server.signUp("Reader")
            let channel = try owner.channel("News", with: [reader], cid: 1)
            let post = try owner.send("news", to: channel, cid: 2).message.id
            let said = try owner.comment("said", on: post, in: channel, cid: 3).id
            let answer = NewMessage(
                cid: 4,
                text: "answered",
                link: NewLink(type: .reply, messageID: said)
            )
            let request = MsgSendRequest(chatID: channel, postID: post, message: answer)
            let first = try reader.call(request).message
            #expect(first.link != nil)
            if byHiding {
                try reader.call(MsgDeleteRequest(chatID: channel, messageIDs: [post], forMe: true))
            } else {
                try reader.call(ChatClearRequest(chatID: channel))
            }
            let again = try reader.call(request).message
            #expect(again.id == first.id)
            #expect(again.status == .removed)
            #expect(again.text.bytes.isEmpty)
            #expect(again.link == nil)
        }
    }

    @Test("have later ids than their post")
    func later() throws {
        try withServer { server in
            let owner = try server.signUp("Owner")
            let channel = try owner.channel("News", with: [], cid: 1)
            // The server gives the last posts of a burst times that are ahead of the clock.
            var posts: [MessageID] = []
            for number in 0..<50 {
                posts.append(try owner.send("news", to: channel, cid: Int64(2 + number)).message.id)
            }
            let post = try #require(posts.last)
            let first = try owner.comment("first", on: post, in: channel, cid: 100)
            #expect(first.id > post && first.time > post.timeMs)
            #expect(first.prevMessageID == nil)
        }
    }

    @Test("are pushed to a client that names no capability with what it refuses a push without")
    func classic() throws {
        try withServer { server in
            let owner = try server.signUp("Owner")
            let reader = try server.signUp("Reader")
            let channel = try owner.channel("News", with: [reader], cid: 1)
            let post = try owner.send("news", to: channel, cid: 2).message.id
            try reader.call(ChatSubscribeRequest(chatID: channel, postID: post))
            _ = try reader.takePushes()
            try owner.comment("said", on: post, in: channel, cid: 3)
            let told = try reader.takePushes().filter { $0.opcode == .notifMessage }
            let push = try #require(told.first).decode(as: NotifMessage.self)
            #expect(push.postID == post)
            #expect((push.ttl, push.mark, push.unread) == (false, 0, 0))
        }
    }

    @Test("on a post that nobody knows are refused, whatever is asked")
    func unknownPost() throws {
        try withServer { server in
            let owner = try server.signUp("Owner")
            let reader = try server.signUp("Reader")
            let stranger = try server.signUp("Stranger")
            let channel = try owner.channel("News", with: [reader], cid: 1)
            let post = try owner.send("news", to: channel, cid: 2).message.id
            let made = try owner.comment("said", on: post, in: channel, cid: 3).id
            let none = MessageID(made.rawValue + 1)
            let requests: [any WireRequest] = [
                ChatHistoryRequest(chatID: channel, backward: 1, postID: none),
                ChatChangesRequest(chatID: channel, since: 1, postID: none),
                ChatSubscribeRequest(chatID: channel, postID: none),
                MsgGetRequest(chatID: channel, messageIDs: [made], postID: none),
                MsgDeleteRequest(chatID: channel, messageIDs: [made], postID: none),
                MsgTypingRequest(chatID: channel, postID: none),
                MsgDeleteUserCommentsRequest(
                    chatID: channel,
                    postID: none,
                    userID: owner.userID
                ),
                ChatMembersUpdateRequest(
                    chatID: channel,
                    userIDs: [reader.userID],
                    operation: .add,
                    type: .commentsBlacklist,
                    cleanMsgPeriod: -1,
                    postID: none
                ),
            ]
            for request in requests {
                #expect(try owner.refusal(of: request).code == .notFound, "\(type(of: request))")
            }
            let all = MsgDeleteUserCommentsRequest(
                chatID: channel,
                postID: post,
                userID: owner.userID
            )
            #expect(try stranger.refusal(of: all).code == .chatNotFound)
            #expect(try reader.refusal(of: all).code == .notAllowed)
            try owner.call(all)
            #expect(try reader.comments(on: post, in: channel).isEmpty)
        }
    }
}
