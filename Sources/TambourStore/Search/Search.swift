package import TambourProtocol
import TambourSQL

struct SearchStatements {
    let lastPart: any SQLStatement
    let part: any SQLStatement
    let putPart: any SQLStatement
    let mask: any SQLStatement
    let masks: any SQLStatement
    let messages: any SQLStatement
    let range: any SQLStatement
    let addWord: any SQLStatement
    let clearWord: any SQLStatement
    let dropEmpty: any SQLStatement
    let setWord: any SQLStatement
    let dropWord: any SQLStatement
    let wordsOfPart: any SQLStatement
    let wordsOfBlocks: any SQLStatement
    let putStale: any SQLStatement
    let nextStale: any SQLStatement
    let dropStale: any SQLStatement
    let dropBelow: any SQLStatement
    let maskArea: any SQLStatement
    let dropEmptyArea: any SQLStatement
    let chatsOf: any SQLStatement
    let chatsAfter: any SQLStatement

    init(_ sql: any SQLConnection) throws {
        lastPart = try sql.prepare(
            "SELECT part, ends FROM search_part WHERE chat = $1 ORDER BY part DESC LIMIT 1"
        )
        part = try sql.prepare("SELECT ends FROM search_part WHERE chat = $1 AND part = $2")
        putPart = try sql.prepare(
            """
            INSERT INTO search_part (chat, part, ends) VALUES ($1, $2, $3)
            ON CONFLICT (chat, part) DO UPDATE SET ends = excluded.ends
            """
        )
        let word = "chat = $1 AND scale = $2 AND part = $3"
        mask = try sql.prepare("SELECT blocks FROM search_word WHERE \(word) AND word = $4")
        masks = try sql.prepare(
            "SELECT blocks FROM search_word WHERE \(word) AND word >= $4 AND word < $5 LIMIT $6"
        )
        messages = try sql.prepare(
            """
            SELECT \(MessageStatements.columns), \(MessageStatements.isHiddenColumn) FROM message m
            WHERE m.chat = $1 AND m.id <= $3 AND m.id > $4 ORDER BY m.id DESC LIMIT $5
            """
        )
        range = try sql.prepare(
            """
            SELECT id, n, text, forward FROM message
            WHERE chat = $1 AND id > $2 AND id <= $3 ORDER BY id LIMIT $4
            """
        )
        addWord = try sql.prepare(
            """
            INSERT INTO search_word (chat, scale, part, word, blocks)
            VALUES ($1, $2, $3, $4, $5)
            ON CONFLICT (chat, scale, part, word) DO UPDATE SET
              blocks = search_word.blocks | excluded.blocks
            """
        )
        clearWord = try sql.prepare(
            """
            UPDATE search_word SET blocks = blocks & ~CAST($5 AS bigint)
            WHERE \(word) AND word = $4
            """
        )
        dropEmpty = try sql.prepare(
            "DELETE FROM search_word WHERE \(word) AND word = $4 AND blocks = 0"
        )
        setWord = try sql.prepare("UPDATE search_word SET blocks = $5 WHERE \(word) AND word = $4")
        dropWord = try sql.prepare("DELETE FROM search_word WHERE \(word) AND word = $4")
        wordsOfPart = try sql.prepare("SELECT word FROM search_word WHERE \(word)")
        wordsOfBlocks = try sql.prepare(
            """
            SELECT word, blocks FROM search_word
            WHERE \(word) AND blocks & CAST($4 AS bigint) <> 0
            """
        )
        putStale = try sql.prepare(
            "INSERT INTO search_stale (chat, block) VALUES ($1, $2) ON CONFLICT DO NOTHING"
        )
        nextStale = try sql.prepare(
            """
            SELECT chat, block FROM search_stale WHERE chat >= $1
            ORDER BY chat, block LIMIT $2
            """
        )
        dropStale = try sql.prepare("DELETE FROM search_stale WHERE chat = $1 AND block = $2")
        dropBelow = try sql.prepare(
            "DELETE FROM search_word WHERE chat = $1 AND scale = $2 AND part < $3"
        )
        maskArea = try sql.prepare(
            "UPDATE search_word SET blocks = blocks & CAST($4 AS bigint) WHERE \(word)"
        )
        dropEmptyArea = try sql.prepare("DELETE FROM search_word WHERE \(word) AND blocks = 0")
        chatsOf = try sql.prepare(
            """
            SELECT \(ChatStatements.viewColumns),
              (SELECT x.id FROM message x WHERE x.chat = m.chat AND x.id <= $2
               ORDER BY x.id DESC LIMIT 1) AS newest
            FROM (SELECT * FROM member WHERE user_id = $1 ORDER BY ct DESC LIMIT $3) m
              JOIN chat c ON c.id = m.chat
            """
        )
        chatsAfter = try sql.prepare(
            """
            SELECT id FROM chat WHERE id > $1 AND kind <> \(ChatKind.comments.rawValue)
            ORDER BY id LIMIT $2
            """
        )
    }
}

/// A message that was found, and its chat as the caller sees it.
package struct SearchHit: Sendable {
    package let record: MessageRecord
    package let view: ChatView
}

/// Search results, newest first.
package struct SearchPage: Sendable {
    package var messages: [SearchHit] = []
    /// The id below which the next page starts; nil at the end. A page that spent its budget has
    /// one even when it found nothing.
    package var next: MessageID?

    package init() {}
}

extension ReadTransaction {
    /// Returns the newest messages of a chat below `marker` that contain the words of `query`.
    package func search(
        _ query: SearchQuery,
        in view: ChatView,
        below marker: MessageID?,
        limit: Int
    ) throws -> SearchPage {
        var budget = ScanBudget(limits)
        var match = SearchQuery.Match(query)
        var search = ChatSearch(query: query, view: view, from: marker.top)
        while !search.isDone, search.found.count <= limit {
            try search.step(&match, &budget, in: self)
            if budget.isSpent { break }
        }
        var page = SearchPage()
        page.messages = search.found
        if !search.isDone { page.next = search.position.marker }
        return page.cut(to: limit)
    }

    /// Searches all chats of a user, at most `maxSearchedChats`.
    ///
    /// Each step continues the chat whose remaining messages are newest. Therefore the results
    /// above that message are complete wherever the search stops.
    package func search(
        _ query: SearchQuery,
        for user: UserID,
        below marker: MessageID?,
        limit: Int
    ) throws -> SearchPage {
        var budget = ScanBudget(limits)
        var match = SearchQuery.Match(query)
        // A heap: the chat whose remaining messages are newest comes first.
        var searches = try chats(of: user, from: marker.top, query)
        let start = searches.first?.position
        var page = SearchPage()
        while let first = searches.first {
            let isEnough = page.count(above: first.position, atMost: limit + 1) > limit
            // Advance by at least one message, or the next page would repeat this one.
            if isEnough || budget.isSpent && first.position != start { break }
            try searches[0].step(&match, &budget, in: self)
            page.insert(searches[0].takeFound())
            if searches[0].isDone {
                searches[0] = searches[searches.count - 1]
                searches.removeLast()
            }
            searches.sink()
        }
        if let rest = searches.first {
            page.messages.removeAll { $0.record.id <= rest.position }
            page.next = rest.position.marker
        }
        return page.cut(to: limit)
    }

    /// Returns the searches of a user's chats, the newest message first.
    private func chats(
        of user: UserID,
        from top: MessageID,
        _ query: SearchQuery
    ) throws -> [ChatSearch] {
        let statement = store.search.chatsOf
        defer { statement.reset() }
        statement.bind(1, user.rawValue)
        statement.bind(2, top.rawValue)
        statement.bind(3, Int64(limits.maxSearchedChats))
        var searches: [ChatSearch] = []
        while try statement.step() {
            guard !statement.isNull(ChatStatements.viewColumnCount) else { continue }
            let newest = MessageID(statement.int(ChatStatements.viewColumnCount))
            let search = ChatSearch(query: query, view: ChatView(row: statement), from: newest)
            if !search.isDone { searches.append(search) }
        }
        return searches.sorted { $0.position > $1.position }
    }

    /// Returns the blocks or parts in which all words of the query may occur.
    ///
    /// The mask may include too many: an exact one would need more index rows than the messages are
    /// worth.
    func mask(
        of query: SearchQuery,
        in chat: ChatKey,
        _ scale: SearchIndex.Scale,
        _ part: Int64,
        _ budget: inout ScanBudget
    ) throws -> Int64 {
        let statement = store.search.masks
        defer { statement.reset() }
        var all: Int64 = -1
        let everything = try mask(of: SearchIndex.anyWord, in: chat, scale, part)
        budget.take(rows: 1)
        // Most of the budget is for messages: a page that only reads the index makes no progress.
        var left = budget.share(atMost: min(SearchIndex.maskRows, limits.maxScannedRows / 8))
        for word in query.rarestFirst where left > 0 {
            statement.reset()
            statement.bind(1, chat.rawValue)
            statement.bind(2, scale.rawValue)
            statement.bind(3, part)
            statement.bindBlob(4, word)
            statement.bindBlob(5, SearchIndex.end(ofPrefix: word))
            statement.bind(6, Int64(left))
            var any = everything
            var rows = 0
            // Stop when the rows exclude nothing that the other words include.
            while all & ~any != 0, rows < left, try statement.step() {
                any |= statement.int(0)
                rows += 1
            }
            // A lookup that finds nothing counts too.
            budget.take(rows: max(rows, 1))
            left -= max(rows, 1)
            // A lookup cut short by the limit excludes no block.
            if left > 0 { all &= any }
            if all == 0 { break }
        }
        return all
    }

    /// Returns the blocks or parts of one word of the index.
    func mask(
        of word: [UInt8],
        in chat: ChatKey,
        _ scale: SearchIndex.Scale,
        _ part: Int64
    ) throws -> Int64 {
        let statement = store.search.mask
        defer { statement.reset() }
        statement.bind(1, chat.rawValue)
        statement.bind(2, scale.rawValue)
        statement.bind(3, part)
        statement.bindBlob(4, word)
        return try statement.step() ? statement.int(0) : 0
    }

    /// Returns the last indexed part of a chat, and the last ids of its blocks.
    func lastIndexedPart(of chat: ChatKey) throws -> (part: Int64, ends: BlockEnds)? {
        let statement = store.search.lastPart
        defer { statement.reset() }
        statement.bind(1, chat.rawValue)
        guard try statement.step() else { return nil }
        return (statement.int(0), BlockEnds(bytes: statement.bytes(1)))
    }

    func ends(of part: Int64, in chat: ChatKey) throws -> BlockEnds {
        let statement = store.search.part
        defer { statement.reset() }
        statement.bind(1, chat.rawValue)
        statement.bind(2, part)
        return BlockEnds(bytes: try statement.step() ? statement.bytes(0) : [])
    }

    /// Returns the id of the last message before a part.
    func end(before part: Int64, in chat: ChatKey) throws -> MessageID {
        part == 0 ? MessageID(0) : try ends(of: part - 1, in: chat).last
    }

    // MARK: - Read marks

    /// Returns, for each of some times, the number of members of a big chat whose read mark is not
    /// below it. It includes members who hide their mark, and counts at most `maxCountedReaders`.
    ///
    /// - Parameter times: Unix milliseconds, ascending.
    package func readerCounts(inBig chat: ChatKey, notBelow times: [Int64]) throws -> [Int] {
        let statement = store.members.readersOfBig
        statement.bind(1, chat.rawValue)
        var count = 0
        var end = Int64.max
        // Each read mark is counted once: between its time and the next one.
        let counts = try times.reversed().map { time in
            defer { statement.reset() }
            statement.bind(2, time)
            statement.bind(3, end)
            statement.bind(4, limits.maxCountedReaders - count)
            count += try statement.step() ? statement.count(0) : 0
            end = time
            return count
        }
        store.noteCounted(count)
        return counts.reversed()
    }
}

extension SearchPage {
    /// Returns the number of messages above an id, counted up to `most`.
    fileprivate func count(above id: MessageID, atMost most: Int) -> Int {
        var count = 0
        while count < min(most, messages.count), messages[count].record.id > id { count += 1 }
        return count
    }

    /// Inserts messages, keeping the newest first.
    fileprivate mutating func insert(_ hits: [SearchHit]) {
        guard !hits.isEmpty else { return }
        messages += hits
        messages.sort { ($0.record.id, $0.record.chat) > ($1.record.id, $1.record.chat) }
    }

    /// Returns a page of at most `limit` messages, plus all that share the last one's id: the next
    /// page's marker is only an id.
    fileprivate func cut(to limit: Int) -> SearchPage {
        guard messages.count > limit, limit > 0 else { return self }
        let last = messages[limit - 1].record.id
        let end = messages[limit...].firstIndex { $0.record.id != last } ?? messages.count
        guard end < messages.count else { return self }
        var page = SearchPage()
        page.messages = Array(messages[..<end])
        page.next = last
        return page
    }
}

extension [ChatSearch] {
    /// Moves the first search down to its position in the heap.
    fileprivate mutating func sink() {
        var index = 0
        while true {
            var newest = index
            for child in [2 * index + 1, 2 * index + 2]
            where child < count && self[child].position > self[newest].position { newest = child }
            guard newest != index else { return }
            swapAt(index, newest)
            index = newest
        }
    }
}

extension MessageID? {
    /// The highest id of a page below this marker; ids are above zero.
    fileprivate var top: MessageID {
        guard let marker = self else { return MessageID(.max) }
        return Swift.max(marker, MessageID(1)).before
    }
}

extension MessageID {
    /// The marker of a page that starts with this id.
    fileprivate var marker: MessageID? { self < MessageID(.max) ? next : nil }
}

extension Packed<MessageLink> {
    /// The text that a forward shows.
    var shownText: Text {
        stored?.message.text ?? .empty
    }
}

extension MessageRecord {
    /// The words by which the message is found.
    var searchWords: Set<[UInt8]> {
        guard status != .removed else { return [] }
        var words = SearchWords.words(of: text)
        if let forward { SearchWords.collect(forward.shownText, into: &words) }
        return words
    }

    /// The message's own attachments and those of the message it forwards.
    package var shownAttaches: [Attach] {
        [attaches, forward?.stored?.message.attaches].compactMap { $0?.stored }.flatMap { $0 }
    }
}
