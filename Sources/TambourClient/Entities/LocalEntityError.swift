package import TambourProtocol

/// Why a call on `LocalEntities` did nothing.
package enum LocalEntityError: Error, Hashable, Sendable {
    /// The entity is deleted, below something deleted, or unknown.
    case notFound
    /// The entity to restore is not deleted, or not by this device.
    case notDeleted
    /// The server would refuse it too.
    case refused(EntityRefusal)
    case noConflict
    /// `Conflict.choices` does not have it.
    case choiceNotOffered
    /// The choice creates the entity below another parent, and none that fits was named.
    case parentNeeded
    /// No batch waits for a reply, or one with another number of operations.
    case unexpectedReply

    static func refused(_ error: ObjectError, at path: String) -> Self {
        .refused(EntityRefusal(error, at: path))
    }
}
