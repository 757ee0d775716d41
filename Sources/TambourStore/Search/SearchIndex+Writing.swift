import TambourProtocol
import TambourSQL

/// The pending work of the word index. It is kept between batches. It stays valid even if a batch
/// fails, because each step starts from the stored data.
struct SearchBacklog {
    /// The chats with messages that are not indexed yet.
    var chats: Set<ChatKey> = []
    /// The key of the last chat that was scanned since the start of the server. Nil after all chats
    /// have been scanned.
    var sweptTo: ChatKey? = ChatKey(.min)
    /// Whether `search_stale` may contain rows.
    var mayHaveStale = true
}

extension WriteTransaction {
    /// The number of messages that one step of `indexWords` indexes. A step takes 3 to 6 ms of the
    /// engine's time, and other work waits during this time.
    private static let messagesPerStep: Int64 = 64
    /// The number of chats that one step scans when the backlog is empty.
    private static let chatsPerStep = 256

    /// Whether `indexWords` may have work to do.
    package var hasWordsToIndex: Bool {
        !searchBacklog.chats.isEmpty || searchBacklog.sweptTo != nil || searchBacklog.mayHaveStale
    }

    /// Runs one step of the word index. The engine calls this function when it is idle.
    package func indexWords() throws {
        try flushMessages()
        if searchBacklog.mayHaveStale {
            if try refreshIndex() { return }
            searchBacklog.mayHaveStale = false
        }
        if searchBacklog.chats.isEmpty { try sweep() }
        var left = Self.messagesPerStep
        while left > 0, let chat = searchBacklog.chats.first {
            let (taken, isDone) = try index(chat, atMost: left)
            left -= max(taken, 1)
            if isDone { searchBacklog.chats.remove(chat) }
        }
    }

    /// Scans some chats, and adds those with unindexed messages to the backlog. Such messages were
    /// sent before the last start of the server, or are older than the index.
    private func sweep() throws {
        guard let after = searchBacklog.sweptTo else { return }
        let chats = try store.search.chatsAfter.all {
            $0.bind(1, after.rawValue)
            $0.bind(2, Int64(Self.chatsPerStep))
        } read: {
            ChatKey($0.int(.id))
        }
        searchBacklog.sweptTo = chats.count < Self.chatsPerStep ? nil : chats.last
        for chat in chats {
            let waiting = try reader.head(of: chat).number - indexedMessages(of: chat)
            if waiting >= SearchIndex.step { searchBacklog.chats.insert(chat) }
        }
    }

    /// Returns the number of indexed messages of a chat. These are the first messages of the chat.
    private func indexedMessages(of chat: ChatKey) throws -> Int64 {
        guard let last = try reader.lastIndexedPart(of: chat) else { return 0 }
        return last.part * SearchIndex.partMessages
            + Int64(last.ends.count) * SearchIndex.blockMessages
    }

    /// Indexes the next complete blocks of a chat, all in one part.
    ///
    /// - Returns: the number of messages indexed, and whether less than one block remains.
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
        var words = BlockWords()
        let last = try read(&words, of: chat, after: start, count)
        // If message numbers have gaps, this step may not complete any block. Stop in this case,
        // because the step would otherwise repeat forever.
        guard !last.isEmpty else { return (0, true) }
        for end in last { ends.append(end) }
        try store.search.putPart.run {
            $0.bind(1, chat.rawValue)
            $0.bind(2, part)
            $0.bindBlob(3, ends.bytes)
        }
        try add(words.masks, to: part, of: chat)
        if ends.isComplete { try complete(part, of: chat) }
        return (count, waiting - count < SearchIndex.blockMessages)
    }

    /// Reads messages and collects the words of their blocks.
    ///
    /// - Returns: the last id of each completed block.
    private func read(
        _ words: inout BlockWords,
        of chat: ChatKey,
        after start: MessageID,
        upTo end: MessageID = MessageID(.max),
        _ count: Int64
    ) throws -> [MessageID] {
        var ends: [MessageID] = []
        try store.search.range.each {
            $0.bind(1, chat.rawValue)
            $0.bind(2, start.rawValue)
            $0.bind(3, end.rawValue)
            $0.bind(4, count)
        } do: { row in
            let number = row.int(.n)
            words.add(wordsOf: row, to: SearchIndex.bit(SearchIndex.block(of: number)))
            if number % SearchIndex.blockMessages == 0 { ends.append(MessageID(row.int(.id))) }
        }
        return ends
    }

    private func add(_ masks: [[UInt8]: Int64], to part: Int64, of chat: ChatKey) throws {
        let words = masks.sorted { $0.key.lexicographicallyPrecedes($1.key) }
        for (word, mask) in words { try add(word, mask, .part, part, of: chat) }
    }

    /// Adds the words of a complete part to its area. Words of an incomplete part are not added,
    /// because this would be slow. A part has many words, and each word changes a different page of
    /// the index. Every new block would repeat these changes.
    private func complete(_ part: Int64, of chat: ChatKey) throws {
        let all = try words(of: part, in: chat)
        let words = all.count > SearchIndex.maxPartWords ? [SearchIndex.anyWord] : all
        for word in words { try tellArea(word, of: part, in: chat) }
    }

    /// Returns the words of a part in the order of the index.
    private func words(of part: Int64, in chat: ChatKey) throws -> [[UInt8]] {
        try store.search.wordsOfPart.all {
            $0.bind(1, chat.rawValue)
            $0.bind(2, SearchIndex.Scale.part.rawValue)
            $0.bind(3, part)
        } read: {
            $0.bytes(.word)
        }
    }

    private func add(
        _ word: [UInt8],
        _ mask: Int64,
        _ scale: SearchIndex.Scale,
        _ part: Int64,
        of chat: ChatKey
    ) throws {
        try store.search.addWord.run {
            $0.bind(1, chat.rawValue)
            $0.bind(2, scale.rawValue)
            $0.bind(3, part)
            $0.bindBlob(4, word)
            $0.bind(5, mask)
        }
    }

    // MARK: - Stale blocks

    /// Adds the new words of an edited message to the index, so that searches find the message
    /// immediately. Marks the message's block as stale.
    func reindex(_ old: MessageRecord, as new: MessageRecord) throws {
        let (chat, words) = (old.chat, new.searchWords)
        guard words != old.searchWords, try old.number <= indexedMessages(of: chat) else { return }
        let block = SearchIndex.block(of: old.number)
        let part = block / SearchIndex.fanOut
        let isComplete = try reader.ends(of: part, in: chat).isComplete
        for word in words.count > SearchIndex.maxBlockWords ? [SearchIndex.anyWord] : words {
            try add(word, SearchIndex.bit(block), .part, part, of: chat)
            if isComplete { try tellArea(word, of: part, in: chat) }
        }
        try noteStale([old.number], in: chat)
    }

    /// Marks the blocks of edited or removed messages as stale. `refreshIndex` removes the old
    /// words later; until then, a search for an old word reads the block and finds nothing.
    ///
    /// - Parameter numbers: the numbers of the messages.
    func noteStale(_ numbers: [Int64], in chat: ChatKey) throws {
        let indexed = try indexedMessages(of: chat)
        for block in Set(numbers.filter { $0 <= indexed }.map(SearchIndex.block(of:))).sorted() {
            try store.search.putStale.run {
                $0.bind(1, chat.rawValue)
                $0.bind(2, block)
            }
            searchBacklog.mayHaveStale = true
        }
    }

    /// Indexes some stale blocks again. A block is stale if one of its messages was edited or
    /// removed.
    ///
    /// - Parameter chat: the chat of the blocks; nil for blocks of any chat.
    /// - Returns: false if there were no stale blocks.
    package func refreshIndex(of chat: ChatKey? = nil) throws -> Bool {
        let stale = try nextStale(of: chat)
        guard let first = stale.first else { return false }
        writes += 1
        let part = first.block / SearchIndex.fanOut
        let ends = try reader.ends(of: part, in: first.chat)
        var bits: Int64 = 0
        var words = BlockWords()
        for (chat, block) in stale
        where chat == first.chat && block / SearchIndex.fanOut == part {
            try store.search.dropStale.run {
                $0.bind(1, chat.rawValue)
                $0.bind(2, block)
            }
            let index = block % SearchIndex.fanOut
            // If all messages of the chat were deleted, the chat has no index.
            guard let end = ends.end(of: index) else { continue }
            let start = try ends.end(of: index - 1) ?? reader.end(before: part, in: chat)
            bits |= SearchIndex.bit(block)
            _ = try read(&words, of: chat, after: start, upTo: end, SearchIndex.blockMessages)
        }
        let isComplete = ends.isComplete
        try replace(bits, with: words.masks, in: part, isComplete: isComplete, of: first.chat)
        return true
    }

    /// Returns the stale blocks for the next step.
    private func nextStale(of chat: ChatKey?) throws -> [(chat: ChatKey, block: Int64)] {
        let stale = try store.search.nextStale.all {
            $0.bind(1, chat?.rawValue ?? .min)
            $0.bind(2, Self.messagesPerStep / SearchIndex.blockMessages)
        } read: {
            (chat: ChatKey($0.int(.chat)), block: $0.int(.block))
        }
        return stale.filter { chat == nil || $0.chat == chat }
    }

    /// Replaces the words of some blocks of a part.
    private func replace(
        _ bits: Int64,
        with words: [[UInt8]: Int64],
        in part: Int64,
        isComplete: Bool,
        of chat: ChatKey
    ) throws {
        let before = try masks(touching: bits, in: part, of: chat)
        for (word, mask) in words where (before[word] ?? 0) & bits != mask {
            try add(word, mask, .part, part, of: chat)
            if before[word] == nil, isComplete { try tellArea(word, of: part, in: chat) }
        }
        let area = part / SearchIndex.fanOut
        for (word, mask) in before {
            let left = mask & ~bits | (words[word] ?? 0)
            guard left != mask else { continue }
            try set(word, to: left, in: part, of: chat)
            if left == 0, isComplete, word != SearchIndex.anyWord {
                try clear(word, SearchIndex.bit(part), .area, area, of: chat)
            }
        }
        guard isComplete,
            try reader.mask(of: SearchIndex.anyWord, in: chat, .area, area)
                & SearchIndex.bit(part) != 0
        else { return }
        // The area contains `anyWord` for this part. Perhaps the part now has few enough words to
        // be listed.
        let all = try self.words(of: part, in: chat)
        guard all.count <= SearchIndex.maxPartWords, !all.contains(SearchIndex.anyWord) else {
            return
        }
        try clear(SearchIndex.anyWord, SearchIndex.bit(part), .area, area, of: chat)
        for word in all { try tellArea(word, of: part, in: chat) }
    }

    /// Returns the words that occur in at least one of the given blocks of a part. Each word comes
    /// with the mask of all blocks that contain it.
    private func masks(
        touching bits: Int64,
        in part: Int64,
        of chat: ChatKey
    ) throws -> [[UInt8]: Int64] {
        var masks: [[UInt8]: Int64] = [:]
        try store.search.wordsOfBlocks.each {
            $0.bind(1, chat.rawValue)
            $0.bind(2, SearchIndex.Scale.part.rawValue)
            $0.bind(3, part)
            $0.bind(4, bits)
        } do: {
            masks[$0.bytes(.word)] = $0.int(.blocks)
        }
        return masks
    }

    private func tellArea(_ word: [UInt8], of part: Int64, in chat: ChatKey) throws {
        let area = part / SearchIndex.fanOut
        try add(word, SearchIndex.bit(part), .area, area, of: chat)
    }

    /// - Parameter mask: the new mask; 0 deletes the word.
    private func set(
        _ word: [UInt8],
        to mask: Int64,
        in part: Int64,
        of chat: ChatKey
    ) throws {
        let statement = mask == 0 ? store.search.dropWord : store.search.setWord
        statement.bind(1, chat.rawValue)
        statement.bind(2, SearchIndex.Scale.part.rawValue)
        statement.bind(3, part)
        statement.bindBlob(4, word)
        if mask != 0 { statement.bind(5, mask) }
        try statement.run()
    }

    private func clear(
        _ word: [UInt8],
        _ mask: Int64,
        _ scale: SearchIndex.Scale,
        _ part: Int64,
        of chat: ChatKey
    ) throws {
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
        try drop.run()
    }

    /// Deletes the index of all messages up to `number`. The caller has already deleted these
    /// messages.
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
        // In the area, keep the bits of this part and of later parts.
        mask.bind(4, Int64(bitPattern: ~(UInt64(bitPattern: SearchIndex.bit(part)) &- 1)))
        try mask.run()
        try drop.run()
        let first = part * SearchIndex.partMessages + 1
        let behind = min(number, first + SearchIndex.partMessages - 1)
        let step = Int(clamping: SearchIndex.blockMessages)
        try noteStale(Array(stride(from: first, through: behind, by: step)), in: chat)
    }
}

/// The distinct words in some blocks of a part. Each word has the mask of the blocks that contain
/// it.
private struct BlockWords {
    private var found: [[UInt8]: Int64] = [:]
    private var counts = [Int64: Int]()
    /// The bits of the blocks that have more words than `maxBlockWords`.
    private var full: Int64 = 0
    private var word: [UInt8] = []

    /// The masks that the index stores for these words.
    var masks: [[UInt8]: Int64] {
        guard full != 0 else { return found }
        var masks = found.compactMapValues { $0 & ~full == 0 ? nil : $0 & ~full }
        masks[SearchIndex.anyWord] = full
        return masks
    }

    /// Adds the words of a message.
    mutating func add(wordsOf row: SQLRow<IndexedMessageColumn>, to bit: Int64) {
        guard full & bit == 0 else { return }
        add(row.borrowedBytes(.text), to: bit)
        guard let forward: Packed<MessageLink> = row.packed(.forward) else { return }
        forward.shownText.bytes.withUnsafeBytes { add($0, to: bit) }
    }

    private mutating func add(_ word: [UInt8], to bit: Int64) {
        guard full & bit == 0, found[word, default: 0] & bit == 0 else { return }
        counts[bit, default: 0] += 1
        if counts[bit, default: 0] > SearchIndex.maxBlockWords {
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
