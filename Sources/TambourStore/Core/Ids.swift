/// The key of a chat inside the store; it is never sent to clients.
///
/// Groups and channels use their wire id (negative). Dialogs and saved messages get a separate
/// positive number, because a dialog's wire id (`A xor B`) is unique only among the chats of one
/// user.
package struct ChatKey: Hashable, Comparable, Sendable {
    package let rawValue: Int64

    package init(_ rawValue: Int64) {
        self.rawValue = rawValue
    }

    package static func < (lhs: ChatKey, rhs: ChatKey) -> Bool {
        lhs.rawValue < rhs.rawValue
    }
}
