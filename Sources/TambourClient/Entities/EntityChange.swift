public import TambourProtocol

/// The user's accumulated change of one entity since the last state that the server confirmed.
public struct EntityChange: Hashable, Sendable {
    public var kind: EntityChangeKind
    /// The server's copy that the user saw at the start of the change; nil for a creation.
    public var base: Entity?
    /// All fields of a creation; the changed fields of an update (`null` removes a field); empty
    /// for a deletion.
    public var fields: [String: FieldValue]
    /// The time of the last step that was merged into this change, in Unix milliseconds of this
    /// device's clock.
    public var modified: Int64

    package init(
        kind: EntityChangeKind,
        base: Entity? = nil,
        fields: [String: FieldValue] = [:],
        modified: Int64
    ) {
        self.kind = kind
        self.base = base
        self.fields = fields
        self.modified = modified
    }
}

extension EntityChange {
    /// An impossible pair of steps: changing a deleted entity, or creating an existing one.
    package struct Impossible: Error, Hashable {}

    /// Combines this change with a later change; nil if the two cancel out.
    ///
    /// | this \ next | create | update | delete |
    /// | --- | --- | --- | --- |
    /// | create | - | create | nothing |
    /// | update | - | update | delete |
    /// | delete | update | - | delete |
    ///
    /// The result keeps the base of the first change. A deleted entity that is created again gets
    /// exactly the fields of the creation.
    package func followed(by next: EntityChange) throws(Impossible) -> EntityChange? {
        var change = self
        change.modified = next.modified
        switch (kind, next.kind) {
        case (.create, .update):
            change.fields = fields.patched(with: next.fields)
        case (.create, .delete):
            return nil
        case (.update, .update):
            change.fields.merge(next.fields) { _, new in new }
        case (.update, .delete), (.delete, .delete):
            change.kind = .delete
            change.fields = [:]
        case (.delete, .create):
            change.kind = .update
            change.fields = (base?.fields ?? [:]).patch(to: next.fields)
        case (.create, .create), (.update, .create), (.delete, .update):
            throw Impossible()
        }
        return change
    }

    /// Returns the entity after this change; nil unless the change is an update and the entity
    /// exists.
    func applied(to entity: Entity?) -> Entity? {
        guard kind == .update, var entity else { return nil }
        entity.fields = entity.fields.patched(with: fields)
        return entity
    }

    /// Returns whether the server has lost the copy that the user saw. In that case, `entity` does
    /// not descend from that copy.
    func isUnfounded(on entity: Entity) -> Bool {
        guard let base else { return false }
        return base.version > entity.version
            || (base.version == entity.version && base.modified != entity.modified)
    }

    /// Returns whether `entity` already has all values that this update sets.
    func isContained(in entity: Entity) -> Bool {
        fields.allSatisfy { entity.fields[$0.key, default: .null] == $0.value }
    }

    /// Returns whether another change has set a field of this update to a different value since the
    /// base.
    func collides(with entity: Entity) -> Bool {
        fields.contains { name, value in
            let theirs = entity.fields[name, default: .null]
            return theirs != value && theirs != base?.fields[name, default: .null]
        }
    }
}
