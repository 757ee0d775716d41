import TambourProtocol
import Testing

@testable import TambourClient

/// Requests that the client sends only once at a time, even if several callers need the answer.
@Suite("Open questions")
struct OpenQuestionTests {
    private static let chat = ScriptedServer.dialog

    /// The first login contains the chat, and the second reports a change in it.
    private static func bringChat(_ server: ScriptedServer) {
        server.login.chats = [ScriptedServer.described(last: ScriptedServer.message(1))]
        server.reconnect()
        server.reconnect()
    }

    private static func look(_ server: ScriptedServer) throws {
        _ = try server.wish { core, tx in
            core.lookAway(from: chat)
            try core.look(
                at: chat,
                position: nil,
                isGoingBack: true,
                rowsOnScreen: 10,
                visible: [],
                tx
            )
        }
    }

    @Test("who looks at a chat does not ask again what the login has asked")
    func changes() throws {
        try withScriptedServer { server in
            Self.bringChat(server)
            try Self.look(server)
            #expect(try server.asked(ChatChangesRequest.self).count == 1)
            // The answer is lost with the connection, so the next login repeats the request.
            server.reconnect()
            #expect(try server.asked(ChatChangesRequest.self).count == 1)
            try server.answer(
                .chatChanges,
                ChatChangesReply(messages: [], removedIDs: [], time: 2_000_000)
            )
            try Self.look(server)
            #expect(!server.isAsked(.chatChanges))
        }
    }

    @Test("a chat that the server describes anew is asked about also while it is")
    func changesAfterPush() throws {
        try withScriptedServer { server in
            Self.bringChat(server)
            #expect(server.isAsked(.chatChanges))
            let chat = ScriptedServer.described(last: ScriptedServer.message(1))
            server.push(.notifChat, NotifChat(chat: chat))
            let asked = try server.asked(ChatChangesRequest.self)
            #expect(asked.count == 2)
        }
    }

    @Test("nothing is open that was asked behind the end of a connection")
    func behindTheEnd() throws {
        try withScriptedServer { server in
            Self.bringChat(server)
            server.isSlow = true
            server.reconnect()
            try server.inOnePiece {
                try server.refuse(.sessionInit, with: .tooManyRequests)
                server.push(
                    .notifChat,
                    NotifChat(chat: ScriptedServer.described(last: ScriptedServer.message(1)))
                )
            }
            #expect(!server.isAsked(.chatChanges))
            server.isSlow = false
            server.passTime(ms: 20_000)
            #expect(try server.asked(ChatChangesRequest.self).count == 1)
        }
    }

    @Test("a page that was refused for its rate is asked for again after the pause")
    func refusedPage() throws {
        try withScriptedServer { server in
            let (older, last) = (ScriptedServer.message(0), ScriptedServer.message(1))
            server.login.chats = [ScriptedServer.described(last: last, before: older)]
            server.reconnect()
            try Self.look(server)
            #expect(server.isAsked(.chatHistory))
            try server.refuse(.chatHistory, with: .tooManyRequests, retryAfterMs: 5_000)
            #expect(!server.isAsked(.chatHistory))
            server.passTime(ms: 4_000)
            #expect(!server.isAsked(.chatHistory))
            server.passTime(ms: 2_000)
            #expect(server.isAsked(.chatHistory))
        }
    }

    // MARK: - Reactions

    private static let done = MsgCancelReactionReply(reactionInfo: ReactionInfo())

    private static func takeReactionBack(_ server: ScriptedServer) throws {
        let task = CancelReactionTask(
            chat: chat.rawValue,
            message: ScriptedServer.message(1).id.rawValue
        )
        _ = try server.wish { try $0.queue(task, $1) }
    }

    /// A push before the reply to the user's own reaction makes the client request the reactions.
    private static func react(_ count: Int64, _ server: ScriptedServer) {
        server.push(
            .notifMsgReactionsChanged,
            NotifMsgReactionsChanged(
                chatID: chat,
                messageID: ScriptedServer.message(1).id,
                counters: [ReactionCounter(count: count, reaction: "🔥")],
                totalCount: count
            )
        )
    }

    private static func bringMessage(_ server: ScriptedServer) {
        server.push(.notifMessage, NotifMessage(chatID: chat, message: ScriptedServer.message(1)))
    }

    @Test("the reactions to a message are asked for once at a time")
    func reactions() throws {
        try withScriptedServer { server in
            Self.bringMessage(server)
            for count in 1...2 {
                try Self.takeReactionBack(server)
                Self.react(Int64(count), server)
                try server.answer(.msgCancelReaction, Self.done)
                #expect(try server.asked(MsgGetReactionsRequest.self).count == 1)
            }
        }
    }

    @Test("a question whose transaction failed is not taken for open")
    func afterFullDisk() throws {
        try withScriptedServer { server in
            Self.bringMessage(server)
            try Self.takeReactionBack(server)
            Self.react(1, server)
            try server.withFullDisk { try server.answer(.msgCancelReaction, Self.done) }
            #expect(!server.isAsked(.msgGetReactions))
            server.passTime()
            Self.react(2, server)
            try server.answer(.msgCancelReaction, Self.done)
            #expect(server.isAsked(.msgGetReactions))
        }
    }

    // MARK: - People

    @Test("somebody who could not be asked about is asked about on the next connection")
    func stranger() throws {
        try withScriptedServer { server in
            server.withFullDisk { Self.bringMessage(server) }
            #expect(!server.isAsked(.contactInfo))
            server.passTime()
            Self.bringMessage(server)
            #expect(server.isAsked(.contactInfo))
        }
    }
}
