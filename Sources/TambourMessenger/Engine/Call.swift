import TambourProtocol
import TambourStore

/// A command on its way to its handler.
struct CommandCall {
    let requester: Requester
    /// The request's password, hashed; nil where none was to be hashed.
    let password: HashedPassword?
    let tx: WriteTransaction

    var caller: Caller { requester.requireCaller() }

    // A handler names in its parameter `from` as much of the call as it needs.
    func sender() -> Caller { caller }
    func sender() -> Requester { requester }
    func sender() -> CommandCall { self }
}

/// A query on its way to its handler.
struct QueryCall {
    let requester: Requester
    /// The commit clock's safe time, read before the snapshot opened: the client's next cursor.
    let time: Int64
    let snapshot: ReadTransaction

    var caller: Caller { requester.requireCaller() }

    func sender() -> Caller { caller }
    func sender() -> Requester { requester }
    func sender() -> QueryCall { self }
}
