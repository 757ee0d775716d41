package import TambourProtocol
import TambourSQL

extension WriteTransaction {
    /// Makes tombstones of the live objects of a type directly below one that is deleted.
    ///
    /// - Parameters:
    ///   - stamp: of the deletion; each object gets the next version of its own.
    ///   - keepsFields: whether a later update may bring them back with their fields.
    /// - Returns: the tombstones as devices are sent them, in the order of their ids.
    package func deleteObjects(
        of type: EntityType,
        below parent: Int64,
        by stamp: StoredObject.Stamp,
        keepsFields: Bool,
        of user: UserID
    ) throws -> [Entity] {
        var tombstones: [Entity] = []
        let step = 500
        while true {
            let next = try deleteObjects(
                of: type,
                below: parent,
                after: tombstones.last?.id.number ?? .min,
                limit: step,
                by: stamp,
                keepsFields: keepsFields,
                of: user
            )
            tombstones += next
            if next.count < step { return tombstones }
        }
    }

    private func deleteObjects(
        of type: EntityType,
        below parent: Int64,
        after id: Int64,
        limit: Int,
        by stamp: StoredObject.Stamp,
        keepsFields: Bool,
        of user: UserID
    ) throws -> [Entity] {
        writes += 1
        let statement = store.objects.deleteChildren
        defer { statement.reset() }
        statement.bind(1, user.rawValue)
        statement.bind(2, parent)
        statement.bindWords(3, type.rawValue)
        statement.bind(4, stamp.modified)
        statement.bind(5, stamp.device)
        statement.bind(6, ct)
        statement.bind(7, keepsFields)
        statement.bindBlob(8, FieldValue.encoded([:]))
        statement.bind(9, id)
        statement.bind(10, limit)
        var tombstones: [Entity] = []
        while try statement.step() {
            tombstones.append(
                Entity(
                    id: .server(statement.int(0)),
                    type: type,
                    parent: .server(parent),
                    version: statement.int(1),
                    modified: statement.int(2),
                    createdBy: statement.optionalInt(3),
                    isDeleted: true,
                    fields: [:]
                )
            )
        }
        // A statement returns what it changed in no order.
        return tombstones.sorted { $0.id < $1.id }
    }

    /// Removes the elements of all series below an object.
    ///
    /// - Returns: how many there were.
    package func deleteElements(below parent: Int64, of user: UserID) throws -> Int {
        writes += 1
        let statement = store.objects.deleteElements
        statement.bind(1, user.rawValue)
        statement.bind(2, parent)
        return try statement.run()
    }
}
