import TambourProtocol

/// The word index: lists which words occur in which blocks of a chat's messages. Its tables are
/// `search_word`, `search_part` and `search_stale`. `PeopleSearch` and `PublicChats` have indexes
/// of their own for names and titles.
///
/// Messages are numbered without gaps in their chat. A block has 16 messages, a part 64 blocks, an
/// area 64 parts. For each word of a part, the index has a mask of the blocks that contain it. For
/// each word of an area, it has a mask of the complete parts that contain it. Search reads the
/// messages themselves to confirm a match. The index may therefore lag behind and catch up when the
/// engine is idle; search scans the messages after the end of the index. Words of removed and
/// edited messages also leave the index later, block by block.
enum SearchIndex {
    static let blockMessages: Int64 = 16
    /// The number of blocks of a part, and of parts of an area: the bits of a mask.
    static let fanOut: Int64 = 64
    static let partMessages = blockMessages * fanOut
    /// The number of unindexed messages at which a chat joins the backlog of the index.
    static let step: Int64 = 64
    /// The number of index rows worth reading to find the parts or blocks that may contain a
    /// query's words.
    static let maskRows = 512
    /// The maximum number of distinct indexed words of a block. A block with more words has only
    /// `anyWord`, so a user who writes thousands of different words cannot keep the engine busy.
    static let maxBlockWords = 256
    /// The maximum number of distinct words of a part that its area lists. For a part with more
    /// words, the area lists only `anyWord`.
    static let maxPartWords = 4_096
    /// Matches every word: a block or part with this entry may contain any word.
    static let anyWord: [UInt8] = []

    /// The level of a mask; the raw values are the values of the column `scale`.
    enum Scale: Int64 {
        /// Each bit is a block of a part.
        case part = 0
        /// Each bit is a part of an area.
        case area = 1
    }

    /// Returns the block of a message, counted from the chat's beginning.
    static func block(of number: Int64) -> Int64 { (number - 1) / blockMessages }

    static func bit(_ index: Int64) -> Int64 { 1 << (index & (fanOut - 1)) }

    /// Returns the smallest bytes that sort after every word with the prefix `word`; UTF-8 never
    /// contains 0xFF.
    static func end(ofPrefix word: [UInt8]) -> [UInt8] {
        var end = word
        end[end.count - 1] += 1
        return end
    }
}

/// The last ids of the blocks of a part, oldest first, eight bytes each.
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

    /// Returns the last id of a block; nil for a missing block.
    func end(of block: Int64) -> MessageID? {
        block >= 0 && block < count ? self[Int(clamping: block)] : nil
    }

    mutating func append(_ id: MessageID) {
        withUnsafeBytes(of: id.rawValue.bigEndian) { bytes += $0 }
    }
}
