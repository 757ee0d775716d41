import TambourProtocol
import TambourServer
import TambourStore
import TambourTesting

/// The comments that each post should have. The oracle learns them only from the replies of
/// commands.
struct CommentOracle {
    struct Thread {
        let channel: SyncOracle.Name
        var comments: [SyncOracle.Message] = []
    }

    private(set) var threads: [MessageID: Thread] = [:]

    mutating func add(_ comment: Message, on post: MessageID, in channel: SyncOracle.Name) {
        guard let sender = comment.sender else { return }
        let message = SyncOracle.Message(id: comment.id, sender: sender, text: "\(comment.text)")
        // For a retry, the server answers with the first result.
        if threads[post]?.comments.contains(where: { $0.id == message.id }) == true { return }
        threads[post, default: Thread(channel: channel)].comments.append(message)
    }

    mutating func change(
        on post: MessageID,
        where isMeant: (SyncOracle.Message) -> Bool,
        _ change: (inout SyncOracle.Message) -> Void
    ) {
        for index in threads[post]?.comments.indices ?? 0..<0 {
            if let comment = threads[post]?.comments[index], isMeant(comment) {
                change(&threads[post]!.comments[index])
            }
        }
    }

    mutating func forget(_ user: UserID) {
        for post in threads.keys {
            change(on: post, where: { $0.sender == user }, { $0.isRemoved = true })
        }
    }
}

/// Steps that write or change comments. The sequence mixes them with all other steps. Comments
/// change nothing for the readers of the channel.
extension SyncSequence {
    /// Returns a step that writes or changes a comment; nil if no channel has a post.
    func comment(_ index: Int) -> Step? {
        let user = clients[index].user
        let channels = oracle.chats(of: user).filter { $0.isChannel }
        guard let channel = random.any(of: channels),
            let post = random.any(of: channel.visible(to: user).filter { !$0.isEvent })
        else { return nil }
        let place = (chat: channel.name.wireID(for: user), post: post.id)
        let own = comments.threads[post.id]?.comments ?? []
        if !channel.options.contains("COMMENTS"), random.chance(80) { return open(channel) }
        switch random.below(10) {
        case ..<4: return write(index, on: place, in: channel.name)
        case ..<5:
            guard let target = random.any(of: own) else { return nil }
            let text = "comment edited \(random.below(100))"
            let request = MsgEditRequest(
                chatID: place.chat,
                messageID: target.id,
                text: Text(text),
                postID: place.post
            )
            return call(.msgEdit(request), clients[index].requester()) { _ in
                self.comments.change(on: place.post, where: { $0.id == target.id }) {
                    $0.text = text
                }
            }
        case ..<6:
            guard let target = random.any(of: own) else { return nil }
            let isForMe = random.chance(30)
            let request = MsgDeleteRequest(
                chatID: place.chat,
                messageIDs: [target.id],
                forMe: isForMe,
                postID: place.post
            )
            return call(.msgDelete(request), clients[index].requester()) { answer in
                let reply: MsgDeleteReply = try self.machine.reply(answer)
                self.comments.change(
                    on: place.post,
                    where: { reply.messageIDs.contains($0.id) },
                    {
                        if isForMe { $0.hiddenFor.insert(user) } else { $0.isRemoved = true }
                    }
                )
            }
        case ..<7:
            guard let target = random.any(of: own) else { return nil }
            let request = MsgReactionRequest(
                chatID: place.chat,
                messageID: target.id,
                reaction: NewReaction(id: "🔥"),
                postID: place.post
            )
            return call(.msgReaction(request), clients[index].requester()) { _ in
                self.comments.change(on: place.post, where: { $0.id == target.id }) {
                    $0.reactions[user] = "🔥"
                }
            }
        default:
            let author = random.chance(70) ? user : random.any(of: own)?.sender ?? user
            let request = MsgDeleteUserCommentsRequest(
                chatID: place.chat,
                postID: place.post,
                userID: author
            )
            return call(.msgDeleteUserComments(request), clients[index].requester()) { _ in
                self.comments.change(on: place.post, where: { $0.sender == author }) {
                    $0.isRemoved = true
                }
            }
        }
    }

    private func write(
        _ index: Int,
        on place: (chat: ChatID, post: MessageID),
        in channel: SyncOracle.Name
    ) -> Step {
        let request = MsgSendRequest(
            chatID: place.chat,
            postID: place.post,
            message: message(Text("comment \(random.below(1_000))"))
        )
        return call(.msgSend(request), clients[index].requester()) { answer in
            let reply: MsgSendReply = try self.machine.reply(answer)
            self.comments.add(reply.message, on: place.post, in: channel)
        }
    }

    /// Returns a step in which the owner of a channel enables comments.
    private func open(_ channel: SyncOracle.Chat) -> Step? {
        guard
            let owner = clients.firstIndex(where: {
                $0.user == channel.owner && $0.session != nil
            })
        else { return nil }
        let request = ChatUpdateRequest(
            chatID: channel.name.wireID(for: clients[owner].user),
            options: NameMap([("COMMENTS", true)])
        )
        return call(.chatUpdate(request), clients[owner].requester()) { _ in
            self.oracle.change(channel.name) { _ = $0.options.insert("COMMENTS") }
        }
    }

    /// - Throws: `Divergence` if a member does not see the expected comments on a visible post.
    func checkComments(for client: SyncClient) throws {
        for (post, thread) in comments.threads.sorted(by: { $0.key < $1.key }) {
            guard
                let channel = oracle.chats(of: client.user).first(where: {
                    $0.name == thread.channel
                }),
                channel.visible(to: client.user).contains(where: { $0.id == post })
            else { continue }
            let chat = channel.name.wireID(for: client.user)
            let page: ChatHistoryReply = try machine.ask(
                .chatHistory(
                    ChatHistoryRequest(chatID: chat, from: -1, backward: 200, postID: post)
                ),
                from: client.requester()
            )
            let expected = thread.comments.filter { $0.isVisible(to: client.user) }
            let seen = page.messages ?? []
            // With a small reply limit, the oldest messages may be missing on a page.
            guard seen.map(\.id) == expected.suffix(seen.count).map(\.id),
                seen.map({ "\($0.text)" }) == expected.suffix(seen.count).map(\.text),
                seen.allSatisfy({ $0.postID == post }),
                seen.count == expected.count
                    || machine.limits.maxReplyBytes < Limits.standard.maxReplyBytes
            else {
                throw Divergence(
                    "post \(post): \(client.user) sees the comments \(seen.map(\.text)), not "
                        + "\(expected.map(\.text))"
                )
            }
            for (message, known) in zip(seen, expected.suffix(seen.count)) {
                let count = message.reactionInfo?.stored?.totalCount ?? 0
                guard count == known.reactions.count else {
                    throw Divergence("comment \(message.id): \(count) reactions")
                }
            }
            let info: MsgGetCommentsInfoReply = try machine.ask(
                .msgGetCommentsInfo(MsgGetCommentsInfoRequest(chatID: chat, postIDs: [post])),
                from: client.requester()
            )
            let count = info.commentsInfoUpdates.first?.commentsInfo.totalCount
            guard count == Int64(thread.comments.count { !$0.isRemoved }) else {
                throw Divergence("post \(post): \(count ?? -1) comments are counted")
            }
        }
    }
}
