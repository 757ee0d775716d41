package import TambourProtocol

/// What other sessions must be told about a commit. Events leave after the commit, before its
/// replies.
package enum Event: Sendable {
    /// Goes to every live connection of the users in `to`, in the order of their ids, except
    /// `except`, which got the reply instead.
    case push(Push, to: [UserID], except: ConnectionID?)
    /// The read counters of the receivers of the following messages, in the same batch and chat:
    /// for clients that get counters with each message.
    case counters(ReadCounters)
    /// The tokens of these sessions of one user are revoked: their connections close.
    case sessionsClosed([SessionID], of: UserID)
    /// A user no longer follows the presence of `users`.
    case unfollowed([UserID], by: UserID)
    /// A user's settings, for every connection except `except`. The case is indirect because it is
    /// large and rare, while events of sends are copied often.
    indirect case settingsChanged(SettingsNews, of: UserID, except: ConnectionID?)
    /// A message is due at that time, Unix milliseconds.
    case delayed(until: Int64)
    /// A code to deliver to a person.
    indirect case code(String, to: CodeRecipient)
}

/// The read marks of some members of a chat at the end of a batch.
package final class ReadCounters: Sendable {
    /// What one member has read.
    package struct Reader: Sendable {
        /// Read mark, Unix milliseconds; 0 for never.
        package let mark: Int64
        /// The number of unread messages.
        package let unread: Int64

        package init(mark: Int64, unread: Int64) {
            self.mark = mark
            self.unread = unread
        }
    }

    package let chatID: ChatID
    package let readers: [UserID: Reader]

    package init(chatID: ChatID, readers: [UserID: Reader]) {
        self.chatID = chatID
        self.readers = readers
    }
}

/// The recipient of a code.
package enum CodeRecipient: Hashable, Sendable {
    /// Digits of the international number, without the plus.
    case phone(Int64)
    case email(String)
}

/// A change of a user's settings.
package struct SettingsNews: Sendable {
    /// The version from which the hash that clients hold is computed.
    package let version: Int64
    package let isHidden: Bool
    /// All settings of the user, a map.
    package let user: AnyValue
    /// All settings of the affected chats, each a map.
    package let chats: IDMap<ChatID, AnyValue>?

    package init(
        version: Int64,
        isHidden: Bool,
        user: AnyValue,
        chats: IDMap<ChatID, AnyValue>?
    ) {
        self.version = version
        self.isHidden = isHidden
        self.user = user
        self.chats = chats
    }
}
