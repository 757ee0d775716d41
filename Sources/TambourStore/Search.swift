package import TambourProtocol
import TambourSQL

/// The index of words: which blocks of a chat's messages hold which.
///
/// Messages are numbered without a gap in their chat. 16 make a block, 64 blocks a part, 64 parts an
/// area. For each word of a part the index has a mask of its blocks, and for each word of an area a
/// mask of its complete parts; a message itself is read to see whether it is meant. So the index may know of
/// fewer messages than there are, which is what lets it follow when the engine has time: what is
/// behind it is looked through. What was removed or edited leaves it at once.
enum SearchIndex {
    static let blockMessages: Int64 = 16
    /// Blocks of a part, and parts of an area: the bits of a mask.
    static let fanOut: Int64 = 64
    static let partMessages = blockMessages * fanOut
    /// A chat is indexed when so many of its messages wait.
    static let step: Int64 = 64

    /// Which rows a mask belongs to; the raw values are those of the column `scale`.
    enum Scale: Int64 {
        /// A bit is a block of a part.
        case part = 0
        /// A bit is a part of an area.
        case area = 1
    }

    /// The block of a message, counted from the chat's beginning.
    static func block(of number: Int64) -> Int64 { (number - 1) / blockMessages }

    static func bit(_ index: Int64) -> Int64 { Int64(bitPattern: 1 << UInt64(index % fanOut)) }

    /// The first bytes that sort after everything that begins with `word`; UTF-8 has no 0xFF.
    static func end(ofPrefix word: [UInt8]) -> [UInt8] {
        var end = word
        end[end.count - 1] += 1
        return end
    }
}

struct SearchStatements {
    let lastPart: any SQLStatement
    let part: any SQLStatement
    let putPart: any SQLStatement
    let masks: any SQLStatement
    let messages: any SQLStatement
    let range: any SQLStatement
    let addWord: any SQLStatement
    let clearWord: any SQLStatement
    let dropEmpty: any SQLStatement
    let wordsOfPart: any SQLStatement
    let dropPart: any SQLStatement
    let dropBelow: any SQLStatement
    let maskArea: any SQLStatement
    let dropEmptyArea: any SQLStatement
    let chatsOf: any SQLStatement
    let chatsAfter: any SQLStatement
    let attached: any SQLStatement
    let attachedAfter: any SQLStatement

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
        masks = try sql.prepare(
            "SELECT blocks FROM search_word WHERE \(word) AND word >= $4 AND word < $5"
        )
        let visible = """
            FROM message m
            WHERE m.chat = $1 AND m.id <= $3 AND m.id > $4 AND m.status <> 2
              AND NOT EXISTS (
                SELECT 1 FROM message_hidden h
                WHERE h.user_id = $2 AND h.chat = m.chat AND h.message = m.id
              )
            """
        messages = try sql.prepare(
            "SELECT \(MessageStatements.columns) \(visible) ORDER BY m.id DESC"
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
        wordsOfPart = try sql.prepare("SELECT word FROM search_word WHERE \(word)")
        dropPart = try sql.prepare("DELETE FROM search_word WHERE \(word)")
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
              (SELECT x.id FROM message x WHERE x.chat = m.chat ORDER BY x.id DESC LIMIT 1) AS newest
            FROM member m JOIN chat c ON c.id = m.chat
            WHERE m.user_id = $1
            """
        )
        chatsAfter = try sql.prepare("SELECT id FROM chat WHERE id > $1 ORDER BY id LIMIT $2")
        let carries = "(m.attaches IS NOT NULL OR m.forward IS NOT NULL)"
        attached = try sql.prepare(
            "SELECT \(MessageStatements.columns) \(visible) AND \(carries) ORDER BY m.id DESC"
        )
        attachedAfter = try sql.prepare(
            "SELECT \(MessageStatements.columns) \(visible) AND \(carries) ORDER BY m.id"
        )
    }
}

/// A message that was found, and the chat as the asking user has it.
package struct SearchHit: Sendable {
    package let record: MessageRecord
    package let view: ChatView
}

/// What was found, newest first.
package struct SearchPage: Sendable {
    package var messages: [SearchHit] = []
    /// The id below which the next page begins; nil at the end.
    package var next: MessageID?

    package init() {}
}

extension ReadTransaction {
    /// The newest messages below `marker` in which the words of `query` occur, of one chat.
    package func search(
        _ query: SearchQuery,
        in view: ChatView,
        below marker: MessageID?,
        limit: Int
    ) throws -> SearchPage {
        var page = SearchPage()
        page.messages = try matches(query, in: view, below: marker, limit: limit + 1)
        return page.cut(to: limit)
    }

    /// The same in all chats of a user.
    ///
    /// Chats are looked through in the order of their newest messages, until what is found is newer
    /// than whatever the others may hold.
    package func search(
        _ query: SearchQuery,
        for user: UserID,
        below marker: MessageID?,
        limit: Int
    ) throws -> SearchPage {
        var page = SearchPage()
        for (view, newest) in try chatsByNewest(of: user) {
            let last = page.messages.count > limit ? page.messages[limit].record.id : nil
            if let last, last > newest { break }
            let found = try matches(
                query,
                in: view,
                below: marker,
                limit: limit + 1,
                // Older ones than the page holds need not be looked for; those of its last id do.
                above: last?.before
            )
            guard !found.isEmpty else { continue }
            page.messages += found
            page.messages.sort {
                ($0.record.id, $0.record.chat) > ($1.record.id, $1.record.chat)
            }
        }
        return page.cut(to: limit)
    }

    private func chatsByNewest(of user: UserID) throws -> [(view: ChatView, newest: MessageID)] {
        let statement = store.search.chatsOf
        defer { statement.reset() }
        statement.bind(1, user.rawValue)
        var chats: [(view: ChatView, newest: MessageID)] = []
        while try statement.step() {
            guard !statement.isNull(ChatStatements.viewColumnCount) else { continue }
            chats.append(
                (ChatView(row: statement), MessageID(statement.int(ChatStatements.viewColumnCount)))
            )
        }
        return chats.sorted { $0.newest > $1.newest }
    }

    // MARK: - One chat

    private func matches(
        _ query: SearchQuery,
        in view: ChatView,
        below marker: MessageID?,
        limit: Int,
        above: MessageID? = nil
    ) throws -> [SearchHit] {
        let floor = max(view.floor, above ?? MessageID(0))
        let top = marker?.before ?? MessageID(.max)
        guard limit > 0, top > floor else { return [] }
        var search = ChatSearch(query: query, view: view, top: top, floor: floor, limit: limit)
        // What the index does not know yet.
        guard let last = try lastIndexedPart(of: view.key) else {
            try search.read(after: floor, upTo: top, in: self)
            return search.found
        }
        guard try search.read(after: last.ends.last, upTo: top, in: self) else {
            return search.found
        }
        var areas = last.part / SearchIndex.fanOut
        while areas >= 0 {
            let first = areas * SearchIndex.fanOut
            // In a short chat the parts themselves are asked: one look less.
            var parts =
                last.part < 4
                ? -1 : try mask(of: query, in: view.key, .area, areas)
            // An area knows of complete parts only.
            if areas == last.part / SearchIndex.fanOut { parts |= SearchIndex.bit(last.part) }
            var part = min(last.part, first + SearchIndex.fanOut - 1)
            while part >= first {
                defer { part -= 1 }
                guard parts & SearchIndex.bit(part) != 0 else { continue }
                let blocks = try mask(of: query, in: view.key, .part, part)
                guard blocks != 0 else { continue }
                let ends = part == last.part ? last.ends : try ends(of: part, in: view.key)
                guard try search.read(blocks, of: part, ends: ends, in: self) else {
                    return search.found
                }
            }
            areas -= 1
        }
        return search.found
    }

    /// In which blocks or parts all words of the query may occur.
    private func mask(
        of query: SearchQuery,
        in chat: ChatKey,
        _ scale: SearchIndex.Scale,
        _ part: Int64
    ) throws -> Int64 {
        let statement = store.search.masks
        defer { statement.reset() }
        var all: Int64 = -1
        for word in query.words {
            statement.reset()
            statement.bind(1, chat.rawValue)
            statement.bind(2, scale.rawValue)
            statement.bind(3, part)
            statement.bindBlob(4, word)
            statement.bindBlob(5, SearchIndex.end(ofPrefix: word))
            var any: Int64 = 0
            // Full as soon as it tells no more than the other words do.
            while all & ~any != 0, try statement.step() { any |= statement.int(0) }
            all &= any
            if all == 0 { break }
        }
        return all
    }

    /// How far a chat is indexed: its last part, and the last ids of the blocks in it.
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

    /// The id of the last message before a part.
    func end(before part: Int64, in chat: ChatKey) throws -> MessageID {
        part == 0 ? MessageID(0) : try ends(of: part - 1, in: chat).last
    }

    // MARK: - Read marks

    /// The read marks of the members of a big chat that are not below `bound`, rising, Unix
    /// milliseconds; those of who hides them too.
    package func readTimes(inBig chat: ChatKey, notBelow bound: Int64) throws -> [Int64] {
        let statement = store.members.readTimesOfBig
        defer { statement.reset() }
        statement.bind(1, chat.rawValue)
        statement.bind(2, bound)
        var times: [Int64] = []
        while try statement.step() { times.append(statement.int(0)) }
        return times
    }

    // MARK: - Attachments

    /// Messages with attachments that `isWanted` takes, `backward` at or before `from` and `forward`
    /// after it, oldest first.
    package func attached(
        in view: ChatView,
        from: MessageID,
        backward: Int,
        forward: Int,
        _ isWanted: (Attach) -> Bool
    ) throws -> [MessageRecord] {
        func read(
            _ statement: any SQLStatement,
            _ limit: Int,
            after: MessageID,
            upTo: MessageID
        ) throws -> [MessageRecord] {
            guard limit > 0, upTo > after else { return [] }
            defer { statement.reset() }
            statement.bind(1, view.key.rawValue)
            statement.bind(2, view.viewer.rawValue)
            statement.bind(3, upTo.rawValue)
            statement.bind(4, after.rawValue)
            var found: [MessageRecord] = []
            while found.count < limit, try statement.step() {
                let record = MessageRecord(row: statement)
                if record.shownAttaches.contains(where: isWanted) { found.append(record) }
            }
            return found
        }
        let older = try read(store.search.attached, backward, after: view.floor, upTo: from)
        let newer = try read(
            store.search.attachedAfter,
            forward,
            after: max(from, view.floor),
            upTo: MessageID(.max)
        )
        return older.reversed() + newer
    }
}

extension SearchPage {
    /// A page of at most `limit` messages, and one more for each that shares the last one's id: ids
    /// are all that the next page knows.
    fileprivate func cut(to limit: Int) -> SearchPage {
        guard messages.count > limit, limit > 0 else { return self }
        let last = messages[limit - 1].record.id
        let end = messages[limit...].firstIndex { $0.record.id != last } ?? messages.count
        var page = SearchPage()
        page.messages = Array(messages[..<end])
        page.next = end < messages.count ? last : nil
        return page
    }
}

/// A walk through one chat, newest message first.
private struct ChatSearch {
    private(set) var found: [SearchHit] = []
    private let view: ChatView
    private let top: MessageID
    private let floor: MessageID
    private let limit: Int
    private var match: SearchQuery.Match

    init(query: SearchQuery, view: ChatView, top: MessageID, floor: MessageID, limit: Int) {
        self.view = view
        self.top = top
        self.floor = floor
        self.limit = limit
        match = SearchQuery.Match(query)
    }

    /// Reads the blocks of a mask.
    ///
    /// - Returns: false when there is no need to go on.
    mutating func read(
        _ blocks: Int64,
        of part: Int64,
        ends: BlockEnds,
        in snapshot: ReadTransaction
    ) throws -> Bool {
        var block = ends.count - 1
        while block >= 0 {
            guard blocks & SearchIndex.bit(Int64(block)) != 0 else {
                block -= 1
                continue
            }
            // Blocks beside each other are one range.
            let last = block
            while block > 0, blocks & SearchIndex.bit(Int64(block - 1)) != 0 { block -= 1 }
            let before =
                block > 0
                ? ends[block - 1] : try snapshot.end(before: part, in: view.key)
            guard try read(after: before, upTo: ends[last], in: snapshot) else { return false }
            block -= 1
        }
        return true
    }

    /// Reads a range of messages.
    ///
    /// - Returns: false when there is no need to go on.
    @discardableResult
    mutating func read(
        after: MessageID,
        upTo: MessageID,
        in snapshot: ReadTransaction
    ) throws -> Bool {
        let (after, upTo) = (max(after, floor), min(upTo, top))
        guard upTo > after else { return upTo > floor }
        let statement = snapshot.store.search.messages
        defer { statement.reset() }
        statement.bind(1, view.key.rawValue)
        statement.bind(2, view.viewer.rawValue)
        statement.bind(3, upTo.rawValue)
        statement.bind(4, after.rawValue)
        while try statement.step() {
            match.restart()
            match.read(statement.borrowedBytes(9))
            if !match.isComplete, !statement.isNull(12) {
                let forward = Packed<MessageLink>(unchecked: Bytes(statement.bytes(12)))
                forward.shownText.bytes.withUnsafeBytes { match.read($0) }
            }
            guard match.isComplete else { continue }
            found.append(SearchHit(record: MessageRecord(row: statement), view: view))
            if found.count == limit { return false }
        }
        return after > floor
    }
}

/// The last ids of the blocks of a part, oldest first, eight bytes each.
struct BlockEnds {
    private(set) var bytes: [UInt8]

    var count: Int { bytes.count / 8 }
    /// Whether no block is missing any more.
    var isComplete: Bool { count == SearchIndex.fanOut }
    /// Of the part's last block; 0 when it has none.
    var last: MessageID { count == 0 ? MessageID(0) : self[count - 1] }

    subscript(block: Int) -> MessageID {
        MessageID(bytes[block * 8..<block * 8 + 8].reduce(0) { $0 << 8 | Int64($1) })
    }

    mutating func append(_ id: MessageID) {
        withUnsafeBytes(of: id.rawValue.bigEndian) { bytes += $0 }
    }
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

    /// What it carries itself, or what it forwards carries.
    package var shownAttaches: [Attach] {
        [attaches, forward?.stored?.message.attaches].compactMap { $0?.stored }.flatMap { $0 }
    }
}
