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
        _ statement: any SQLStatement,
        limit: Int,
        room: Int
    ) throws -> ObjectPage {
        defer { statement.reset() }
        var (page, room) = (ObjectPage(), room)
        while try statement.step() {
            room -= Entity.wireSizeEstimate(
                ofType: statement.borrowedBytes(1).count,
                content: statement.borrowedBytes(9).count
            )
            guard page.objects.count < limit, room >= 0 || page.objects.isEmpty else {
                page.isMore = true
                break
            }
            page.objects.append(try StoredObject.from(statement))
        }
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
