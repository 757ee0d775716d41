package import TambourProtocol
import TambourSQL

/// A part of a user's entities, in the order of their places.
package struct EntityPage {
    package fileprivate(set) var entities: [(stored: StoredEntity, place: EntityPlace)] = []
    /// Whether more entities follow.
    package fileprivate(set) var isMore = false
}

extension ReadTransaction {
    /// Returns a page of entities. The page contains at least one entity if any entity exists.
    /// Entities that do not fit are not decoded.
    func page(
        _ query: SQLQuery<EntityColumn>,
        limit: Int,
        room: Int,
        bind: (any SQLStatement) -> Void
    ) throws -> EntityPage {
        var (page, room) = (EntityPage(), room)
        try query.each(
            bind,
            while: { row in
                room -= Entity.wireSizeEstimate(
                    ofType: row.borrowedBytes(.type).count,
                    content: row.borrowedBytes(.content).count
                )
                guard page.entities.count < limit, room >= 0 || page.entities.isEmpty else {
                    page.isMore = true
                    return false
                }
                page.entities.append(try StoredEntity.from(row))
                return true
            }
        )
        return page
    }
}

extension Entity {
    /// An upper estimate of the entity's size on the wire, in bytes.
    package var wireSizeEstimate: Int {
        Self.wireSizeEstimate(
            ofType: type.rawValue.utf8.count,
            content: FieldValue.encodedSize(of: fields)
        )
    }

    fileprivate static func wireSizeEstimate(ofType type: Int, content: Int) -> Int {
        140 + type + content
    }
}
