import TambourProtocol

/// The requests of one connection that are in flight.
struct RequestTable {
    /// A query for which at most one request is in flight at a time.
    enum Question: Equatable {
        /// The changes of a chat's messages.
        case changes(ChatID)
        /// The reactions to a message.
        case reactions(MessageID)
        /// The scheduled messages of a chat.
        case scheduled(ChatID)
        /// The changes of the account's folders.
        case folders
        /// The subscription to comments, or their newest page.
        case comments(ChatID)
    }

    struct Entry {
        let opcode: Opcode
        let question: Question?
        let dueMs: Int64
        let answer: (Result<[UInt8], ClientError>, StoreTransaction) throws -> Void
        /// Called instead of `answer` when the store has failed and no transaction is possible.
        let abandoned: ((ClientError) -> Void)?
    }

    private var entries: [UInt16: Entry] = [:]
    private var lastSequence: UInt16 = 0

    var count: Int { entries.count }

    /// Returns whether a query is in flight.
    func isOpen(_ question: Question) -> Bool {
        entries.values.contains { $0.question == question }
    }

    /// The time when the first request becomes overdue.
    var nextDueMs: Int64? { entries.values.lazy.map(\.dueMs).min() }

    /// Adds a request.
    ///
    /// - Returns: the sequence number of the request, unique among requests in flight.
    mutating func add(_ entry: Entry) -> UInt16 {
        repeat { lastSequence &+= 1 } while entries[lastSequence] != nil
        entries[lastSequence] = entry
        return lastSequence
    }

    /// Removes and returns the request that a reply answers; nil for a stray reply.
    mutating func take(_ sequence: UInt16, _ opcode: Opcode) -> Entry? {
        guard let entry = entries[sequence], entry.opcode == opcode else { return nil }
        return entries.removeValue(forKey: sequence)
    }

    /// Removes and returns the overdue requests, oldest first.
    mutating func takeOverdue(nowMs: Int64) -> [Entry] {
        let overdue = entries.filter { $0.value.dueMs <= nowMs }
        for sequence in overdue.keys { entries[sequence] = nil }
        return overdue.sorted { ($0.value.dueMs, $0.key) < ($1.value.dueMs, $1.key) }.map(\.value)
    }

    /// Removes and returns all requests after the connection is lost.
    mutating func takeAll() -> [Entry] {
        defer { entries = [:] }
        return entries.sorted { $0.key < $1.key }.map(\.value)
    }
}
