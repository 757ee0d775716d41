/// What a reply or a push proves about a chat: in `interval`, exactly `found` was visible to the
/// user when the server looked.
///
/// Evidence covers only positions where no new message can appear, because the server assigns ids
/// in rising order: at or before an existing message, and at or before a time that LOGIN has
/// declared safe. There, messages can only disappear. So a message that the evidence lacks stays
/// missing, however late the evidence arrives, and one that it contains may be gone by now.
///
/// The sources are listed in docs/client-sync.md, sections 6.1 and 6.2.
package struct Evidence: Equatable, Sendable {
    package let interval: PositionInterval
    /// Smallest first; all within `interval`.
    package let found: [Position]
    /// The value of `ChatHistory.generation` at the time of the request; nil for pushes, and for
    /// replies about the caller's own action.
    package let generation: Int64?

    /// - Returns: nil when there is no interval.
    init?(_ interval: PositionInterval?, found: [Position], generation: Int64? = nil) {
        guard let interval else { return nil }
        self.interval = interval
        self.found = found.filter(interval.contains).sorted()
        self.generation = generation
    }
}

// MARK: - Single messages

extension Evidence {
    /// A message with the id before it in the chat, from NOTIF_MESSAGE of a new message or the
    /// reply to MSG_SEND.
    ///
    /// Nothing visible lies between the two. `previous` itself is not claimed: it may be deleted. A
    /// message learned in another way is an island. Its key may be missing although it has a
    /// predecessor (NOTIF_CHAT), or the message may be gone by now (the reply to a repeated
    /// MSG_SEND).
    /// - Parameter previous: nil when the message is the chat's first.
    package static func message(_ message: Position, after previous: Position?) -> Evidence? {
        Evidence(PositionInterval(after: previous, through: message), found: [message])
    }

    /// The newest visible message of a chat, from LOGIN, CHATS_LIST or SYNC_MORE.
    ///
    /// - Parameters:
    ///   - newest: nil when the user sees no message.
    ///   - previous: the id before it in the chat, visible or not; nil when it is the first.
    ///   - safeTimeMs: `time` of this session's LOGIN. Messages after `newest` up to this time are
    ///     gone.
    package static func newest(
        _ newest: Position?,
        after previous: Position?,
        safeTimeMs: Int64
    ) -> Evidence? {
        let safe = Position.last(at: safeTimeMs)
        guard let newest else { return Evidence(PositionInterval(through: safe), found: []) }
        return Evidence(
            PositionInterval(after: previous, through: max(newest, safe)),
            found: [newest]
        )
    }

    /// The user sees nothing up to `floor`: they cleared the history, or joined without it.
    ///
    /// - Parameter floor: `clearedId` of CHAT_CHANGES.
    package static func cleared(through floor: Position) -> Evidence? {
        Evidence(PositionInterval(through: floor), found: [])
    }

    /// All messages between two times were deleted, from NOTIF_MSG_DELETE_RANGE. The times are Unix
    /// milliseconds, both included.
    package static func emptied(fromMs: Int64, throughMs: Int64) -> Evidence? {
        Evidence(
            PositionInterval(from: .first(at: fromMs), through: .last(at: throughMs)),
            found: []
        )
    }
}

// MARK: - Pages

extension Evidence {
    /// The messages at or before `pivot`, newest first, until the page was full.
    ///
    /// A server that considers `pivot` to be in the future sends the newest messages instead. That
    /// is just as good: they reach down from the newest, so nothing is missing after the first of
    /// them.
    /// - Parameters:
    ///   - bound: where the request let the page end.
    ///   - more: nil from a server that does not send it.
    ///   - closed: after this position, messages may have appeared since the server looked.
    package static func backwardPage(
        upTo pivot: Position,
        downTo bound: Position = .min,
        found: [Position],
        more: Bool?,
        closed: Position,
        generation: Int64? = nil
    ) -> Evidence? {
        guard let ends = Ends(found) else {
            return Evidence(
                PositionInterval(from: bound, through: min(pivot, closed)),
                found: [],
                generation: generation
            )
        }
        return Evidence(
            PositionInterval(
                from: more ?? true ? ends.first : bound,
                through: max(ends.last, min(pivot, closed))
            ),
            found: found,
            generation: generation
        )
    }

    /// The messages after `pivot`, oldest first, until the page was full.
    ///
    /// - Parameters:
    ///   - pivot: a message that is or was in the chat. The server may consider any other place to
    ///     be in the future, and then an empty page proves nothing.
    ///   - bound: where the request let the page end.
    package static func forwardPage(
        after pivot: Position,
        upTo bound: Position = .max,
        found: [Position],
        more: Bool?,
        closed: Position,
        generation: Int64? = nil
    ) -> Evidence? {
        let upper: Position
        if let ends = Ends(found) {
            upper = more ?? true ? ends.last : max(ends.last, min(bound, closed))
        } else {
            upper = min(bound, closed)
        }
        return Evidence(
            PositionInterval(after: pivot, through: upper),
            found: found,
            generation: generation
        )
    }

    /// The messages on both sides of `pivot`, nearest first, until the page was full.
    ///
    /// `more` does not say on which side messages are left, so with it nothing is claimed beyond
    /// the page. A page without a message at or before `pivot` does not even claim the pivot: the
    /// server may have considered it to be in the future and sent the newest messages.
    /// - Parameter pivot: a message that is or was in the chat.
    package static func pageAround(
        _ pivot: Position,
        found: [Position],
        more: Bool?,
        closed: Position,
        generation: Int64? = nil
    ) -> Evidence? {
        guard let ends = Ends(found), more ?? true else {
            return Evidence(
                PositionInterval(through: max(found.max() ?? .min, closed, pivot)),
                found: found,
                generation: generation
            )
        }
        return Evidence(
            PositionInterval(from: ends.first, through: max(ends.last, pivot)),
            found: found,
            generation: generation
        )
    }

    private struct Ends {
        let first: Position
        let last: Position

        init?(_ found: [Position]) {
            guard let first = found.min(), let last = found.max() else { return nil }
            self.first = first
            self.last = last
        }
    }
}
