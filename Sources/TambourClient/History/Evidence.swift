/// What a reply or a push proves of a chat: of `interval`, exactly `found` was visible to the user when
/// the server looked.
///
/// A claim is made only for positions where no message can appear any more, because the server gives out
/// ids in rising order: at or before a message that exists, and at or before a time that LOGIN has called
/// safe. There a message can only go away, so what a claim says is missing stays missing, however late the
/// claim arrives, and what it says is there may have gone since.
///
/// Source: offline-sync.md 6.1 and 6.2.
package struct Evidence: Equatable, Sendable {
    package let interval: PositionInterval
    /// Smallest first; all within `interval`.
    package let found: [Position]
    /// When it was asked for, on the count of `ChatHistory.generation`; nil for what the server says by
    /// itself, and for replies that tell of the caller's own act.
    package let generation: Int64?

    /// - Returns: nil when there is no interval to say something of.
    init?(_ interval: PositionInterval?, found: [Position], generation: Int64? = nil) {
        guard let interval else { return nil }
        self.interval = interval
        self.found = found.filter(interval.contains).sorted()
        self.generation = generation
    }
}

// MARK: - Single messages

extension Evidence {
    /// A message with the id before it in the chat: NOTIF_MESSAGE of a new message, the reply to MSG_SEND.
    ///
    /// Nothing visible lies between the two. `previous` itself is not claimed: it may be deleted.
    /// A message that is known in another way is an island: where the key may be missing though there is
    /// one before it (NOTIF_CHAT), and where it may be gone since (the reply to a repeated MSG_SEND).
    /// - Parameter previous: nil when the message is the chat's first.
    package static func message(_ message: Position, after previous: Position?) -> Evidence? {
        Evidence(PositionInterval(after: previous, through: message), found: [message])
    }

    /// The newest visible message of a chat, as LOGIN, CHATS_LIST and SYNC_MORE bring it.
    ///
    /// - Parameters:
    ///   - newest: nil when the user sees none.
    ///   - previous: the id before it in the chat, visible or not; nil when it is the first.
    ///   - safeTimeMs: `time` of this session's LOGIN. What is behind `newest` up to then is gone.
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

    /// Nothing is there for the user up to `floor`: they cleared the history or joined without it.
    ///
    /// - Parameter floor: `clearedId` of CHAT_CHANGES.
    package static func cleared(through floor: Position) -> Evidence? {
        Evidence(PositionInterval(through: floor), found: [])
    }

    /// Everything between two times, Unix milliseconds and both included, was deleted:
    /// NOTIF_MSG_DELETE_RANGE.
    package static func emptied(fromMs: Int64, throughMs: Int64) -> Evidence? {
        Evidence(
            PositionInterval(from: .first(at: fromMs), through: .last(at: throughMs)),
            found: []
        )
    }
}

// MARK: - Pages

extension Evidence {
    /// The messages at or before `pivot`, newest first until the page was full.
    ///
    /// A server that takes `pivot` for its own future sends the newest messages instead. That is as
    /// good: they reach from the newest down, so nothing is missing behind the first of them.
    /// - Parameters:
    ///   - bound: where the request let the page end.
    ///   - more: nil from a server that does not say it.
    ///   - closed: behind it messages may have appeared since the server looked.
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

    /// The messages behind `pivot`, oldest first until the page was full.
    ///
    /// - Parameters:
    ///   - pivot: a message that is or was in the chat. Of another place the server may think that it is
    ///     in the future, and an empty page would prove nothing.
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

    /// The messages on both sides of `pivot`, nearest first until the page was full.
    ///
    /// `more` does not tell which side goes on, so with it nothing is claimed beyond the page. A page
    /// without a message at or before `pivot` does not even claim the pivot: the server may have taken it
    /// for its own future and sent the newest messages.
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
