public import TambourProtocol

/// A folder of chats that the account has created. All devices of the account share it.
public struct ChatFolder: Hashable, Sendable, Identifiable {
    public let id: String
    public let title: String
    /// The chats that were put into the folder.
    public let chats: Set<ChatID>
    /// Whether the folder also contains all chats with unread messages.
    public let hasUnread: Bool
    /// Whether the folder also contains all channels.
    public let hasChannels: Bool
    /// Whether the folder also contains all dialogs with contacts.
    public let hasContacts: Bool

    /// The maximum number of folders.
    public static let most = Limits.standard.maxFolders
    /// The maximum length of a title in UTF-16 units.
    public static let maxTitleUnits = Limits.standard.maxTitleUnits

    /// The numbers in the protocol's field `filters`. Unknown filters are ignored here.
    private enum Filter {
        static let unread: Int64 = 0
        static let channels: Int64 = 2
        static let contacts: Int64 = 9
    }

    init(_ folder: Folder) {
        id = "\(folder.id)"
        title = "\(folder.title)"
        chats = Set(folder.include + folder.favorites)
        let filters = folder.filters.compactMap(\.int)
        hasUnread = filters.contains(Filter.unread)
        hasChannels = filters.contains(Filter.channels)
        hasContacts = filters.contains(Filter.contacts)
    }

    /// Returns whether a chat is in the folder.
    ///
    /// - Parameter isContact: returns whether a person is a contact; called only for folders that
    ///   contain all dialogs with contacts.
    public func contains(_ chat: ChatSummary, isContact: (UserID) -> Bool) -> Bool {
        if chats.contains(chat.id) || hasUnread && chat.unread > 0 { return true }
        switch chat.kind {
        case .channel: return hasChannels
        case .dialog(let partner): return hasContacts && isContact(partner)
        case .group, .savedMessages: return false
        }
    }
}

/// Folders of chats.
///
/// The first call of `syncFolders`, or the first change, starts the synchronisation of folders.
/// Until then, the client requests no folders. Changes are stored, shown at once, and sent when the
/// server can be reached.
extension Client {
    /// Keeps the folders up to date from now on, also after a restart.
    public func syncFolders() async throws(ClientError) {
        try await wish { core, tx in try core.useFolders(tx) }
    }

    /// Returns the folders from local storage, in the order that the user chose. Omits the folder
    /// that contains all chats. `ChangeSet.folders` announces changes.
    public func folders() throws(ClientError) -> [ChatFolder] {
        try store.read { try $0.shownFolders().map(ChatFolder.init) }
    }

    /// Creates a folder at the end of the list.
    ///
    /// - Returns: the id of the folder.
    /// - Throws: `ClientError.invalid` for an empty or too long title, for the title of another
    ///   folder, and when there are already `ChatFolder.most` folders.
    @discardableResult
    public func createFolder(
        _ title: String,
        chats: [ChatID] = []
    ) async throws(ClientError) -> String {
        try await change { core, folders, tx in
            try Self.check(title, of: nil, among: folders)
            guard folders.count < ChatFolder.most else {
                throw ClientError.invalid(
                    reason: "an account has at most \(ChatFolder.most) folders; delete one first"
                )
            }
            let id = Self.folderID(core.environment.random)
            let task = ChangeFolderTask(
                folder: id,
                isNew: true,
                title: title,
                added: chats.map(\.rawValue)
            )
            try core.queue(task, tx)
            return id
        }
    }

    /// Renames a folder.
    ///
    /// - Throws: `ClientError.invalid` for a title that `createFolder` refuses, and for a folder
    ///   that no longer exists.
    public func renameFolder(_ id: ChatFolder.ID, to title: String) async throws(ClientError) {
        try await change { core, folders, tx in
            try Self.require(id, among: folders)
            try Self.check(title, of: id, among: folders)
            try core.queue(ChangeFolderTask(folder: id, title: title), tx)
        }
    }

    /// Deletes a folder. Its chats stay.
    public func deleteFolder(_ id: ChatFolder.ID) async throws(ClientError) {
        try await change { core, folders, tx in
            guard folders.contains(where: { $0.id == id }) else { return }
            try core.queue(DeleteFolderTask(folder: id), tx)
        }
    }

    /// Changes the order of the folders. Folders that `ids` omits follow in their old order.
    public func orderFolders(_ ids: [ChatFolder.ID]) async throws(ClientError) {
        try await change { core, folders, tx in
            // The new order replaces a queued order, so the new order must contain all folders.
            let rest = folders.map(\.id).filter { !ids.contains($0) }
            try core.queue(OrderFoldersTask(order: ids + rest), tx)
        }
    }

    /// Puts a chat into a folder, or takes it out.
    ///
    /// - Throws: `ClientError.invalid` for a folder that no longer exists or is full.
    public func put(
        _ chat: ChatID,
        in id: ChatFolder.ID,
        _ isIn: Bool = true
    ) async throws(ClientError) {
        let most = Limits.standard.maxIDsPerRequest
        try await change { core, folders, tx in
            let folder = try Self.require(id, among: folders)
            guard folder.chats.contains(chat) != isIn else { return }
            guard !isIn || folder.chats.count < most else {
                throw ClientError.invalid(reason: "a folder has at most \(most) chats")
            }
            var task = ChangeFolderTask(folder: id)
            if isIn { task.added = [chat.rawValue] } else { task.removed = [chat.rawValue] }
            try core.queue(task, tx)
        }
    }

    // MARK: - Internals

    private func change<Value: Sendable>(
        _ body: @escaping @Sendable (ClientCore, [ChatFolder], StoreTransaction) throws -> Value
    ) async throws(ClientError) -> Value {
        try await wish { core, tx in
            try core.useFolders(tx)
            return try body(core, tx.shownFolders().map(ChatFolder.init), tx)
        }
    }

    @discardableResult
    private static func require(_ id: String, among folders: [ChatFolder]) throws -> ChatFolder {
        guard let folder = folders.first(where: { $0.id == id }) else {
            throw ClientError.invalid(reason: "this folder no longer exists")
        }
        return folder
    }

    private static func check(
        _ title: String,
        of id: String?,
        among folders: [ChatFolder]
    ) throws {
        guard !title.allSatisfy(\.isWhitespace), title.utf16.count <= ChatFolder.maxTitleUnits
        else {
            throw ClientError.invalid(
                reason: "the name of a folder has 1 to \(ChatFolder.maxTitleUnits) characters"
            )
        }
        guard !folders.contains(where: { $0.id != id && $0.title == title }) else {
            throw ClientError.invalid(reason: "there is a folder “\(title)” already")
        }
    }

    /// Returns a random UUID.
    private static func folderID(_ random: () -> UInt64) -> String {
        let words = [random(), random()].map { word in
            let digits = String(word, radix: 16)
            return String(repeating: "0", count: 16 - digits.count) + digits
        }
        var id = words.joined()
        for place in [20, 16, 12, 8] {
            id.insert("-", at: id.index(id.startIndex, offsetBy: place))
        }
        return id
    }
}
