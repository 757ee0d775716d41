package import TambourProtocol
import TambourSQL

enum SearchPartColumn: Int, SQLColumn {
    case part, ends
}

enum BlockEndsColumn: Int, SQLColumn {
    case ends
}

enum BlocksColumn: Int, SQLColumn {
    case blocks
}

enum WordBlocksColumn: Int, SQLColumn {
    case word, blocks
}

enum IndexedMessageColumn: Int, SQLColumn {
    case id, n, text, forward
}

enum StaleBlockColumn: Int, SQLColumn {
    case chat, block
}

/// The newest message with an id of at most `$2` in the chat of the member `m`.
enum NewestMessageColumn: Int, SQLColumn {
    case newest

    var sql: String {
        """
        (SELECT x.id FROM message x WHERE x.chat = m.chat AND x.id <= $2
         ORDER BY x.id DESC LIMIT 1) AS newest
        """
    }
}

struct SearchStatements {
    let lastPart: SQLQuery<SearchPartColumn>
    let part: SQLQuery<BlockEndsColumn>
    let putPart: any SQLStatement
    let mask: any SQLStatement
    let masks: SQLQuery<BlocksColumn>
    let messages: SQLQuery<ScannedMessageColumn>
    let range: SQLQuery<IndexedMessageColumn>
    let addWord: any SQLStatement
    let clearWord: any SQLStatement
    let dropEmpty: any SQLStatement
    let setWord: any SQLStatement
    let dropWord: any SQLStatement
    let wordsOfPart: SQLQuery<WordColumn>
    let wordsOfBlocks: SQLQuery<WordBlocksColumn>
    let putStale: any SQLStatement
    let nextStale: SQLQuery<StaleBlockColumn>
    let dropStale: any SQLStatement
    let dropBelow: any SQLStatement
    let maskArea: any SQLStatement
    let dropEmptyArea: any SQLStatement
    let chatsOf: SQLQuery<SQLPair<ChatViewColumn, NewestMessageColumn>>
    let chatsAfter: SQLQuery<IDColumn>

    init(_ sql: any SQLConnection) throws {
        lastPart = try sql.query(
            """
            SELECT \(SearchPartColumn.list) FROM search_part WHERE chat = $1
            ORDER BY part DESC LIMIT 1
            """
        )
        part = try sql.query(
            "SELECT \(BlockEndsColumn.list) FROM search_part WHERE chat = $1 AND part = $2"
        )
        putPart = try sql.prepare(
            """
            INSERT INTO search_part (chat, part, ends) VALUES ($1, $2, $3)
            ON CONFLICT (chat, part) DO UPDATE SET ends = excluded.ends
            """
        )
        let word = "chat = $1 AND scale = $2 AND part = $3"
        mask = try sql.prepare("SELECT blocks FROM search_word WHERE \(word) AND word = $4")
        masks = try sql.query(
            """
            SELECT \(BlocksColumn.list) FROM search_word
            WHERE \(word) AND word >= $4 AND word < $5 LIMIT $6
            """
        )
        messages = try sql.query(
            """
            SELECT \(MessageColumn.list(of: "m")), \(IsHiddenColumn.list) FROM message m
            WHERE m.chat = $1 AND m.id <= $3 AND m.id > $4 ORDER BY m.id DESC LIMIT $5
            """
        )
        range = try sql.query(
            """
            SELECT \(IndexedMessageColumn.list) FROM message
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
        wordsOfPart = try sql.query("SELECT \(WordColumn.list) FROM search_word WHERE \(word)")
        wordsOfBlocks = try sql.query(
            """
            SELECT \(WordBlocksColumn.list) FROM search_word
            WHERE \(word) AND blocks & CAST($4 AS bigint) <> 0
            """
        )
        putStale = try sql.prepare(
            "INSERT INTO search_stale (chat, block) VALUES ($1, $2) ON CONFLICT DO NOTHING"
        )
        nextStale = try sql.query(
            """
            SELECT \(StaleBlockColumn.list) FROM search_stale WHERE chat >= $1
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
        chatsOf = try sql.query(
            """
            SELECT \(ChatViewColumn.list), \(NewestMessageColumn.list)
            FROM (SELECT * FROM member WHERE user_id = $1 ORDER BY ct DESC LIMIT $3) m
              JOIN chat c ON c.id = m.chat
            """
        )
        chatsAfter = try sql.query(
            """
            SELECT \(IDColumn.list) FROM chat WHERE id > $1 AND kind <> \(ChatKind.comments.rawValue)
            ORDER BY id LIMIT $2
            """
        )
    }
}

/// A found message, and its chat as the caller sees it.
package struct SearchHit: Sendable {
    package let record: MessageRecord
    package let view: ChatView
}

/// A page of search results, the newest first.
package struct SearchPage: Sendable {
    package var messages: [SearchHit] = []
    /// The id below which the next page starts; nil if there is no next page. If a search spends
    /// its budget, the page has this id even if the search found no messages.
    package var next: MessageID?

    package init() {}
}

extension ReadTransaction {
    /// Returns the newest messages of a chat that match `query` and have ids below `marker`.
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

    /// Searches the chats of a user, but at most `maxSearchedChats` of them.
    ///
    /// Each step continues the search in the chat that has the newest remaining message. Therefore,
    /// when the search stops, it has found all results that are newer than the newest remaining
    /// message.
    package func search(
        _ query: SearchQuery,
        for user: UserID,
        below marker: MessageID?,
        limit: Int
    ) throws -> SearchPage {
        var budget = ScanBudget(limits)
        var match = SearchQuery.Match(query)
        // A heap. Its first element is the search of the chat with the newest remaining message.
        var searches = try chats(of: user, from: marker.top, query)
        let start = searches.first?.position
        var page = SearchPage()
        while let first = searches.first {
            let isEnough = page.count(above: first.position, atMost: limit + 1) > limit
            // Advance by at least one message. Otherwise the next page would start at the same
            // position.
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

    /// Returns the searches of a user's chats. The search of the chat with the newest message comes
    /// first.
    private func chats(
        of user: UserID,
        from top: MessageID,
        _ query: SearchQuery
    ) throws -> [ChatSearch] {
        var searches: [ChatSearch] = []
        try store.search.chatsOf.each {
            $0.bind(1, user.rawValue)
            $0.bind(2, top.rawValue)
            $0.bind(3, Int64(limits.maxSearchedChats))
        } do: { row in
            guard let newest = row.optionalInt(.second(.newest)) else { return }
            let view = ChatView(row: row.first())
            let search = ChatSearch(query: query, view: view, from: MessageID(newest))
            if !search.isDone { searches.append(search) }
        }
        return searches.sorted { $0.position > $1.position }
    }

    /// Returns the mask of the blocks or parts that may contain all words of the query.
    ///
    /// The mask may include blocks without a match. An exact mask would need more reads of rows
    /// than the messages themselves.
    func mask(
        of query: SearchQuery,
        in chat: ChatKey,
        _ scale: SearchIndex.Scale,
        _ part: Int64,
        _ budget: inout ScanBudget
    ) throws -> Int64 {
        var all: Int64 = -1
        let everything = try mask(of: SearchIndex.anyWord, in: chat, scale, part)
        budget.take(rows: 1)
        // Keep most of the budget for messages, because a page that reads only the index makes no
        // progress.
        var left = budget.share(atMost: min(SearchIndex.maskRows, limits.maxScannedRows / 8))
        for word in query.rarestFirst where left > 0 {
            var any = everything
            var rows = 0
            // Continue only while `any` excludes a block that `all` still includes.
            if all & ~any != 0 {
                try store.search.masks.each {
                    $0.bind(1, chat.rawValue)
                    $0.bind(2, scale.rawValue)
                    $0.bind(3, part)
                    $0.bindBlob(4, word)
                    $0.bindBlob(5, SearchIndex.end(ofPrefix: word))
                    $0.bind(6, Int64(left))
                } while: {
                    any |= $0.int(.blocks)
                    rows += 1
                    return all & ~any != 0 && rows < left
                }
            }
            // A lookup without results also counts as one row.
            budget.take(rows: max(rows, 1))
            left -= max(rows, 1)
            // If the limit ended the lookup early, the lookup cannot exclude blocks.
            if left > 0 { all &= any }
            if all == 0 { break }
        }
        return all
    }

    /// Returns the mask of the blocks or parts that contain one word according to the index.
    func mask(
        of word: [UInt8],
        in chat: ChatKey,
        _ scale: SearchIndex.Scale,
        _ part: Int64
    ) throws -> Int64 {
        try store.search.mask.oneInt {
            $0.bind(1, chat.rawValue)
            $0.bind(2, scale.rawValue)
            $0.bind(3, part)
            $0.bindBlob(4, word)
        } ?? 0
    }

    /// Returns the last indexed part of a chat, and the last id of each block in this part.
    func lastIndexedPart(of chat: ChatKey) throws -> (part: Int64, ends: BlockEnds)? {
        try store.search.lastPart.one {
            $0.bind(1, chat.rawValue)
        } read: {
            ($0.int(.part), BlockEnds(bytes: $0.bytes(.ends)))
        }
    }

    func ends(of part: Int64, in chat: ChatKey) throws -> BlockEnds {
        try store.search.part.one {
            $0.bind(1, chat.rawValue)
            $0.bind(2, part)
        } read: {
            BlockEnds(bytes: $0.bytes(.ends))
        } ?? BlockEnds(bytes: [])
    }

    /// Returns the id of the last message before a part.
    func end(before part: Int64, in chat: ChatKey) throws -> MessageID {
        part == 0 ? MessageID(0) : try ends(of: part - 1, in: chat).last
    }

    // MARK: - Read marks

    /// Returns, for each time, the number of members of a big chat whose read mark is at or after
    /// this time. Includes members who hide their mark. Each number is at most `maxCountedReaders`.
    ///
    /// - Parameter times: Unix milliseconds, ascending.
    package func readerCounts(inBig chat: ChatKey, notBelow times: [Int64]) throws -> [Int] {
        let statement = store.members.readersOfBig
        var count = 0
        var end = Int64.max
        // Counts each read mark once, in the interval that contains it, and adds up the intervals.
        let counts = try times.reversed().map { time in
            count += try statement.oneCount {
                $0.bind(1, chat.rawValue)
                $0.bind(2, time)
                $0.bind(3, end)
                $0.bind(4, limits.maxCountedReaders - count)
            }
            end = time
            return count
        }
        store.noteCounted(count)
        return counts.reversed()
    }
}

extension SearchPage {
    /// Returns the number of messages with ids above `id`, but at most `most`.
    fileprivate func count(above id: MessageID, atMost most: Int) -> Int {
        var count = 0
        while count < min(most, messages.count), messages[count].record.id > id { count += 1 }
        return count
    }

    /// Inserts messages. The newest message stays the first.
    fileprivate mutating func insert(_ hits: [SearchHit]) {
        guard !hits.isEmpty else { return }
        messages += hits
        messages.sort { ($0.record.id, $0.record.chat) > ($1.record.id, $1.record.chat) }
    }

    /// Returns a page with the first `limit` messages. Also keeps all further messages with the
    /// same id as the last message, because the marker of the next page is only an id.
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
    /// The highest possible id on a page below this marker. Ids are positive.
    fileprivate var top: MessageID {
        guard let marker = self else { return MessageID(.max) }
        return Swift.max(marker, MessageID(1)).before
    }
}

extension MessageID {
    /// The marker for a page whose first message has this id.
    fileprivate var marker: MessageID? { self < MessageID(.max) ? next : nil }
}

extension Packed<MessageLink> {
    /// The text of the forwarded message.
    var shownText: Text {
        stored?.message.text ?? .empty
    }
}

extension MessageRecord {
    /// The words by which search finds the message.
    var searchWords: Set<[UInt8]> {
        guard status != .removed else { return [] }
        var words = SearchWords.words(of: text)
        if let forward { SearchWords.collect(forward.shownText, into: &words) }
        return words
    }

    /// The attachments of the message and of the message that it forwards.
    package var shownAttaches: [Attach] {
        [attaches, forward?.stored?.message.attaches].compactMap { $0?.stored }.flatMap { $0 }
    }
}
