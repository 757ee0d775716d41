/// A reply of CHAT_CHANGES, without the contents of the messages.
package struct MessageChanges: Equatable, Sendable {
    /// Messages that were edited, reacted to or voted in.
    package var changed: [Position]
    /// Messages that are no more.
    package var removed: [Position]
    /// Up to it nothing is there for the user; nil when all is.
    package var clearedThrough: Position?
    /// Nothing that was held before may be trusted.
    package var isResync: Bool
    /// The next mark, Unix milliseconds.
    package var timeMs: Int64
    /// Where to go on; nil when this was all.
    package var next: Position?

    package init(
        changed: [Position] = [],
        removed: [Position] = [],
        clearedThrough: Position? = nil,
        isResync: Bool = false,
        timeMs: Int64,
        next: Position? = nil
    ) {
        self.changed = changed
        self.removed = removed
        self.clearedThrough = clearedThrough
        self.isResync = isResync
        self.timeMs = timeMs
        self.next = next
    }
}

/// Up to where the changes of a chat's messages are known: what to ask CHAT_CHANGES for.
///
/// It begins with the `time` of the LOGIN before the chat's first evidence, and is written in the
/// transaction that carries out a reply. Pushes do not move it: they do not tell the server's clock, and
/// what they brought may come again.
///
/// Source: offline-sync.md 6.6.
package struct ChangeCursor: Hashable, Sendable {
    /// Changes at or before it are known, Unix milliseconds.
    package private(set) var sinceMs: Int64
    /// Where the last reply ended, in the midst of more; nil otherwise.
    package private(set) var behind: Position?

    package init(sinceMs: Int64, behind: Position? = nil) {
        self.sinceMs = sinceMs
        self.behind = behind
    }

    /// Moves on behind a reply.
    ///
    /// - Parameter asked: the cursor that the request was made from. A reply to an earlier one does not
    ///   move the cursor back.
    package mutating func advance(past changes: MessageChanges, asked: ChangeCursor) {
        guard self == asked else { return }
        self = ChangeCursor(sinceMs: changes.timeMs, behind: changes.next)
    }

    /// Moves on without a request: the chat is not among those that a login brought as changed.
    ///
    /// - Parameters:
    ///   - markMs: the mark that the login was made with; what happened before it is not told.
    ///   - timeMs: the `time` of the login.
    package mutating func skip(unchangedSinceMs markMs: Int64, throughMs timeMs: Int64) {
        guard behind == nil, sinceMs >= markMs, timeMs > sinceMs else { return }
        sinceMs = timeMs
    }
}
