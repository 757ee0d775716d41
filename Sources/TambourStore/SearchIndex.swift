import TambourProtocol

/// The index of words: which blocks of a chat's messages hold which.
///
/// Messages are numbered without a gap in their chat. 16 make a block, 64 blocks a part, 64 parts an
/// area. For each word of a part the index has a mask of its blocks, and for each word of an area a
/// mask of its complete parts; a message itself is read to see whether it is meant. So the index may know of
/// fewer messages than there are, which is what lets it follow when the engine has time: what is
/// behind it is looked through. Words of removed and edited messages leave it later too, block by block.
enum SearchIndex {
    static let blockMessages: Int64 = 16
    /// Blocks of a part, and parts of an area: the bits of a mask.
    static let fanOut: Int64 = 64
    static let partMessages = blockMessages * fanOut
    /// A chat is indexed when so many of its messages wait.
    static let step: Int64 = 64
    /// Rows of the index that are worth reading to know which parts or blocks may hold a query's words.
    static let maskRows = 512
    /// The distinct words of a block that are indexed. A block with more has `anyWord` alone: whoever
    /// writes thousands of different words must not keep the engine busy with them.
    static let maxBlockWords = 256
    /// The distinct words of a part of which its area is told; a part with more has `anyWord` there.
    static let maxPartWords = 4_096
    /// Stands for every word there is: in these blocks or parts any word may be.
    static let anyWord: [UInt8] = []

    /// Which rows a mask belongs to; the raw values are those of the column `scale`.
    enum Scale: Int64 {
        /// A bit is a block of a part.
        case part = 0
        /// A bit is a part of an area.
        case area = 1
    }

    /// The block of a message, counted from the chat's beginning.
    static func block(of number: Int64) -> Int64 { (number - 1) / blockMessages }

    static func bit(_ index: Int64) -> Int64 { 1 << (index & (fanOut - 1)) }

    /// The first bytes that sort after everything that begins with `word`; UTF-8 has no 0xFF.
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
    /// Whether no block is missing any more.
    var isComplete: Bool { count == SearchIndex.fanOut }
    /// Of the part's last block; 0 when it has none.
    var last: MessageID { count == 0 ? MessageID(0) : self[count - 1] }

    subscript(block: Int) -> MessageID {
        MessageID(bytes[block * 8..<block * 8 + 8].reduce(0) { $0 << 8 | Int64($1) })
    }

    /// The last id of a block; nil for one that is not there.
    func end(of block: Int64) -> MessageID? {
        block >= 0 && block < count ? self[Int(clamping: block)] : nil
    }

    mutating func append(_ id: MessageID) {
        withUnsafeBytes(of: id.rawValue.bigEndian) { bytes += $0 }
    }
}
