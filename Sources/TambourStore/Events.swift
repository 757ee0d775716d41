package import TambourProtocol

/// What others must hear about a commit. Events leave after the commit, before its replies.
package enum Event: Sendable {
    /// Goes to every live connection of `to` except `except`, which got the reply instead.
    case push(Push, to: [UserID], except: ConnectionID?)
    /// The tokens of these sessions of one user are dead: their connections close.
    case sessionsClosed([SessionID], of: UserID)
    /// A user follows the presence of `users` no more.
    case unfollowed([UserID], by: UserID)
    /// The presence of a user is to be hidden, or to be seen again.
    case presenceHidden(Bool, of: UserID)
    /// A login code to hand to the person who owns `phone`.
    case loginCode(phone: Int64, code: String)
}
