package import TambourProtocol

/// Resolving conflicts.
extension LocalEntities {
    /// - Parameter parent: The new parent of the entity. Needed only if `choice` is `mine` and the
    ///   old parent is deleted.
    package mutating func resolve(
        _ id: EntityID,
        _ choice: EntityChoice,
        below parent: EntityID? = nil,
        at now: Int64
    ) throws(LocalEntityError) -> [EntityRowChange] {
        guard let conflict = conflict(id), let update = open[conflict.id], let cause = update.cause
        else { throw .noConflict }
        guard conflict.choices.contains(choice) else { throw .choiceNotOffered }
        switch choice {
        case .mine:
            try takeMine(update, cause, below: parent.map(current), at: now)
        case .theirs:
            open[conflict.id] = nil
            if case .duplicate(let theirs) = cause {
                rename(conflict.id, to: theirs.id, at: now)
            } else if update.change.kind == .create {
                forget(conflict.id)
            }
        case .both:
            open[conflict.id] = nil
            let row = entities[conflict.id]
            _ = insert(
                conflict.type,
                below: row?.parent,
                fields: update.change.whole,
                at: now
            )
        }
        return finish()
    }

    private mutating func takeMine(
        _ update: LocalUpdate,
        _ cause: LocalUpdate.Cause,
        below parent: EntityID?,
        at now: Int64
    ) throws(LocalEntityError) {
        guard let row = entities[update.id] else { return }
        var update = update
        update.state = .pending
        update.change.modified = now
        switch cause {
        case .version where update.change.kind == .update && row.server?.isDeleted ?? true:
            recreate(row.id, update.change.whole, below: row.parent, at: now)
        case .version:
            update.change.base = row.server
            open[row.id] = update
        case .duplicate(let theirs):
            open[row.id] = nil
            rename(row.id, to: theirs.id, at: now)
            let isDeletedHere = (open[theirs.id] ?? sent[theirs.id])?.change.kind == .delete
            var change = update.change
            change.kind = isDeletedHere ? .create : .update
            try record(change, on: theirs.id)
        case .parentDeleted:
            guard let parent else { throw .parentNeeded }
            try check(parent, for: try kind(of: row.type))
            if update.change.kind == .create {
                var row = row
                row.parent = parent
                put(row)
                open[row.id] = update
            } else {
                recreate(row.id, update.change.whole, below: parent, at: now)
            }
        case .rejected:
            open[row.id] = update
        }
        touch(row.id)
    }
}

extension EntityChange {
    /// All fields of the entity in the user's version.
    fileprivate var whole: [String: FieldValue] {
        (base?.fields ?? [:]).patched(with: fields)
    }
}
