package import TambourProtocol

/// What others must hear about a commit. Events leave after the commit, before its replies.
package enum Event: Sendable {
    /// Goes to every live connection of `to`, in the order of their ids, except `except`, which got the
    /// reply instead.
    case push(Push, to: [UserID], except: ConnectionID?)
    /// What receivers of the messages behind it, in the same batch and chat, have read: for clients that are
    /// told with each message.
    case counters(ReadCounters)
    /// The tokens of these sessions of one user are dead: their connections close.
    case sessionsClosed([SessionID], of: UserID)
    /// A user follows the presence of `users` no more.
    case unfollowed([UserID], by: UserID)
    /// A user's settings: every connection but `except` is told. Large and rare, so it is indirect:
    /// events of sends are copied a lot.
    indirect case settingsChanged(SettingsNews, of: UserID, except: ConnectionID?)
    /// Something is to be sent at that time, Unix milliseconds.
    case delayed(until: Int64)
    /// A code to hand to a person.
    indirect case code(String, to: CodeRecipient)
}

/// The read marks of some members of a chat, as they are at the end of a batch.
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

    init(chatID: ChatID, readers: [UserID: Reader]) {
        self.chatID = chatID
        self.readers = readers
    }
}

/// Where a code goes.
package enum CodeRecipient: Hashable, Sendable {
    /// Digits of the international number, without the plus.
    case phone(Int64)
    case email(String)
}

/// A change of a user's settings.
package struct SettingsNews: Sendable {
    /// What the hash that clients hold is made of.
    package let version: Int64
    package let isHidden: Bool
    /// All settings of the user, a map.
    package let user: AnyValue
    /// All settings of the chats concerned, each a map.
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
