package import TambourProtocol
import TambourSQL

/// A part of a user's objects, in order.
package struct ObjectPage {
    package fileprivate(set) var objects: [(object: StoredObject, place: ObjectPlace)] = []
    /// Whether more objects follow.
    package fileprivate(set) var isMore = false
}

extension ReadTransaction {
    /// Returns at least one object if there is any; objects that do not fit are not decoded.
    func page(
        _ query: SQLQuery<ObjectColumn>,
        limit: Int,
        room: Int,
        bind: (any SQLStatement) -> Void
    ) throws -> ObjectPage {
        var (page, room) = (ObjectPage(), room)
        try query.each(
            bind,
            while: { row in
                room -= Entity.wireSizeEstimate(
                    ofType: row.borrowedBytes(.type).count,
                    content: row.borrowedBytes(.content).count
                )
                guard page.objects.count < limit, room >= 0 || page.objects.isEmpty else {
                    page.isMore = true
                    return false
                }
                page.objects.append(try StoredObject.from(row))
                return true
            }
        )
        return page
    }
}

extension Entity {
    /// An upper estimate of the bytes it takes on the wire.
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
