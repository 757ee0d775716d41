public import TambourProtocol

/// An entity as this device shows it: the server's copy with the user's changes applied.
public struct LocalEntity: Hashable, Sendable {
    /// Identifies the row on the screen. The key does not change when the server assigns the
    /// entity's id, or when the entity is created again after a conflict.
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
