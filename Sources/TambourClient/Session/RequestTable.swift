import TambourProtocol

/// The requests of one connection that are not answered yet.
struct RequestTable {
    /// What need not be asked again while it is asked.
    enum Question: Equatable {
        /// What became of a chat's messages.
        case changes(ChatID)
        /// The reactions to a message.
        case reactions(MessageID)
    }

    struct Entry {
        let opcode: Opcode
        let question: Question?
        let dueMs: Int64
        let answer: (Result<[UInt8], ClientError>, StoreTransaction) throws -> Void
        /// Told instead when the store has failed and no transaction can be had.
        let abandoned: ((ClientError) -> Void)?
    }

    private var entries: [UInt16: Entry] = [:]
    private var lastSequence: UInt16 = 0

    var count: Int { entries.count }

    /// Whether that is asked just now.
    func isOpen(_ question: Question) -> Bool {
        entries.values.contains { $0.question == question }
    }

    /// When the first of them is overdue.
    var nextDueMs: Int64? { entries.values.lazy.map(\.dueMs).min() }

    /// Takes a request up.
    ///
    /// - Returns: the number it travels under, one that no request under way has.
    mutating func add(_ entry: Entry) -> UInt16 {
        repeat { lastSequence &+= 1 } while entries[lastSequence] != nil
        entries[lastSequence] = entry
        return lastSequence
    }

    /// The request with that number, which is answered now; nil for an answer to nothing.
    mutating func take(_ sequence: UInt16, _ opcode: Opcode) -> Entry? {
        guard let entry = entries[sequence], entry.opcode == opcode else { return nil }
        return entries.removeValue(forKey: sequence)
    }

    /// Those that are overdue, oldest first.
    mutating func takeOverdue(nowMs: Int64) -> [Entry] {
        let overdue = entries.filter { $0.value.dueMs <= nowMs }
        for sequence in overdue.keys { entries[sequence] = nil }
        return overdue.sorted { ($0.value.dueMs, $0.key) < ($1.value.dueMs, $1.key) }.map(\.value)
    }

    /// All of them: the connection is gone.
    mutating func takeAll() -> [Entry] {
        defer { entries = [:] }
        return entries.sorted { $0.key < $1.key }.map(\.value)
    }
}
