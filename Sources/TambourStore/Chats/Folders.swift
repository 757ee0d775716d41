package import TambourProtocol
import TambourSQL

/// The statements for folders: one encoded row per folder, and one row with the order of all and
/// the mark of the last change.
struct FolderStatements {
    let changed: any SQLStatement
    let byID: any SQLStatement
    let order: any SQLStatement
    let put: any SQLStatement
    let drop: any SQLStatement
    let setOrder: any SQLStatement

    init(_ sql: any SQLConnection) throws {
        changed = try sql.prepare("SELECT body FROM folder WHERE user_id = $1 AND updated > $2")
        byID = try sql.prepare("SELECT body FROM folder WHERE user_id = $1 AND id = $2")
        order = try sql.prepare("SELECT ids, sync FROM folder_order WHERE user_id = $1")
        put = try sql.prepare(
            """
            INSERT INTO folder (user_id, id, updated, body) VALUES ($1, $2, $3, $4)
            ON CONFLICT (user_id, id) DO UPDATE SET
              updated = excluded.updated, body = excluded.body
            """
        )
        drop = try sql.prepare("DELETE FROM folder WHERE user_id = $1 AND id = $2")
        setOrder = try sql.prepare(
            """
            INSERT INTO folder_order (user_id, ids, sync) VALUES ($1, $2, $3)
            ON CONFLICT (user_id) DO UPDATE SET ids = excluded.ids, sync = excluded.sync
            """
        )
    }
}

/// The order of one user's folders.
package struct FolderOrder: Equatable, Sendable {
    /// The ids of all folders, including the folder of all chats.
    package var ids: [Text]
    /// The mark of the last change: increases with each, close to the commit clock; 0 before the
    /// first.
    package var sync: Int64

    package init(ids: [Text], sync: Int64) {
        self.ids = ids
        self.sync = sync
    }
}

extension ReadTransaction {
    /// Returns the order of a user's folders; nil when the user has never changed a folder.
    package func folderOrder(of user: UserID) throws -> FolderOrder? {
        let statement = store.folders.order
        defer { statement.reset() }
        statement.bind(1, user.rawValue)
        guard try statement.step() else { return nil }
        let ids = Packed<[Text]>(unchecked: Bytes(statement.bytes(0)))
        return FolderOrder(ids: try ids.value(limits: limits), sync: statement.int(1))
    }

    /// Returns the folders that changed after a mark, in no particular order.
    package func folders(of user: UserID, since: Int64) throws -> [Folder] {
        let statement = store.folders.changed
        defer { statement.reset() }
        statement.bind(1, user.rawValue)
        statement.bind(2, since)
        var folders: [Folder] = []
        while try statement.step() { folders.append(try folder(statement)) }
        return folders
    }

    package func folder(_ id: Text, of user: UserID) throws -> Folder? {
        let statement = store.folders.byID
        defer { statement.reset() }
        statement.bind(1, user.rawValue)
        statement.bindWords(2, id)
        return try statement.step() ? try folder(statement) : nil
    }

    private func folder(_ row: any SQLStatement) throws -> Folder {
        try Packed<Folder>(unchecked: Bytes(row.bytes(0))).value(limits: limits)
    }
}

extension WriteTransaction {
    /// Stores the result of one change of a user's folders.
    ///
    /// - Parameters:
    ///   - order: all folders after the change, with its mark.
    ///   - changed: a folder that is new or changed.
    ///   - deleted: the ids of deleted folders.
    package func setFolders(
        of user: UserID,
        order: FolderOrder,
        changed: Folder? = nil,
        deleted: [Text] = []
    ) throws {
        writes += 1
        if let changed {
            let put = store.folders.put
            put.bind(1, user.rawValue)
            put.bindWords(2, changed.id)
            put.bind(3, order.sync)
            put.bindBlob(4, Packed(changed).bytes)
            try put.run()
        }
        for id in deleted {
            let drop = store.folders.drop
            drop.bind(1, user.rawValue)
            drop.bindWords(2, id)
            try drop.run()
        }
        let setOrder = store.folders.setOrder
        setOrder.bind(1, user.rawValue)
        setOrder.bindBlob(2, Packed(order.ids).bytes)
        setOrder.bind(3, order.sync)
        try setOrder.run()
    }
}
