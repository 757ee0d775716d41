public import TambourProtocol

/// A message, the messages it answers and all answers, as far as this device holds them.
public struct MessageThread: Hashable, Sendable {
    /// A message of a thread.
    public struct Entry: Hashable, Sendable, Identifiable {
        /// The content of an entry.
        public enum Content: Hashable, Sendable {
            case row(HistoryRow)
            /// The message was answered, but is not on this device.
            case notHeld
            /// The message was answered, but has been deleted.
            case deleted
        }

        public let id: HistoryRow.ID
        /// Nil until the server has it.
        public let message: MessageID?
        public let content: Content
        /// The number of answers on the way from the first entry to this one; 0 for the first.
        public let depth: Int
    }

    /// The message that began the thread, then each answer followed by the answers to it, oldest
    /// first.
    public let entries: [Entry]
    /// Whether these are all entries that this device holds.
    public let isWhole: Bool
}
