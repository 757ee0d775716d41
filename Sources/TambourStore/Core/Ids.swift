/// The key of a chat inside the store; it is never sent to clients.
///
/// The key of a group or channel is its wire id, which is negative. The key of any other chat is a
/// positive number. A dialog's wire id (`A xor B`) cannot be its key, because this id is unique
/// only among the chats of one user.
package struct ChatKey: Hashable, Comparable, Sendable {
    package let rawValue: Int64

    package init(_ rawValue: Int64) {
        self.rawValue = rawValue
    }

    package static func < (lhs: ChatKey, rhs: ChatKey) -> Bool {
        lhs.rawValue < rhs.rawValue
    }
}
