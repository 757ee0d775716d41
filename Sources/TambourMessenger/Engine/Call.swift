import TambourProtocol
import TambourStore

/// A command on its way to its handler.
struct CommandCall {
    let requester: Requester
    /// The request's hashed password; nil when no password had to be hashed.
    let password: HashedPassword?
    let tx: WriteTransaction

    var caller: Caller { requester.requireCaller() }

    // The type of a handler's parameter `from` selects the part of the call that the handler needs.
    func sender() -> Caller { caller }
    func sender() -> Requester { requester }
    func sender() -> CommandCall { self }
}

/// A query on its way to its handler.
struct QueryCall {
    let requester: Requester
    /// The commit clock's safe time, which was read before the snapshot opened. It becomes the
    /// client's next cursor.
    let time: Int64
    let snapshot: ReadTransaction

    var caller: Caller { requester.requireCaller() }

    func sender() -> Caller { caller }
    func sender() -> Requester { requester }
    func sender() -> QueryCall { self }
}
