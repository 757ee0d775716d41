import TambourProtocol

/// The word index. It records which words occur in which blocks of a chat's messages. Its tables
/// are `search_word`, `search_part` and `search_stale`. For names and titles, `PeopleSearch` and
/// `PublicChats` have separate indexes.
///
/// Messages are numbered without gaps in their chat. A block has 16 messages, a part 64 blocks, an
/// area 64 parts. For each word of a part, the index has a mask of the blocks that contain it. For
/// each word of an area, it has a mask of the complete parts that contain it. Search reads the
/// messages themselves to confirm a match, so the index need not be exact. New messages are indexed
/// later, when the engine is idle; until then, search scans them. Old words of removed and edited
/// messages are also deleted later, block by block.
enum SearchIndex {
    static let blockMessages: Int64 = 16
    /// The number of blocks in a part, and the number of parts in an area. A mask has the same
    /// number of bits.
    static let fanOut: Int64 = 64
    static let partMessages = blockMessages * fanOut
    /// When a chat has this number of unindexed messages, it is added to the backlog of the index.
    static let step: Int64 = 64
    /// The maximum number of index rows that a search reads for one part or area, to find the
    /// blocks or parts that may contain the words of a query.
    static let maskRows = 512
    /// The maximum number of distinct indexed words of a block. For a block with more words, the
    /// index contains only `anyWord`. Otherwise a user who writes thousands of different words
    /// could keep the engine busy.
    static let maxBlockWords = 256
    /// The maximum number of distinct words of a part that its area lists. For a part with more
    /// words, the area lists only `anyWord`.
    static let maxPartWords = 4_096
    /// The entry that matches every word. A block or part with this entry may contain any word.
    static let anyWord: [UInt8] = []

    /// The level of a mask; the raw values are the values of the column `scale`.
    enum Scale: Int64 {
        /// Each bit stands for a block of a part.
        case part = 0
        /// Each bit stands for a part of an area.
        case area = 1
    }

    /// Returns the number of the block that contains a message. The first block of the chat has the
    /// number 0.
    static func block(of number: Int64) -> Int64 { (number - 1) / blockMessages }

    static func bit(_ index: Int64) -> Int64 { 1 << (index & (fanOut - 1)) }

    /// Returns the smallest bytes of the same length that sort after every word with the prefix
    /// `word`. The addition cannot overflow, because UTF-8 never contains 0xFF.
    static func end(ofPrefix word: [UInt8]) -> [UInt8] {
        var end = word
        end[end.count - 1] += 1
        return end
    }
}

/// The last id of each block of a part, eight bytes each. The oldest block comes first.
struct BlockEnds {
    private(set) var bytes: [UInt8]

    var count: Int { bytes.count / 8 }
    /// Whether all blocks of the part are indexed.
    var isComplete: Bool { count == SearchIndex.fanOut }
    /// The last id of the part's last block; 0 if the part has no blocks.
    var last: MessageID { count == 0 ? MessageID(0) : self[count - 1] }

    subscript(block: Int) -> MessageID {
        MessageID(bytes[block * 8..<block * 8 + 8].reduce(0) { $0 << 8 | Int64($1) })
    }

    /// Returns the last id of a block; nil if the part does not contain the block.
    func end(of block: Int64) -> MessageID? {
        block >= 0 && block < count ? self[Int(clamping: block)] : nil
    }

    mutating func append(_ id: MessageID) {
        withUnsafeBytes(of: id.rawValue.bigEndian) { bytes += $0 }
    }
}
