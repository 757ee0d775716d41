package import TambourProtocol
import TambourSQL

/// The start of a page of chats. Chats are ordered by their last event, newest first, then by id.
///
/// On the wire the cursor is a number. After a page that ends between two milliseconds, it is the
/// time of the page's last chat, and the next page starts before that time. After a page that ends
/// inside a millisecond, bit 62 is set:
///
///     0 1 | time, 42 bits, Unix milliseconds | remaining, 20 bits
///
/// `remaining` counts the chats of that millisecond that no page has contained yet. They are the
/// last ones of their millisecond. The next page therefore contains all of them, even if a chat of
/// an earlier page has moved to a newer time in the meantime.
package struct ChatCursor: Equatable, Sendable {
    private static let remainingBits: Int64 = 20
    private static let insideMillisecond: Int64 = 1 << 62
    private static let maxTime: Int64 = (1 << 42) - 1
    private static let maxRemaining: Int64 = (1 << remainingBits) - 1

    /// The newest possible time on the page, Unix milliseconds.
    let time: Int64
    /// The number of remaining chats of `time`; nil for all of them.
    let remaining: Int64?

    /// The first page.
    package static let newest = Self(time: .max, remaining: nil)

    private init(time: Int64, remaining: Int64?) {
        self.time = time
        self.remaining = remaining
    }

    /// The page of the chats before `time` (Unix milliseconds).
    package init(before time: Int64) {
        self.init(time: time == .max ? .max : max(time, .min + 1) - 1, remaining: nil)
    }

    /// The page that starts with the last `remaining` chats of `time`.
    init(at time: Int64, remaining: Int64) {
        self.init(
            time: min(max(0, time), Self.maxTime),
            remaining: min(remaining, Self.maxRemaining)
        )
    }

    /// Decodes the marker at the end of a page; nil for a number without bit 62, which is a time.
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
    /// Returns the most recently active chats from `cursor` on, newest first.
    ///
    /// Chats of one millisecond share a page if they fit, because some clients use the time of the
    /// last chat as the marker. Otherwise the page ends inside the millisecond, and the marker
    /// contains the position. A page also ends at `pageEnd`.
    ///
    /// - Parameters:
    ///   - limit: the number of chats; up to `maxChatsPage` more if they share the millisecond of
    ///     the last chat.
    ///   - budget: the maximum size of the page in bytes; nil for `maxReplyBytes`. The page always
    ///     contains the first chat.
    /// - Returns: the page, and the marker of the next page; 0 at the end.
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
            // The chats of the incomplete millisecond start the next page.
            return (Array(chats[...before]), times[before])
        }
        let taken = cut == cursor.time ? skipped + chats.count : chats.count
        let remaining = try chatCount(of: viewer, lastActiveAt: cut) - taken
        return (chats, ChatCursor(at: cut, remaining: Int64(remaining)).marker)
    }

    /// Returns the number of chats of the cursor's millisecond that earlier pages contained.
    func skippedChats(of viewer: UserID, _ cursor: ChatCursor) throws -> Int {
        guard let remaining = cursor.remaining else { return 0 }
        let count = try chatCount(of: viewer, lastActiveAt: cursor.time)
        return max(0, count - Int(clamping: remaining))
    }

    /// Returns the number of the user's chats with their last event at `time` (Unix milliseconds).
    package func chatCount(of viewer: UserID, lastActiveAt time: Int64) throws -> Int {
        let count = try store.chats.tiedCount.oneInt {
            $0.bind(1, viewer.rawValue)
            $0.bind(2, time)
        }
        return Int(clamping: count ?? 0)
    }

    /// Returns the chats that a page may hold, plus the next chat if it exists.
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
