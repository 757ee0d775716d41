package import TambourStore

/// How far a command has come.
package enum Progress<Reply: Sendable>: Sendable {
    case finished(Reply)
    /// What has happened so far is one transaction; the rest takes another one, others' commands in between.
    /// A crash in between leaves the first part: for commands that may be sent again.
    case more(@Sendable (WriteTransaction) throws -> Progress)
}
