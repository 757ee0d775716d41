import TambourProtocol

/// The word index: which blocks of a chat's messages contain which words. Its tables are `search_word`
/// and `search_part`.
///
/// Messages are numbered without gaps in their chat. 16 make a block, 64 blocks a part, 64 parts an
/// area. For each word of a part the index has a mask of its blocks, and for each word of an area a
/// mask of its complete parts. Search reads the messages themselves to confirm a match. The index
/// may therefore lag behind and catch up when the engine is idle: search scans the messages after
/// its end. Words of removed and edited messages leave the index later too, block by block.
enum SearchIndex {
    static let blockMessages: Int64 = 16
    /// Blocks of a part, and parts of an area: the bits of a mask.
    static let fanOut: Int64 = 64
    static let partMessages = blockMessages * fanOut
    /// A chat is indexed when this many of its messages wait.
    static let step: Int64 = 64
    /// The number of index rows worth reading to learn which parts or blocks may contain a query's
    /// words.
    static let maskRows = 512
    /// The number of distinct words of a block that are indexed. A block with more has only
    /// `anyWord`: a user who writes thousands of different words must not keep the engine busy.
    static let maxBlockWords = 256
    /// The number of distinct words of a part that its area lists; a part with more has `anyWord`
    /// there.
    static let maxPartWords = 4_096
    /// Stands for every word: these blocks or parts may contain any word.
    static let anyWord: [UInt8] = []

    /// The level of a mask; the raw values are those of the column `scale`.
    enum Scale: Int64 {
        /// Each bit is a block of a part.
        case part = 0
        /// Each bit is a part of an area.
        case area = 1
    }

    /// Returns the block of a message, counted from the chat's beginning.
    static func block(of number: Int64) -> Int64 { (number - 1) / blockMessages }

    static func bit(_ index: Int64) -> Int64 { 1 << (index & (fanOut - 1)) }

    /// Returns the first bytes that sort after everything that begins with `word`; UTF-8 has no
    /// 0xFF.
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
    /// Whether the part has all its blocks.
    var isComplete: Bool { count == SearchIndex.fanOut }
    /// The last id of the part's last block; 0 when it has none.
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
