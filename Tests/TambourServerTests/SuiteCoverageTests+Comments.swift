import TambourProtocol
import TambourServer
import TambourStore
import TambourTesting
import Testing

extension SuiteCoverageTests {
    /// Plays the requests that name a post. Plays each with an existing post and with a missing
    /// post.
    func comments(
        _ tour: Tour,
        _ server: TestServer,
        _ alice: WireClient,
        _ bob: WireClient
    ) throws {
        let channel = try alice.channel("Talk", with: [bob], cid: 3_100)
        let post = try alice.send("read", to: channel, cid: 3_101).message.id
        for post in [post, MessageID(1)] {
            try tour.play(bob, MsgTypingRequest(chatID: channel, postID: post))
            try tour.play(bob, ChatSubscribeRequest(chatID: channel, postID: post))
            try tour.play(bob, ChatHistoryRequest(chatID: channel, backward: 1, postID: post))
            try tour.play(bob, ChatChangesRequest(chatID: channel, since: 0, postID: post))
            try tour.play(bob, MsgGetRequest(chatID: channel, messageIDs: [post], postID: post))
            try tour.play(
                bob,
                MsgGetReactionsRequest(chatID: channel, postID: post, messageIDs: [post])
            )
            try tour.play(bob, MsgDeleteRequest(chatID: channel, messageIDs: [post], postID: post))
            let ban = ChatMembersUpdateRequest(
                chatID: channel,
                userIDs: [bob.userID],
                operation: .add,
                type: .commentsBlacklist,
                cleanMsgPeriod: -1,
                postID: post
            )
            try tour.play(alice, ban)
        }
        func delete(_ chat: ChatID, _ post: MessageID) -> MsgDeleteUserCommentsRequest {
            MsgDeleteUserCommentsRequest(chatID: chat, postID: post, userID: alice.userID)
        }
        try tour.play(alice, delete(channel, post))
        try tour.play(alice, delete(channel, MessageID(1)))
        try tour.play(alice, delete(ChatID(-1), post))
        try tour.play(bob, delete(channel, post))
        try tour.collect(alice, bob)
    }
}
