import TambourProtocol
import TambourServer
import TambourStore
import TambourTesting

@testable import TambourClient

/// Other clients comment on channel posts. The simulated devices only read the posts.
extension World {
    func comment(_ move: Move) {
        let device = devices[move.a % devices.count]
        let channels = groups(on: device).filter(\.isChannel)
        guard !channels.isEmpty else { return }
        let channel = channels[move.b % channels.count]
        guard let (owner, _) = owner(of: channel, on: device),
            let row = row(on: device, in: channel, move.c), row.event == nil, let post = row.message
        else { return }
        switch move.kind {
        case .openComments:
            let options = NameMap([("COMMENTS" as Text, move.c % 8 > 0)])
            command(.chatUpdate(ChatUpdateRequest(chatID: channel, options: options)), by: owner)
        case .deleteComments:
            let request = MsgDeleteUserCommentsRequest(
                chatID: channel,
                postID: post,
                userID: device.me
            )
            command(.msgDeleteUserComments(request), by: move.c % 2 == 0 ? owner : device.user)
        default:
            commented.insert(CommentedPost(channel: channel, post: post))
            let cid = Int64(truncatingIfNeeded: loop.random.next() >> 1)
            let message = NewMessage(cid: cid, text: Text("comment \(move.c)"))
            let request = MsgSendRequest(chatID: channel, postID: post, message: message)
            command(.msgSend(request), by: device.user)
            // Simulates a retry after a lost reply.
            if move.c % 4 == 0 { command(.msgSend(request), by: device.user) }
        }
    }

    /// Checks that each reader of a post sees the same comments and that the store is consistent.
    func checkComments(_ store: StoreConnection) throws {
        for line in try StoreCheck.problems(of: store, wall: .max) {
            violated("the store is wrong: \(line)")
        }
        for place in commented.sorted() {
            var seen: Set<[Int64]> = []
            for user in Set(plan.devices.map(\.user)).sorted() {
                guard
                    let comments = try Truth.comments(
                        on: place.post,
                        in: place.channel,
                        of: user,
                        self,
                        store
                    )
                else { continue }
                seen.insert(comments)
            }
            if seen.count > 1 {
                violated("readers of \(place.post) see different comments: \(seen)")
            }
        }
    }
}

/// A post on which a user has commented or has tried to comment.
struct CommentedPost: Hashable, Comparable {
    let channel: ChatID
    let post: MessageID

    static func < (one: Self, other: Self) -> Bool {
        (one.channel.rawValue, one.post) < (other.channel.rawValue, other.post)
    }
}
