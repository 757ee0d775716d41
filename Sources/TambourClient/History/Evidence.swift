/// The proof that a reply or a push contains about a chat: in `interval`, exactly the messages
/// `found` were visible to the user when the server looked.
///
/// The server assigns ids in rising order. Evidence covers only positions where no new message can
/// appear: at or before an existing message, or at or before a time that LOGIN has declared safe.
/// At these positions, messages can only disappear. A message that the evidence lacks therefore
/// stays missing, even if the evidence arrives late. A message that the evidence contains may have
/// been deleted since.
///
/// The sources of evidence are listed in docs/client-sync.md, sections 6.1 and 6.2.
package struct Evidence: Equatable, Sendable {
    package let interval: PositionInterval
    /// Smallest first; all within `interval`.
    package let found: [Position]
    /// The value of `ChatHistory.generation` at the time of the request; nil for pushes, and for
    /// replies to the caller's own action.
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
    /// A message, and the id of the message before it in the chat, from NOTIF_MESSAGE or the reply
    /// to MSG_SEND.
    ///
    /// No visible message lies between the two. Nothing is claimed about `previous` itself, which
    /// may be deleted. A message from any other source, such as a search result, is an island: its
    /// packet does not name the message before it.
    /// - Parameter previous: nil for the chat's first message.
    package static func message(_ message: Position, after previous: Position?) -> Evidence? {
        Evidence(PositionInterval(after: previous, through: message), found: [message])
    }

    /// The newest visible message of a chat, from LOGIN, CHATS_LIST or SYNC_MORE.
    ///
    /// - Parameters:
    ///   - newest: nil when the user sees no message.
    ///   - previous: the id before `newest` in the chat, visible or not; nil for the chat's first
    ///     message.
    ///   - safeTimeMs: `time` of this session's LOGIN. Messages after `newest` up to this time are
    ///     deleted.
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

    /// The user sees no message up to `floor`, because they cleared the history or joined without
    /// it.
    ///
    /// - Parameter floor: `clearedId` of CHAT_CHANGES.
    package static func cleared(through floor: Position) -> Evidence? {
        Evidence(PositionInterval(through: floor), found: [])
    }

    /// All messages between two times were deleted (NOTIF_MSG_DELETE_RANGE). Both times are
    /// inclusive, in Unix milliseconds.
    package static func emptied(fromMs: Int64, throughMs: Int64) -> Evidence? {
        Evidence(
            PositionInterval(from: .first(at: fromMs), through: .last(at: throughMs)),
            found: []
        )
    }
}

// MARK: - Pages

extension Evidence {
    /// The messages at or before `pivot`, newest first, up to the page size.
    ///
    /// If the server considers `pivot` to be in the future, it sends the newest messages instead.
    /// This page is equally good evidence. It ends at the newest message, so no message after the
    /// page's first message is missing.
    /// - Parameters:
    ///   - bound: the oldest position that the page may contain, as in the request.
    ///   - more: nil from a server that omits the field.
    ///   - closed: the position after which messages may have appeared since the server looked.
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

    /// The messages after `pivot`, oldest first, up to the page size.
    ///
    /// - Parameters:
    ///   - pivot: a message that is or was in the chat. The server may consider any other position
    ///     to be in the future. In that case an empty page proves nothing.
    ///   - bound: the newest position that the page may contain, as in the request.
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

    /// The messages on both sides of `pivot`, nearest first, up to the page size.
    ///
    /// `more` does not tell on which side messages remain. If `more` is true, the evidence covers
    /// only the page. A page without a message at or before `pivot` does not even cover the pivot:
    /// the server may have considered the pivot to be in the future and sent the newest messages.
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
