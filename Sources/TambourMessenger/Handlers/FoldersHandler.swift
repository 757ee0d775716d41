import TambourEvents
import TambourProtocol
import TambourStore

/// Family `folders`: a user's own groups of chats. Wire: protocol-spec/opcodes/folders.yaml
struct FoldersHandler: Sendable {
    let limits: Limits
    let environment: Environment

    /// The folder of all chats. Every user has this folder. It is not stored.
    private static let allChats = Folder(id: "all.chat.folder", title: "All", updateTime: 0)

    /// Answers `FOLDERS_GET` (272): returns the folders that changed after `folderSync`, and the
    /// folder of all chats.
    ///
    /// - Note: A query.
    func foldersGet(
        _ request: FoldersGetRequest,
        from caller: Caller,
        in snapshot: ReadTransaction
    ) throws -> FoldersGetReply {
        let order = try order(of: caller, in: snapshot)
        var since = max(0, request.folderSync ?? 0)
        // The server never sends a cursor beyond the last change. If a client sends one, the reply
        // contains all folders.
        if since > order.sync { since = 0 }
        let changed = try snapshot.folders(of: caller.userID, since: since) + [Self.allChats]
        return FoldersGetReply(
            folders: order.ids.compactMap { id in changed.first { $0.id == id } },
            foldersOrder: order.ids,
            folderSync: order.sync
        )
    }

    /// Answers `FOLDERS_GET_BY_ID` (273): returns the requested folders. Omits unknown folders.
    ///
    /// - Note: A query.
    func foldersGetById(
        _ request: FoldersGetByIdRequest,
        from caller: Caller,
        in snapshot: ReadTransaction
    ) throws -> FoldersGetByIdReply {
        var seen: Set<Text> = []
        var folders: [Folder] = []
        for id in request.folderIDs where seen.insert(id).inserted {
            let folder =
                id == Self.allChats.id
                ? Self.allChats : try snapshot.folder(id, of: caller.userID)
            if let folder { folders.append(folder) }
        }
        return FoldersGetByIdReply(folders: folders)
    }

    /// Answers `FOLDERS_UPDATE` (274): creates or replaces a folder.
    ///
    /// - Throws: `not.allowed` for the folder of all chats, `proto.payload` for too many folders or
    ///   a folder that is too large.
    /// - Note: A command.
    func foldersUpdate(
        _ request: FoldersUpdateRequest,
        from caller: Caller,
        in tx: WriteTransaction
    ) throws -> FoldersUpdateReply {
        let id = request.id ?? Text(Tokens.make(environment))
        guard id != Self.allChats.id else { throw RequestError.notAllowed }
        guard !id.isEmpty else { throw RequestError.protoPayload("/id: empty") }
        var order = try order(of: caller, in: tx.reader)
        let before = try tx.reader.folder(id, of: caller.userID)
        var folder = Folder(
            id: id,
            title: request.title,
            include: request.include,
            filters: request.filters,
            options: request.options,
            favorites: request.favorites,
            updateTime: before?.updateTime ?? 0
        )
        if let before, before == folder {
            return FoldersUpdateReply(
                folder: before,
                foldersOrder: order.ids,
                folderSync: order.sync
            )
        }
        if before == nil {
            // The limit does not count the folder of all chats.
            guard order.ids.count - 1 < limits.maxFolders else {
                throw RequestError.protoPayload("/id: limit \(limits.maxFolders) folders")
            }
            order.ids.append(id)
        }
        order.sync = order.next(at: tx.ct)
        folder.updateTime = order.sync
        let bytes = Packed(folder).bytes.count
        guard bytes <= limits.maxFolderBytes else {
            throw RequestError.protoPayload("/: \(bytes) bytes, limit \(limits.maxFolderBytes)")
        }
        try tx.setFolders(of: caller.userID, order: order, changed: folder)
        tell(order, changed: folder, caller, tx)
        return FoldersUpdateReply(folder: folder, foldersOrder: order.ids, folderSync: order.sync)
    }

    /// Answers `FOLDERS_REORDER` (275): puts the named folders first. The other folders keep their
    /// order.
    ///
    /// - Throws: `not.found` for an unknown folder.
    /// - Note: A command.
    func foldersReorder(
        _ request: FoldersReorderRequest,
        from caller: Caller,
        in tx: WriteTransaction
    ) throws -> FoldersReorderReply {
        var order = try order(of: caller, in: tx.reader)
        var seen: Set<Text> = []
        var ids: [Text] = []
        for id in request.foldersOrder where seen.insert(id).inserted {
            guard order.ids.contains(id) else { throw RequestError.notFound }
            ids.append(id)
        }
        ids += order.ids.filter { !seen.contains($0) }
        if ids != order.ids {
            order = FolderOrder(ids: ids, sync: order.next(at: tx.ct))
            try tx.setFolders(of: caller.userID, order: order)
            tell(order, changed: nil, caller, tx)
        }
        return FoldersReorderReply(foldersOrder: order.ids, folderSync: order.sync)
    }

    /// Answers `FOLDERS_DELETE` (276): deletes folders. Skips unknown folders.
    ///
    /// - Throws: `not.allowed` for the folder of all chats.
    /// - Note: A command.
    func foldersDelete(
        _ request: FoldersDeleteRequest,
        from caller: Caller,
        in tx: WriteTransaction
    ) throws -> FoldersDeleteReply {
        let asked = Set(request.folderIDs)
        guard !asked.contains(Self.allChats.id) else { throw RequestError.notAllowed }
        var order = try order(of: caller, in: tx.reader)
        let deleted = order.ids.filter { asked.contains($0) }
        if !deleted.isEmpty {
            order = FolderOrder(
                ids: order.ids.filter { !asked.contains($0) },
                sync: order.next(at: tx.ct)
            )
            try tx.setFolders(of: caller.userID, order: order, deleted: deleted)
            tell(order, changed: nil, caller, tx)
        }
        return FoldersDeleteReply(foldersOrder: order.ids, folderSync: order.sync)
    }

    private func order(of caller: Caller, in snapshot: ReadTransaction) throws -> FolderOrder {
        try snapshot.folderOrder(of: caller.userID)
            ?? FolderOrder(ids: [Self.allChats.id], sync: 0)
    }

    private func tell(
        _ order: FolderOrder,
        changed: Folder?,
        _ caller: Caller,
        _ tx: WriteTransaction
    ) {
        let push = NotifFolders(folder: changed, foldersOrder: order.ids, folderSync: order.sync)
        tx.emit(.push(.notifFolders(push), to: [caller.userID], except: caller.connectionID))
    }
}

extension FolderOrder {
    /// Returns the cursor of a change at the commit time `ct`. Each change gets a larger cursor,
    /// even within one commit.
    fileprivate func next(at ct: Int64) -> Int64 { max(ct, sync + 1) }
}
