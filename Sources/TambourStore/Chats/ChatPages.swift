package import TambourProtocol
import TambourSQL

/// The start of a page of chats. Chats are ordered by their last event, the newest first. Chats
/// with the same time are ordered by id.
///
/// On the wire, the cursor is a number. Several chats may have their last event in the same
/// millisecond. If a page ends with all chats of a millisecond, the number is the time of the
/// page's last chat. The next page starts before this time. If a page contains only some chats of a
/// millisecond, bit 62 of the number is set:
///
///     0 1 | time, 42 bits, Unix milliseconds | remaining, 20 bits
///
/// `remaining` is the number of chats of this millisecond that no page has contained yet. These
/// chats are the last chats of the millisecond in the order. The next page therefore starts at the
/// right chat, even if a chat of an earlier page has a newer last event by then.
package struct ChatCursor: Equatable, Sendable {
    private static let remainingBits: Int64 = 20
    private static let insideMillisecond: Int64 = 1 << 62
    private static let maxTime: Int64 = (1 << 42) - 1
    private static let maxRemaining: Int64 = (1 << remainingBits) - 1

    /// The latest possible time of a chat on the page, Unix milliseconds.
    let time: Int64
    /// The number of chats with this `time` that no page has contained yet; nil if no page has
    /// contained any of them.
    let remaining: Int64?

    /// The start of the first page.
    package static let newest = Self(time: .max, remaining: nil)

    private init(time: Int64, remaining: Int64?) {
        self.time = time
        self.remaining = remaining
    }

    /// Creates the start of the page with the chats before `time` (Unix milliseconds).
    package init(before time: Int64) {
        self.init(time: time == .max ? .max : max(time, .min + 1) - 1, remaining: nil)
    }

    /// Creates the start of the page that begins with the last `remaining` chats of `time`.
    init(at time: Int64, remaining: Int64) {
        self.init(
            time: min(max(0, time), Self.maxTime),
            remaining: min(remaining, Self.maxRemaining)
        )
    }

    /// Decodes a number of the wire with bit 62. Returns nil for a number without bit 62, because
    /// this number is a time.
    package init?(insideMillisecond marker: Int64) {
        guard marker >= Self.insideMillisecond, marker < .max else { return nil }
        let bits = marker ^ Self.insideMillisecond
        self.init(time: bits >> Self.remainingBits, remaining: bits & Self.maxRemaining)
    }

    /// The number on the wire.
    package var marker: Int64 {
        guard let remaining else { return time == .max ? .max : time + 1 }
        return Self.insideMillisecond | time << Self.remainingBits | remaining
    }
}

extension ReadTransaction {
    /// Returns a page of chats that starts at `cursor`, the most recently active chats first.
    ///
    /// All chats of one millisecond are on the same page if they fit, because some clients use the
    /// time of the last chat as the marker. If they do not fit, the page contains only some of
    /// them, and the marker contains the position. A page also ends when `rowsRead` reaches
    /// `pageEnd`.
    ///
    /// - Parameters:
    ///   - limit: the number of chats. The page has up to `maxChatsPage` more chats if these have
    ///     the same time as the last chat.
    ///   - budget: the maximum size of the page in bytes; nil for `maxReplyBytes`. The page always
    ///     contains the first chat.
    /// - Returns: the page, and the marker of the next page; 0 if there is no next page.
    package func chatsPage(
        for viewer: UserID,
        from cursor: ChatCursor,
        limit: Int,
        budget: Int? = nil
    ) throws -> (chats: [Chat], next: Int64) {
        let skipped = try skippedChats(of: viewer, cursor)
        let most = limit + limits.maxChatsPage
        let candidates = try candidates(for: viewer, cursor, skipped, limit, most: most)
        var budget = budget ?? limits.maxReplyBytes
        let pageEnd = self.pageEnd
        var chats: [Chat] = []
        for (place, candidate) in candidates.prefix(most).enumerated() {
            if place >= limit, candidate.active != candidates[place - 1].active { break }
            if rowsRead >= pageEnd, !chats.isEmpty { break }
            let chat = try chat(candidate.view)
            budget -= chat.wireSizeEstimate
            if budget < 0, !chats.isEmpty { break }
            chats.append(chat)
        }
        guard chats.count < candidates.count else { return (chats, 0) }
        let times = candidates.map(\.active)
        let cut = times[chats.count]
        guard let last = chats.indices.last, times[last] == cut else {
            return (chats, chats.isEmpty ? 0 : times[chats.count - 1])
        }
        if let before = times[..<last].lastIndex(where: { $0 != cut }) {
            // The next page starts with all chats of the millisecond that does not fit.
            return (Array(chats[...before]), times[before])
        }
        let taken = cut == cursor.time ? skipped + chats.count : chats.count
        let remaining = try chatCount(of: viewer, lastActiveAt: cut) - taken
        return (chats, ChatCursor(at: cut, remaining: Int64(remaining)).marker)
    }

    /// Returns the number of chats that have the cursor's time and that earlier pages contained.
    func skippedChats(of viewer: UserID, _ cursor: ChatCursor) throws -> Int {
        guard let remaining = cursor.remaining else { return 0 }
        let count = try chatCount(of: viewer, lastActiveAt: cursor.time)
        return max(0, count - Int(clamping: remaining))
    }

    /// Returns the number of the user's chats whose last event is at `time` (Unix milliseconds).
    package func chatCount(of viewer: UserID, lastActiveAt time: Int64) throws -> Int {
        let count = try store.chats.tiedCount.oneInt {
            $0.bind(1, viewer.rawValue)
            $0.bind(2, time)
        }
        return Int(clamping: count ?? 0)
    }

    /// Returns the chats that a page may contain. Also returns the chat after them, if there is
    /// one.
    private func candidates(
        for viewer: UserID,
        _ cursor: ChatCursor,
        _ skipped: Int,
        _ limit: Int,
        most: Int
    ) throws -> [(view: ChatView, active: Int64)] {
        var found: [(view: ChatView, active: Int64)] = []
        try store.chats.pageOfViews.each {
            $0.bind(1, viewer.rawValue)
            $0.bind(2, cursor.time)
            $0.bind(3, Int64(most) + 1)
            $0.bind(4, Int64(skipped))
        } while: { row in
            let active = row.int(.second(.active))
            found.append((ChatView(row: row.first()), active))
            return found.count <= max(1, limit) || found[found.count - 2].active == active
        }
        return found
    }
}
