package import TambourProtocol

/// An effect of a request outside the store, such as a push to other sessions. The server sends the
/// events of a transaction after its commit and before its replies.
package enum Event: Sendable {
    /// A push for every live connection of the users in `to`, which is sorted by id. The connection
    /// `except` gets the reply instead.
    case push(Push, to: [UserID], except: ConnectionID?)
    /// The read counters for the receivers of the messages that follow in the same batch and chat.
    /// Only clients that receive counters with each message need them.
    case counters(ReadCounters)
    /// The tokens of these sessions of a user are revoked. Their connections close.
    case sessionsClosed([SessionID], of: UserID)
    /// A user no longer follows the presence of `users`.
    case unfollowed([UserID], by: UserID)
    /// A change of a user's settings, for all of the user's connections except `except`. The case
    /// is indirect because it is large and rare, and would enlarge the frequently copied events of
    /// sends.
    indirect case settingsChanged(SettingsNews, of: UserID, except: ConnectionID?)
    /// A scheduled message is due at this time, Unix milliseconds.
    case delayed(until: Int64)
    /// A code to deliver to a person.
    indirect case code(String, to: CodeRecipient)
    /// A code was requested for a phone that may not register, so it is not delivered.
    case codeWithheld
}

/// The read marks and unread counts of some members of a chat at the end of a batch.
package final class ReadCounters: Sendable {
    /// The read mark and unread count of one member.
    package struct Reader: Sendable {
        /// The read mark, Unix milliseconds; 0 for never.
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
    /// The digits of the international number, without the plus.
    case phone(Int64)
    case email(String)
}

/// A change of a user's settings.
package struct SettingsNews: Sendable {
    /// The version of the settings. The hash that clients hold contains this version.
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
