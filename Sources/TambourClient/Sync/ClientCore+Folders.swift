import TambourProtocol

/// What is known about the account's folders on the current connection.
struct FolderLink {
    /// Whether the stored folders include all changes up to the last push.
    var isCurrent = false
    /// Whether the server refused the request for folders. In that case, this connection makes no
    /// further attempts.
    var isRefused = false
}

/// The account's folders. Once an app uses folders, they are fetched after each login.
extension ClientCore {
    /// Keeps the folders up to date from now on.
    func useFolders(_ tx: StoreTransaction) throws {
        if try tx.value(of: .foldersMark) as Int64? == nil { try tx.set(.foldersMark, 0) }
        try readFolders(tx)
    }

    /// Requests the changes since the stored mark, unless this connection has them.
    func readFolders(_ tx: StoreTransaction) throws {
        guard isLive, !folders.isCurrent, !folders.isRefused, !wire.requests.isOpen(.folders),
            let mark: Int64 = try tx.value(of: .foldersMark)
        else { return }
        let asked = subjects.transactions
        call(FoldersGetRequest(folderSync: mark), as: .folders) { [self] answer, tx in
            switch answer {
            case .success(let reply):
                // If a push arrived before the reply, the reply may be older than the push.
                guard isCurrent(.folders, since: asked, tx) else { return try readFolders(tx) }
                folders.isCurrent = true
                try tx.put(folders: reply.folders, order: reply.foldersOrder)
                try tx.set(.foldersMark, reply.folderSync)
            case .failure(.refused(_, _, nil)): folders.isRefused = true
            case .failure(let error): try syncFailed(error, tx)
            }
        }
    }

    /// Applies a push about changes by another device.
    func folders(_ push: NotifFolders, _ tx: StoreTransaction) throws {
        guard try tx.value(of: .foldersMark) as Int64? != nil else { return }
        try tx.put(folders: push.folder.map { [$0] } ?? [], order: push.foldersOrder)
        // While the folders are not current, earlier changes are missing, so the mark stays.
        if folders.isCurrent { try tx.set(.foldersMark, push.folderSync) }
        tx.learned.insert(.folders)
    }

    /// Stores the reply to the task that changed folders and has just ended.
    func learn(
        _ changed: [Folder],
        _ order: [Text],
        upTo mark: Int64,
        _ tx: StoreTransaction
    ) throws {
        try learn(.folders, tx) {
            try tx.put(folders: changed, order: order)
            if folders.isCurrent { try tx.set(.foldersMark, mark) }
        }
    }

    /// Requests the folders again, after a login or because the last reply lacks some pushed
    /// changes.
    func askFolders(_ tx: StoreTransaction) throws {
        folders.isCurrent = false
        try readFolders(tx)
    }
}
