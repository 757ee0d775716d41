import Foundation
import GRDB
import TambourProtocol

/// The account's folders as the server last sent them. One of them contains all chats.
extension StoreTransaction {
    /// Stores folders and the order of all folders. Deletes the folders that the order lacks.
    func put(folders: [Folder], order: [Text]) throws {
        changes.folders = true
        for folder in folders {
            try execute(
                """
                INSERT INTO folder VALUES (?, 0, ?)
                ON CONFLICT (id) DO UPDATE SET data = excluded.data
                """,
                [folder.id.description, folder.storedBytes]
            )
        }
        // An order from the server always contains the folder of all chats. An empty order means
        // that the server sent none.
        guard !order.isEmpty else { return }
        try execute("UPDATE folder SET place = -1")
        for (place, id) in order.enumerated() {
            try execute("UPDATE folder SET place = ? WHERE id = ?", [place, id.description])
        }
        try execute("DELETE FROM folder WHERE place < 0")
    }
}

extension StoreReading {
    /// Returns the folders in the order of the account.
    func folders() throws -> [Folder] {
        try rows("SELECT data FROM folder ORDER BY place")
            .compactMap { Folder(stored: $0["data"]) }
    }

    /// Returns a folder; nil if no folder has this id.
    func folder(_ id: String) throws -> Folder? {
        try row("SELECT data FROM folder WHERE id = ?", [id])
            .flatMap { Folder(stored: $0["data"]) }
    }
}
