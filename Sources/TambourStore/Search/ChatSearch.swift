import TambourProtocol
import TambourSQL

/// A search through one chat. It starts at the newest message and can pause after each step.
struct ChatSearch {
    let view: ChatView
    /// The position of the search. The search continues with the newest message at or below this
    /// id.
    private(set) var position: MessageID
    private(set) var found: [SearchHit] = []
    private let query: SearchQuery
    /// The part of the chat that is indexed; nil before the first step.
    private var index: Index?
    private var area: (number: Int64, parts: Int64)?
    private var part: (number: Int64, blocks: Int64, ends: BlockEnds)?

    /// The maximum number of messages that one step reads. It is small, because a search may cover
    /// many chats.
    private static let messagesPerStep = 32
    /// The search reads areas of the index only if the chat's last indexed part has at least this
    /// number.
    private static let firstPartWithArea: Int64 = 4

    private struct Index {
        /// The number of the last indexed part; -1 if no part is indexed.
        let lastPart: Int64
        let ends: BlockEnds
    }

    init(query: SearchQuery, view: ChatView, from position: MessageID) {
        self.query = query
        self.view = view
        self.position = position
    }

    var isDone: Bool { position <= view.floor || position.rawValue <= 0 }

    mutating func takeFound() -> [SearchHit] {
        defer { found = [] }
        return found
    }

    /// Reads some messages, or skips messages that cannot match according to the index.
    mutating func step(
        _ match: inout SearchQuery.Match,
        _ budget: inout ScanBudget,
        in snapshot: ReadTransaction
    ) throws {
        let index = try index(&budget, in: snapshot)
        guard position <= index.ends.last else {
            // These messages are not indexed yet.
            return try read(after: index.ends.last, &match, &budget, in: snapshot)
        }
        // The next lines read the message at the position and the ends of its block.
        budget.take(rows: 3)
        guard let number = try snapshot.head(of: view.key, upTo: position)?.number, number > 0
        else { return go(to: view.floor) }
        let block = SearchIndex.block(of: number)
        let part = block / SearchIndex.fanOut
        if let end = try end(ofPartBelow: part, index, &budget, in: snapshot) {
            return go(to: end)
        }
        let known = try blocks(of: part, index, &budget, in: snapshot)
        guard let last = known.blocks.highestBit(upTo: block % SearchIndex.fanOut) else {
            return go(to: try snapshot.end(before: part, in: view.key))
        }
        // Adjacent blocks form one range.
        var first = last
        while first > 0, known.blocks & SearchIndex.bit(first - 1) != 0 { first -= 1 }
        if let end = known.ends.end(of: last) { position = min(position, end) }
        let before =
            try known.ends.end(of: first - 1) ?? snapshot.end(before: part, in: view.key)
        try read(after: before, &match, &budget, in: snapshot)
    }

    /// Moves the position down to `end`, and at least by one id.
    private mutating func go(to end: MessageID) {
        position = min(end, position.before)
    }

    /// Returns nil if a part may contain all words of the query. Otherwise returns the id at which
    /// the search must continue.
    private mutating func end(
        ofPartBelow part: Int64,
        _ index: Index,
        _ budget: inout ScanBudget,
        in snapshot: ReadTransaction
    ) throws -> MessageID? {
        // An area lists only complete parts.
        guard index.lastPart >= Self.firstPartWithArea, part < index.lastPart else { return nil }
        let number = part / SearchIndex.fanOut
        if area?.number != number {
            area = (number, try snapshot.mask(of: query, in: view.key, .area, number, &budget))
        }
        guard let parts = area?.parts, parts & SearchIndex.bit(part) == 0 else { return nil }
        let first = number * SearchIndex.fanOut
        guard let below = parts.highestBit(upTo: part - first) else {
            return try snapshot.end(before: first, in: view.key)
        }
        return try snapshot.ends(of: first + below, in: view.key).last
    }

    private mutating func blocks(
        of part: Int64,
        _ index: Index,
        _ budget: inout ScanBudget,
        in snapshot: ReadTransaction
    ) throws -> (blocks: Int64, ends: BlockEnds) {
        if let known = self.part, known.number == part { return (known.blocks, known.ends) }
        let blocks = try snapshot.mask(of: query, in: view.key, .part, part, &budget)
        let ends =
            part == index.lastPart ? index.ends : try snapshot.ends(of: part, in: view.key)
        self.part = (part, blocks, ends)
        return (blocks, ends)
    }

    private mutating func index(
        _ budget: inout ScanBudget,
        in snapshot: ReadTransaction
    ) throws -> Index {
        if let index { return index }
        budget.take(rows: 1)
        let last = try snapshot.lastIndexedPart(of: view.key)
        let found = Index(lastPart: last?.part ?? -1, ends: last?.ends ?? BlockEnds(bytes: []))
        index = found
        return found
    }

    /// Reads messages downwards, from the position to the message after `after`. Reads at most
    /// `messagesPerStep` messages.
    private mutating func read(
        after: MessageID,
        _ match: inout SearchQuery.Match,
        _ budget: inout ScanBudget,
        in snapshot: ReadTransaction
    ) throws {
        let after = max(after, view.floor)
        let limit = budget.share(atMost: Self.messagesPerStep)
        var (rows, bytes) = (0, 0)
        var last = position
        try snapshot.store.search.messages.each {
            $0.bind(1, view.key.rawValue)
            $0.bind(2, view.viewer.rawValue)
            $0.bind(3, position.rawValue)
            $0.bind(4, after.rawValue)
            $0.bind(5, Int64(limit))
        } while: { row in
            let message = row.first()
            rows += 1
            last = MessageID(message.int(.id))
            let status = StoredStatus(rawValue: message.int(.status)) ?? .plain
            if status != .removed, !row.bool(.second(.isHidden)) {
                bytes += read(message, &match)
                if match.isComplete {
                    found.append(SearchHit(record: MessageRecord(row: message), view: view))
                }
            }
            return bytes < budget.bytes
        }
        let isCut = rows == limit || bytes >= budget.bytes && rows > 0
        go(to: isCut ? last.before : after)
        budget.take(rows: max(rows, 1), bytes: bytes)
    }

    /// Searches the text of a message, and the text of a forwarded message in it, for the words of
    /// the query.
    ///
    /// - Returns: the number of bytes read.
    private func read(
        _ message: SQLRow<MessageColumn>,
        _ match: inout SearchQuery.Match
    ) -> Int {
        match.restart()
        let text = message.borrowedBytes(.text)
        var bytes = text.count
        match.read(text)
        if !match.isComplete, let forward: Packed<MessageLink> = message.packed(.forward) {
            bytes += forward.bytes.count
            forward.shownText.bytes.withUnsafeBytes { match.read($0) }
        }
        return bytes
    }
}

extension Int64 {
    /// Returns the highest set bit at or below `index`; nil if no such bit is set.
    fileprivate func highestBit(upTo index: Int64) -> Int64? {
        let mask = UInt64(bitPattern: self) & (UInt64.max >> UInt64(clamping: 63 - index))
        return mask == 0 ? nil : Int64(63 - mask.leadingZeroBitCount)
    }
}
