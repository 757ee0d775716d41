import TambourProtocol

/// Services for other processes that share the store, in addition to running their tasks. This
/// process provides the services while it owns the connection.
///
/// The other processes write looks into the store, and also errands: requests whose replies they
/// wait for. The connected process notices the change of the store, performs the looks and errands,
/// and writes the results.
extension ClientCore {
    /// The age at which a sent errand is deleted. By then no caller waits for its reply.
    private static let errandMs: Int64 = 600_000
    /// The age at which an unsent errand is deleted. By then its caller has given up.
    private static let unsentErrandMs: Int64 = 30_000

    /// Asks the connected process to fetch the messages that are missing on this process's screen.
    func tellLook(at chat: ChatID, _ screen: Screen, _ tx: StoreTransaction) throws {
        let look = SharedLook(
            position: screen.position?.rawValue,
            isGoingBack: screen.direction == .backward,
            rowsOnScreen: screen.rowsOnScreen,
            visible: screen.visible.map(\.rawValue)
        )
        guard screens.tell(look, at: chat, nowMs: environment.nowMs()) else { return }
        try tx.leave(look, at: chat, by: owner)
    }

    /// Asks the connected process to send a request.
    ///
    /// - Returns: the id of the errand.
    func leaveErrand(
        _ opcode: Opcode,
        _ payload: [UInt8],
        _ tx: StoreTransaction
    ) throws -> Int64 {
        let id = try tx.leaveErrand(opcode, payload, atHereMs: environment.wallMs())
        // If this process has become the connected process, it sends the request itself.
        try serveOthers(tx)
        return id
    }

    /// Performs the looks and errands of other processes.
    func serveOthers(_ tx: StoreTransaction) throws {
        guard isLive else { return }
        for (process, chat, place) in try tx.takeLooks() where process != owner {
            try look(
                at: chat,
                position: place.position.map { MessageID($0) },
                isGoingBack: place.isGoingBack,
                rowsOnScreen: place.rowsOnScreen,
                visible: place.visible.map { MessageID($0) },
                for: process,
                tx
            )
        }
        try runErrands(tx)
        try entities.pullForOthers(tx)
        try readFolders(tx)
    }

    private func runErrands(_ tx: StoreTransaction) throws {
        try tx.removeErrands(
            atHereMs: environment.wallMs(),
            olderThanMs: Self.errandMs,
            ifUnsent: Self.unsentErrandMs
        )
        // Fail the errands that another connection has sent: that connection has ended, even if its
        // process has not recorded this.
        let sender = "\(owner).\(life.number)"
        try tx.failErrands(notSentBy: sender)
        for (id, opcode, payload) in try tx.unsentErrands() {
            try tx.noteSent(errand: id, by: sender)
            call(opcode, payload) { answer, tx in try tx.put(answer, toErrand: id) }
        }
    }
}
