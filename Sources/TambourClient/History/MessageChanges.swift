/// A reply to CHAT_CHANGES, without the contents of the messages.
package struct MessageChanges: Equatable, Sendable {
    /// Messages that were edited, reacted to or voted in.
    package var changed: [Position]
    /// Messages that were deleted.
    package var removed: [Position]
    /// The user sees no message up to this position; nil when no history was cleared.
    package var clearedThrough: Position?
    /// Whether all previously stored data of the chat is in doubt.
    package var isResync: Bool
    /// The start of the next request for changes, in Unix milliseconds.
    package var timeMs: Int64
    /// The position at which to continue; nil when the reply is complete.
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

/// The cursor up to which the changes of a chat's messages are known. The next CHAT_CHANGES
/// continues from this cursor.
///
/// It starts at the `time` of the LOGIN before the chat's first evidence. The transaction that
/// applies a reply also writes the cursor. Pushes do not move it, because they do not contain the
/// server's time; a later reply may repeat their changes.
///
/// See docs/client-sync.md, section 6.6.
package struct ChangeCursor: Hashable, Sendable {
    /// Changes up to this time are known, in Unix milliseconds.
    package private(set) var sinceMs: Int64
    /// The position at which the last reply ended, if more changes follow; nil otherwise.
    package private(set) var behind: Position?

    package init(sinceMs: Int64, behind: Position? = nil) {
        self.sinceMs = sinceMs
        self.behind = behind
    }

    /// Moves the cursor past a reply.
    ///
    /// - Parameter asked: the cursor of the request. The reply to an earlier request does not move
    ///   the cursor back.
    package mutating func advance(past changes: MessageChanges, asked: ChangeCursor) {
        guard self == asked else { return }
        self = ChangeCursor(sinceMs: changes.timeMs, behind: changes.next)
    }

    /// Moves the cursor without a request, after a login that did not list the chat as changed.
    ///
    /// - Parameters:
    ///   - markMs: the mark in the login request. The login reply omits changes before it.
    ///   - timeMs: the `time` of the login.
    package mutating func skip(unchangedSinceMs markMs: Int64, throughMs timeMs: Int64) {
        guard behind == nil, sinceMs >= markMs, timeMs > sinceMs else { return }
        sinceMs = timeMs
    }
}
