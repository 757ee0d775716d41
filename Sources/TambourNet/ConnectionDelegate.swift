/// What a connection tells its owner, always on the connection's lane.
///
/// No method is called from inside `write`, `close` or any other call of the owner: what such a
/// call brings about is told later in the same round.
package protocol ConnectionDelegate: AnyObject {
    /// The connection is on its lane and may be written to; called once, before everything else.
    func connectionOpened(_ connection: Connection)

    /// Presents everything unread: what was left unconsumed last time, then what just came.
    ///
    /// The bytes are valid during the call only. What is not consumed is kept and presented again
    /// in front of what comes next; how much may be kept waiting is for the delegate to bound.
    /// - Returns: How many bytes were consumed, from the front.
    func connection(_ connection: Connection, received bytes: UnsafeRawBufferPointer) -> Int

    /// All that one readiness brought has been presented; `hasPartialInput` is settled.
    func connectionRoundEnded(_ connection: Connection)

    /// The peer sends nothing more but may still read; all it had sent has been presented.
    ///
    /// Whoever does not close the connection now has to do so later.
    func connectionInputEnded(_ connection: Connection)

    /// The socket took the last byte of a backlog it had refused before.
    func connectionDrained(_ connection: Connection)

    /// The connection is gone; called once for each that was opened, and nothing is called after it.
    func connectionClosed(_ connection: Connection, reason: CloseReason)
}

extension ConnectionDelegate {
    package func connectionRoundEnded(_ connection: Connection) {}
    package func connectionInputEnded(_ connection: Connection) { connection.close(.peerClosed) }
    package func connectionDrained(_ connection: Connection) {}
}
