import TambourProtocol
import TambourServer
import TambourStore

/// A user's own data on a client: drafts and folders. The client merges them from logins and
/// FOLDERS_GET.
struct SyncOwn: Equatable {
    private(set) var drafts: [ChatID: Draft] = [:]
    private(set) var draftsOfUsers: [UserID: Draft] = [:]
    private(set) var folders: [Text: Folder] = [:]
    private(set) var foldersOrder: [Text] = []
    private var folderSync: Int64 = 0

    mutating func merge(_ changed: Drafts?) {
        for (id, _) in changed?.chats?.discarded.pairs ?? [] { drafts[id] = nil }
        for (id, draft) in changed?.chats?.saved.pairs ?? [] { drafts[id] = draft }
        for (id, _) in changed?.users?.discarded.pairs ?? [] { draftsOfUsers[id] = nil }
        for (id, draft) in changed?.users?.saved.pairs ?? [] { draftsOfUsers[id] = draft }
    }

    /// Requests the folders that have changed since the version that the client holds.
    mutating func mergeFolders(of client: SyncClient, _ machine: SyncMachine) throws {
        let reply = try machine.ask(
            .foldersGet(FoldersGetRequest(folderSync: folderSync)),
            from: client.requester(),
            as: FoldersGetReply.self
        )
        for folder in reply.folders { folders[folder.id] = folder }
        folders = folders.filter { reply.foldersOrder.contains($0.key) }
        foldersOrder = reply.foldersOrder
        folderSync = reply.folderSync
        guard Set(foldersOrder) == Set(folders.keys) else {
            throw Divergence("a folder is named and was never sent")
        }
    }
}

extension SyncOracle {
    struct Draft: Equatable {
        var text: String
        var replyTo: MessageID?
    }

    struct Folder: Equatable {
        let id: String
        var title: String
        var include: [ChatID]

        static let all = Folder(id: "all.chat.folder", title: "All", include: [])
    }

    /// The reactions to a message as one user sees them.
    struct Reactions: Equatable {
        var total: Int64 = 0
        var counts: [String: Int64] = [:]
        var own: String?

        init(_ info: Packed<ReactionInfo>?) throws {
            guard let info = try info?.value(limits: .standard) else { return }
            total = info.totalCount
            counts = Dictionary(
                info.counters.map { ("\($0.reaction)", $0.count) },
                uniquingKeysWith: +
            )
            own = info.yourReaction.map { "\($0)" }
        }

        init(_ reactions: [UserID: String], for viewer: UserID) {
            total = Int64(reactions.count)
            for reaction in reactions.values { counts[reaction, default: 0] += 1 }
            own = reactions[viewer]
        }
    }

    /// Compares drafts and folders with the drafts and folders that `user` should have.
    func check(_ own: SyncOwn, of user: UserID) throws {
        var expected: [ChatID: Draft] = [:]
        var expectedOfUsers: [UserID: Draft] = [:]
        for (name, draft) in drafts[user] ?? [:] {
            let id = name.wireID(for: user)
            if case .pair(let low, let high) = name, low != high, chats[name] == nil {
                expectedOfUsers[user == low ? high : low] = draft
            } else {
                expected[id] = draft
            }
        }
        func seen(_ draft: TambourProtocol.Draft) -> Draft {
            Draft(text: "\(draft.text)", replyTo: draft.replyTo)
        }
        guard own.drafts.mapValues(seen) == expected,
            own.draftsOfUsers.mapValues(seen) == expectedOfUsers
        else {
            throw Divergence(
                "the drafts of \(user.rawValue) are \(own.drafts), \(own.draftsOfUsers), "
                    + "not \(expected), \(expectedOfUsers)"
            )
        }
        let list = own.foldersOrder.compactMap { own.folders[$0] }.map {
            Folder(id: "\($0.id)", title: "\($0.title)", include: $0.include)
        }
        guard list == folders[user] ?? [.all] else {
            throw Divergence("the folders of \(user.rawValue) are \(list)")
        }
    }
}
