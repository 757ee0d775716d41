public import TambourProtocol

/// What the user did to one entity since the server last agreed, however many steps it took.
public struct EntityChange: Hashable, Sendable {
    public var kind: EntityChangeKind
    /// The server's copy that the user saw when the change began; nil for a creation.
    public var base: Entity?
    /// All fields of a creation, the changed ones of an update (`null` removes), none of a
    /// deletion.
    public var fields: [String: FieldValue]
    /// Unix milliseconds by this device's clock, of the last step.
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
    /// A pair of steps that nobody can take: to change what is deleted, to create what is there.
    package struct Impossible: Error, Hashable {}

    /// This change and a later one as one change; nil if together they are nothing.
    ///
    /// | this \ next | create | update | delete |
    /// |---|---|---|---|
    /// | create | - | create | nothing |
    /// | update | - | update | delete |
    /// | delete | update | - | delete |
    ///
    /// The base stays that of the first one. Creating what was deleted makes it exactly what is
    /// created.
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

    /// The entity with this change made to it; nil if it is deleted, or was not there.
    func applied(to entity: Entity?) -> Entity? {
        guard kind == .update, var entity else { return nil }
        entity.fields = entity.fields.patched(with: fields)
        return entity
    }

    /// Whether the copy that the user saw is none that came before `entity`: the server has lost it.
    func isUnfounded(on entity: Entity) -> Bool {
        guard let base else { return false }
        return base.version > entity.version
            || (base.version == entity.version && base.modified != entity.modified)
    }

    /// Whether `entity` already says all that this update wants to say.
    func isContained(in entity: Entity) -> Bool {
        fields.allSatisfy { entity.fields[$0.key, default: .null] == $0.value }
    }

    /// Whether somebody set a field to another value than this update does, since its base.
    func collides(with entity: Entity) -> Bool {
        fields.contains { name, value in
            let theirs = entity.fields[name, default: .null]
            return theirs != value && theirs != base?.fields[name, default: .null]
        }
    }
}
