package import TambourProtocol

/// Why a call on `LocalEntities` was rejected.
package enum LocalEntityError: Error, Hashable, Sendable {
    /// The entity is deleted, has a deleted ancestor, or is unknown.
    case notFound
    /// The entity to restore is not deleted, or was not deleted on this device.
    case notDeleted
    /// The server would also refuse the call.
    case refused(EntityRefusal)
    case noConflict
    /// `Conflict.choices` does not contain the choice.
    case choiceNotOffered
    /// The choice creates the entity below another parent, but the caller named no parent.
    case parentNeeded
    /// No batch waits for a reply, or the reply has a different number of results.
    case unexpectedReply

    static func refused(_ error: ObjectError, at path: String) -> Self {
        .refused(EntityRefusal(error, at: path))
    }
}
