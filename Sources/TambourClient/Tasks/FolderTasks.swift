import TambourProtocol

/// A change of the account's folders. All changes of folders share a lane. The client applies each
/// change to the server's folders twice: for display, and when it sends the change.
protocol FolderTask: ClientTask {
    /// Applies the change to the account's folders.
    func apply(to folders: inout [Folder])
}

extension FolderTask {
    var lane: String? { folderLane }
    /// A request replaces a whole folder, so it must be built from the server's current folder.
    var requires: TaskConditions { [.loggedIn, .currentFolders] }

    func prepare(_ task: TaskID, in core: ClientCore, _ tx: StoreTransaction) throws {
        tx.changes.folders = true
    }

    func refused(in core: ClientCore, _ tx: StoreTransaction) throws {
        tx.changes.folders = true
    }
}

/// The lane of changes of folders.
let folderLane = "folders"

/// Creates or renames a folder, or changes the chats in it.
struct ChangeFolderTask: FolderTask {
    static let kind = "folder.change"

    let folder: String
    /// Whether the folder is created if it does not exist.
    var isNew = false
    var title: String?
    var added: [Int64] = []
    var removed: [Int64] = []

    func apply(to folders: inout [Folder]) {
        let id = Text(folder)
        if isNew, !folders.contains(where: { $0.id == id }) {
            folders.append(Folder(id: id, updateTime: 0))
        }
        guard let index = folders.firstIndex(where: { $0.id == id }) else { return }
        if let title { folders[index].title = Text(title) }
        let gone = Set(removed.map(ChatID.init))
        folders[index].include.removeAll { gone.contains($0) }
        folders[index].favorites.removeAll { gone.contains($0) }
        for chat in added.map(ChatID.init) where !folders[index].include.contains(chat) {
            folders[index].include.append(chat)
        }
    }

    func request(_ tx: StoreTransaction) throws -> FoldersUpdateRequest {
        // Other devices may have changed other parts of the folder.
        var folders = try tx.folders()
        apply(to: &folders)
        guard let changed = folders.first(where: { $0.id == Text(folder) }) else {
            throw ClientError.invalid(
                reason: "the folder was deleted on another device, so it is not changed"
            )
        }
        return FoldersUpdateRequest(
            id: changed.id,
            title: changed.title,
            include: changed.include,
            filters: changed.filters,
            options: changed.options,
            favorites: changed.favorites
        )
    }

    func succeeded(_ reply: FoldersUpdateReply, in core: ClientCore, _ tx: StoreTransaction) throws
    {
        try core.learn([reply.folder], reply.foldersOrder, upTo: reply.folderSync, tx)
    }
}

/// Deletes a folder. Its chats stay.
struct DeleteFolderTask: FolderTask {
    static let kind = "folder.delete"

    let folder: String

    func apply(to folders: inout [Folder]) { folders.removeAll { $0.id == Text(folder) } }

    func request(_ tx: StoreTransaction) throws -> FoldersDeleteRequest {
        FoldersDeleteRequest(folderIDs: [Text(folder)])
    }

    func succeeded(_ reply: FoldersDeleteReply, in core: ClientCore, _ tx: StoreTransaction) throws
    {
        try core.learn([], reply.foldersOrder, upTo: reply.folderSync, tx)
    }
}

/// Changes the order of the folders.
struct OrderFoldersTask: FolderTask {
    static let kind = "folder.order"

    let order: [String]

    var coalescingKey: String? { "order" }

    /// Puts the folders into `order`. The folder of all chats keeps its place, and folders that
    /// `order` omits follow.
    func apply(to folders: inout [Folder]) {
        let all = folders.firstIndex { $0.id == Folder.allChats }
        var rest = folders
        var sorted: [Folder] = []
        for id in order where id != "\(Folder.allChats)" {
            guard let index = rest.firstIndex(where: { $0.id == Text(id) }) else { continue }
            sorted.append(rest.remove(at: index))
        }
        let whole = rest.firstIndex { $0.id == Folder.allChats }.map { rest.remove(at: $0) }
        sorted += rest
        if let whole, let all { sorted.insert(whole, at: min(all, sorted.count)) }
        folders = sorted
    }

    func request(_ tx: StoreTransaction) throws -> FoldersReorderRequest {
        var folders = try tx.folders()
        apply(to: &folders)
        return FoldersReorderRequest(foldersOrder: folders.map(\.id))
    }

    func succeeded(_ reply: FoldersReorderReply, in core: ClientCore, _ tx: StoreTransaction) throws
    {
        try core.learn([], reply.foldersOrder, upTo: reply.folderSync, tx)
    }
}

extension Folder {
    /// The id of the folder of all chats, which cannot be changed.
    static let allChats: Text = "all.chat.folder"
}

extension StoreReading {
    /// Returns the folders with this device's queued changes applied. Omits the folder of all
    /// chats.
    func shownFolders() throws -> [Folder] {
        var folders = try folders()
        for record in try openTasks(inLane: folderLane) {
            (TaskKinds.read(record) as? any FolderTask)?.apply(to: &folders)
        }
        return folders.filter { $0.id != Folder.allChats }
    }
}
