public import TambourProtocol

/// An entity as this device shows it: the server's copy with the user's own changes applied.
public struct LocalEntity: Hashable, Sendable {
    /// Identifies the row on the screen. It stays the same when the entity gets its id from the
    /// server, and when it is created again after a conflict.
    public let uiKey: Int64
    public let entity: Entity
    public let state: State

    public enum State: Hashable, Sendable {
        case synced
        /// Has changes that the server has not confirmed.
        case pending
        case conflict
    }
}
