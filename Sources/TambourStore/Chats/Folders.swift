package import TambourProtocol
import TambourSQL

enum FolderColumn: Int, SQLColumn {
    case body
}

enum FolderOrderColumn: Int, SQLColumn {
    case ids, sync
}

/// The statements for folders. One table has a row for each folder, with the encoded content of the
/// folder. Another table has a row for each user, with the order of the user's folders and the
/// cursor of the last change.
struct FolderStatements {
    let changed: SQLQuery<FolderColumn>
    let byID: SQLQuery<FolderColumn>
    let order: SQLQuery<FolderOrderColumn>
    let put: any SQLStatement
    let drop: any SQLStatement
    let setOrder: any SQLStatement

    init(_ sql: any SQLConnection) throws {
        let ofUser = "SELECT \(FolderColumn.list) FROM folder WHERE user_id = $1"
        changed = try sql.query("\(ofUser) AND updated > $2")
        byID = try sql.query("\(ofUser) AND id = $2")
        order = try sql.query(
            "SELECT \(FolderOrderColumn.list) FROM folder_order WHERE user_id = $1"
        )
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
    /// The cursor of the last change. Each change increases it. It stays close to the commit clock.
    /// 0 before the first change.
    package var sync: Int64

    package init(ids: [Text], sync: Int64) {
        self.ids = ids
        self.sync = sync
    }
}

extension ReadTransaction {
    /// Returns the order of a user's folders; nil if the user has never changed the folders.
    package func folderOrder(of user: UserID) throws -> FolderOrder? {
        try store.folders.order.one {
            $0.bind(1, user.rawValue)
        } read: { row in
            let ids = Packed<[Text]>(unchecked: Bytes(row.bytes(.ids)))
            return FolderOrder(ids: try ids.value(limits: limits), sync: row.int(.sync))
        }
    }

    /// Returns the folders that changed after the cursor `since`, in no particular order.
    package func folders(of user: UserID, since: Int64) throws -> [Folder] {
        try store.folders.changed.all {
            $0.bind(1, user.rawValue)
            $0.bind(2, since)
        } read: {
            try folder($0)
        }
    }

    package func folder(_ id: Text, of user: UserID) throws -> Folder? {
        try store.folders.byID.one {
            $0.bind(1, user.rawValue)
            $0.bindWords(2, id)
        } read: {
            try folder($0)
        }
    }

    private func folder(_ row: SQLRow<FolderColumn>) throws -> Folder {
        try Packed<Folder>(unchecked: Bytes(row.bytes(.body))).value(limits: limits)
    }
}

extension WriteTransaction {
    /// Stores the result of one change of a user's folders.
    ///
    /// - Parameters:
    ///   - order: the order of all folders after the change, with the new cursor.
    ///   - changed: the new or changed folder.
    ///   - deleted: the ids of deleted folders.
    package func setFolders(
        of user: UserID,
        order: FolderOrder,
        changed: Folder? = nil,
        deleted: [Text] = []
    ) throws {
        writes += 1
        if let changed {
            try store.folders.put.run {
                $0.bind(1, user.rawValue)
                $0.bindWords(2, changed.id)
                $0.bind(3, order.sync)
                $0.bindBlob(4, Packed(changed).bytes)
            }
        }
        for id in deleted {
            try store.folders.drop.run {
                $0.bind(1, user.rawValue)
                $0.bindWords(2, id)
            }
        }
        try store.folders.setOrder.run {
            $0.bind(1, user.rawValue)
            $0.bindBlob(2, Packed(order.ids).bytes)
            $0.bind(3, order.sync)
        }
    }
}
