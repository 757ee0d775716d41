import TambourProtocol
import TambourSQL

/// What the index of words has still to do; kept between batches, and right whatever becomes of
/// them: each step looks at what is stored.
struct SearchBacklog {
    /// Chats of which messages wait.
    var chats: Set<ChatKey> = []
    /// Chats above this key have not been looked at since the start; nil when all have.
    var sweptTo: ChatKey? = ChatKey(.min)
}

extension WriteTransaction {
    /// Messages that one step of `indexWords` takes: 3 to 6 ms of the engine's time, for which others wait.
    private static let messagesPerStep: Int64 = 64
    /// Chats that it looks at when it knows of none.
    private static let chatsPerStep = 256

    /// Whether `indexWords` may find something to do.
    package var hasWordsToIndex: Bool {
        !searchBacklog.chats.isEmpty || searchBacklog.sweptTo != nil
    }

    /// Brings the index of words forward by a step; called when the engine has time.
    package func indexWords() throws {
        try flushMessages()
        if searchBacklog.chats.isEmpty { try sweep() }
        var left = Self.messagesPerStep
        while left > 0, let chat = searchBacklog.chats.first {
            let (taken, isDone) = try index(chat, atMost: left)
            left -= max(taken, 1)
            if isDone { searchBacklog.chats.remove(chat) }
        }
    }

    /// Finds chats whose messages wait: those of before the index, or of before a crash.
    private func sweep() throws {
        guard let after = searchBacklog.sweptTo else { return }
        let statement = store.search.chatsAfter
        statement.bind(1, after.rawValue)
        statement.bind(2, Int64(Self.chatsPerStep))
        var chats: [ChatKey] = []
        while try statement.step() { chats.append(ChatKey(statement.int(0))) }
        statement.reset()
        searchBacklog.sweptTo = chats.count < Self.chatsPerStep ? nil : chats.last
        for chat in chats {
            let waiting = try reader.head(of: chat).number - indexedMessages(of: chat)
            if waiting >= SearchIndex.step { searchBacklog.chats.insert(chat) }
        }
    }

    /// How many messages of a chat are indexed, from its first on.
    private func indexedMessages(of chat: ChatKey) throws -> Int64 {
        guard let last = try reader.lastIndexedPart(of: chat) else { return 0 }
        return last.part * SearchIndex.partMessages
            + Int64(last.ends.count) * SearchIndex.blockMessages
    }

    /// Indexes whole blocks behind those that are, within one part.
    ///
    /// - Returns: how many messages were taken, and whether none is left that makes a block.
    private func index(_ chat: ChatKey, atMost limit: Int64) throws -> (Int64, isDone: Bool) {
        let indexed = try indexedMessages(of: chat)
        let waiting = try reader.head(of: chat).number - indexed
        let part = indexed / SearchIndex.partMessages
        let room = (part + 1) * SearchIndex.partMessages - indexed
        let count =
            min(waiting, room, max(limit, SearchIndex.blockMessages)) / SearchIndex.blockMessages
            * SearchIndex.blockMessages
        guard count > 0 else { return (0, true) }
        writes += 1
        var ends = try reader.ends(of: part, in: chat)
        let start = ends.count > 0 ? ends.last : try reader.end(before: part, in: chat)
        let (masks, last) = try masks(of: chat, after: start, count: count)
        // Of rows whose numbers have gaps no block may be complete: the same step would be next for ever.
        guard !last.isEmpty else { return (0, true) }
        for end in last { ends.append(end) }
        store.search.putPart.bind(1, chat.rawValue)
        store.search.putPart.bind(2, part)
        store.search.putPart.bindBlob(3, ends.bytes)
        try store.search.putPart.run()
        try add(masks, to: part, of: chat)
        if ends.isComplete { try complete(part, of: chat) }
        return (count, waiting - count < SearchIndex.blockMessages)
    }

    /// The words of `count` messages after `start`, each with the mask of its blocks, and the last
    /// ids of those blocks.
    private func masks(
        of chat: ChatKey,
        after start: MessageID,
        upTo end: MessageID = MessageID(.max),
        count: Int64
    ) throws -> (masks: [[UInt8]: Int64], ends: [MessageID]) {
        let statement = store.search.range
        defer { statement.reset() }
        statement.bind(1, chat.rawValue)
        statement.bind(2, start.rawValue)
        statement.bind(3, end.rawValue)
        statement.bind(4, count)
        var words = BlockWords()
        var ends: [MessageID] = []
        while try statement.step() {
            let number = statement.int(1)
            let bit = SearchIndex.bit(SearchIndex.block(of: number))
            words.add(wordsAt: statement, to: bit)
            if number % SearchIndex.blockMessages == 0 { ends.append(MessageID(statement.int(0))) }
        }
        return (words.masks, ends)
    }

    private func add(_ masks: [[UInt8]: Int64], to part: Int64, of chat: ChatKey) throws {
        let words = masks.sorted { $0.key.lexicographicallyPrecedes($1.key) }
        for (word, mask) in words { try add(word, mask, .part, part, of: chat) }
    }

    /// Tells the area of a part's words, once it is complete: there are many, and each lies on another
    /// page of the index.
    private func complete(_ part: Int64, of chat: ChatKey) throws {
        let area = part / SearchIndex.fanOut
        let all = try words(of: part, in: chat)
        let words = all.count > SearchIndex.maxPartWords ? [SearchIndex.anyWord] : all
        for word in words { try add(word, SearchIndex.bit(part), .area, area, of: chat) }
    }

    /// The words of a part in the order of the index.
    private func words(of part: Int64, in chat: ChatKey) throws -> [[UInt8]] {
        let statement = store.search.wordsOfPart
        defer { statement.reset() }
        statement.bind(1, chat.rawValue)
        statement.bind(2, SearchIndex.Scale.part.rawValue)
        statement.bind(3, part)
        var words: [[UInt8]] = []
        while try statement.step() { words.append(statement.bytes(0)) }
        return words
    }

    private func add(
        _ word: [UInt8],
        _ mask: Int64,
        _ scale: SearchIndex.Scale,
        _ part: Int64,
        of chat: ChatKey
    ) throws {
        let statement = store.search.addWord
        statement.bind(1, chat.rawValue)
        statement.bind(2, scale.rawValue)
        statement.bind(3, part)
        statement.bindBlob(4, word)
        statement.bind(5, mask)
        try statement.run()
    }

    // MARK: - What was changed

    /// Takes the words of messages that are edited or removed out of the index, and puts those in that
    /// they have now. To be called before the rows are written.
    ///
    /// - Parameter new: what a single message becomes; nil when all are removed.
    func reindex(_ old: [MessageRecord], as new: MessageRecord?) throws {
        guard let chat = old.first?.chat else { return }
        let indexed = try indexedMessages(of: chat)
        let blocks = Dictionary(grouping: old.filter { $0.number <= indexed }) {
            SearchIndex.block(of: $0.number)
        }
        for (block, records) in blocks.sorted(by: { $0.key < $1.key }) {
            let changed = Set(records.map(\.id))
            let words = try words(of: block, in: chat, without: changed, with: new)
            try set(words.after, insteadOf: words.before, in: block, of: chat)
        }
    }

    /// The words of a block as they are, and as they will be.
    private func words(
        of block: Int64,
        in chat: ChatKey,
        without changed: Set<MessageID>,
        with new: MessageRecord?
    ) throws -> (before: Set<[UInt8]>, after: Set<[UInt8]>) {
        let part = block / SearchIndex.fanOut
        let index = block % SearchIndex.fanOut
        let ends = try reader.ends(of: part, in: chat)
        guard let end = ends.end(of: index) else {
            throw ImpossibleRow("search_part of chat \(chat.rawValue): part", part)
        }
        let start = try ends.end(of: index - 1) ?? reader.end(before: part, in: chat)
        let bit = SearchIndex.bit(block)
        let isAny = try reader.mask(of: SearchIndex.anyWord, in: chat, .part, part) & bit != 0
        // A block of an older store may have any number of words.
        var before = BlockWords(limit: isAny ? SearchIndex.maxBlockWords : .max)
        var after = BlockWords()
        let statement = store.search.range
        defer { statement.reset() }
        statement.bind(1, chat.rawValue)
        statement.bind(2, start.rawValue)
        statement.bind(3, end.rawValue)
        statement.bind(4, SearchIndex.blockMessages)
        while try statement.step() {
            before.add(wordsAt: statement, to: bit)
            if !changed.contains(MessageID(statement.int(0))) {
                after.add(wordsAt: statement, to: bit)
            }
        }
        for word in new?.searchWords ?? [] { after.add(word, to: bit) }
        return (Set(before.masks.keys), Set(after.masks.keys))
    }

    private func set(
        _ after: Set<[UInt8]>,
        insteadOf before: Set<[UInt8]>,
        in block: Int64,
        of chat: ChatKey
    ) throws {
        guard before != after else { return }
        let part = block / SearchIndex.fanOut
        let bit = SearchIndex.bit(block)
        let area = part / SearchIndex.fanOut
        let isComplete = try reader.ends(of: part, in: chat).isComplete
        for word in after.subtracting(before) {
            try add(word, bit, .part, part, of: chat)
            if isComplete { try add(word, SearchIndex.bit(part), .area, area, of: chat) }
        }
        for word in before.subtracting(after) where try clear(word, bit, .part, part, of: chat) {
            guard isComplete else { continue }
            _ = try clear(word, SearchIndex.bit(part), .area, area, of: chat)
        }
    }

    /// - Returns: true when the word is gone from these blocks altogether.
    private func clear(
        _ word: [UInt8],
        _ mask: Int64,
        _ scale: SearchIndex.Scale,
        _ part: Int64,
        of chat: ChatKey
    ) throws -> Bool {
        let clear = store.search.clearWord
        let drop = store.search.dropEmpty
        for statement in [clear, drop] {
            statement.bind(1, chat.rawValue)
            statement.bind(2, scale.rawValue)
            statement.bind(3, part)
            statement.bindBlob(4, word)
        }
        clear.bind(5, mask)
        try clear.run()
        return try drop.run() > 0
    }

    /// Indexes whole parts anew, after many of their messages were removed.
    ///
    /// - Parameter numbers: of messages that were removed.
    func rebuildIndex(of chat: ChatKey, around numbers: [Int64]) throws {
        guard let last = try reader.lastIndexedPart(of: chat) else { return }
        for part in Set(numbers.map { ($0 - 1) / SearchIndex.partMessages }).sorted()
        where part <= last.part {
            try rebuild(part, of: chat)
        }
    }

    /// Drops the words of everything up to message `number`, all of which was removed.
    func dropIndex(of chat: ChatKey, upTo number: Int64) throws {
        guard let last = try reader.lastIndexedPart(of: chat) else { return }
        let part = min(last.part, (number - 1) / SearchIndex.partMessages)
        let area = part / SearchIndex.fanOut
        for (scale, bound) in [(SearchIndex.Scale.part, part), (.area, area)] {
            let statement = store.search.dropBelow
            statement.bind(1, chat.rawValue)
            statement.bind(2, scale.rawValue)
            statement.bind(3, bound)
            try statement.run()
        }
        let mask = store.search.maskArea
        let drop = store.search.dropEmptyArea
        for statement in [mask, drop] {
            statement.bind(1, chat.rawValue)
            statement.bind(2, SearchIndex.Scale.area.rawValue)
            statement.bind(3, area)
        }
        // Of the area, the bits of this part and of those behind it stay.
        mask.bind(4, Int64(bitPattern: ~(UInt64(bitPattern: SearchIndex.bit(part)) &- 1)))
        try mask.run()
        try drop.run()
        try rebuild(part, of: chat)
    }

    private func rebuild(_ part: Int64, of chat: ChatKey) throws {
        let old = Set(try words(of: part, in: chat))
        let drop = store.search.dropPart
        drop.bind(1, chat.rawValue)
        drop.bind(2, SearchIndex.Scale.part.rawValue)
        drop.bind(3, part)
        try drop.run()
        let ends = try reader.ends(of: part, in: chat)
        let (masks, _) = try masks(
            of: chat,
            after: reader.end(before: part, in: chat),
            upTo: ends.last,
            count: SearchIndex.partMessages
        )
        try add(masks, to: part, of: chat)
        guard ends.isComplete else { return }
        let area = part / SearchIndex.fanOut
        for word in old.subtracting(masks.keys) {
            _ = try clear(word, SearchIndex.bit(part), .area, area, of: chat)
        }
        guard old.count > SearchIndex.maxPartWords else { return }
        // The area knew this part by `anyWord`.
        if masks.count <= SearchIndex.maxPartWords, masks[SearchIndex.anyWord] == nil {
            _ = try clear(SearchIndex.anyWord, SearchIndex.bit(part), .area, area, of: chat)
        }
        try complete(part, of: chat)
    }
}

/// The distinct words of the blocks of a part, each with the mask of its blocks.
private struct BlockWords {
    private let limit: Int
    private var found: [[UInt8]: Int64] = [:]
    private var counts = [Int64: Int]()
    /// The blocks with more words than are indexed.
    private var full: Int64 = 0
    private var word: [UInt8] = []

    /// - Parameter limit: how many words of a block are kept.
    init(limit: Int = SearchIndex.maxBlockWords) {
        self.limit = limit
    }

    /// What the index has of them.
    var masks: [[UInt8]: Int64] {
        guard full != 0 else { return found }
        var masks = found.compactMapValues { $0 & ~full == 0 ? nil : $0 & ~full }
        masks[SearchIndex.anyWord] = full
        return masks
    }

    /// Adds the words of the message at which a `range` statement stands.
    mutating func add(wordsAt statement: any SQLStatement, to bit: Int64) {
        guard full & bit == 0 else { return }
        add(statement.borrowedBytes(2), to: bit)
        guard !statement.isNull(3) else { return }
        let forward = Packed<MessageLink>(unchecked: Bytes(statement.bytes(3)))
        forward.shownText.bytes.withUnsafeBytes { add($0, to: bit) }
    }

    mutating func add(_ word: [UInt8], to bit: Int64) {
        guard full & bit == 0, found[word, default: 0] & bit == 0 else { return }
        counts[bit, default: 0] += 1
        if counts[bit, default: 0] > limit {
            full |= bit
        } else {
            found[word, default: 0] |= bit
        }
    }

    private mutating func add(_ utf8: UnsafeRawBufferPointer, to bit: Int64) {
        var word = word
        SearchWords.scan(utf8, into: &word) {
            add($0, to: bit)
            return full & bit == 0
        }
        self.word = word
    }
}
