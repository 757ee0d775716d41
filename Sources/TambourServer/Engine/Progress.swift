package import TambourStore

/// The result of one step of a command.
package enum Progress<Reply: Sendable>: Sendable {
    case finished(Reply)
    /// The next step, which runs in a transaction of its own; commands of others run in between. After a crash
    /// only the first steps are done, so this is for commands that clients may send again.
    case more(@Sendable (WriteTransaction) throws -> Progress)
}
