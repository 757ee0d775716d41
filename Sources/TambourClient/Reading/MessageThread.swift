public import TambourProtocol

/// A message, what it answers, and all that answers, as far as this device holds it.
public struct MessageThread: Hashable, Sendable {
    /// A message of a thread.
    public struct Entry: Hashable, Sendable, Identifiable {
        /// What is here of it.
        public enum Content: Hashable, Sendable {
            case row(HistoryRow)
            /// It is answered, and not on this device.
            case notHeld
            /// It is answered, and was deleted.
            case deleted
        }

        public let id: HistoryRow.ID
        /// Nil until the server has it.
        public let message: MessageID?
        public let content: Content
        /// How many messages are between it and the first entry, and the first; 0 for the first.
        public let depth: Int
    }

    /// The message that began it, then each answer with the answers to it behind it, oldest first.
    public let entries: [Entry]
    /// Whether that is all there is on this device.
    public let isWhole: Bool
}
