public import TambourProtocol

/// A message, the messages it answers, and all answers, as far as they are on this device.
public struct MessageThread: Hashable, Sendable {
    /// A message of a thread.
    public struct Entry: Hashable, Sendable, Identifiable {
        /// The content of an entry.
        public enum Content: Hashable, Sendable {
            case row(HistoryRow)
            /// An answered message that is not on this device.
            case notHeld
            /// An answered message that has been deleted.
            case deleted
        }

        public let id: HistoryRow.ID
        /// Nil until the server assigns an id.
        public let message: MessageID?
        public let content: Content
        /// The length of the chain of answers from the first entry to this one; 0 for the first
        /// entry.
        public let depth: Int
    }

    /// The first message of the thread, then each answer followed by its own answers, oldest first.
    public let entries: [Entry]
    /// Whether `entries` contains all messages of the thread that are on this device.
    public let isWhole: Bool
}
