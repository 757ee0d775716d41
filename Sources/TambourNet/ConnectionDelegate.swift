/// Receives a connection's events, always on the connection's lane.
///
/// No method is called from inside `write`, `close` or any other call of the owner: the effects of
/// such a call are reported later in the same round.
package protocol ConnectionDelegate: AnyObject {
    /// Reports that the connection is on its lane and may be written to; called once, before
    /// everything else.
    func connectionOpened(_ connection: Connection)

    /// Presents all unread bytes: those left unconsumed last time, then the new ones.
    ///
    /// The bytes are valid only during the call. Unconsumed bytes are kept and presented again
    /// before the next ones; the delegate must bound how many it leaves.
    /// - Returns: The number of bytes consumed, from the front.
    func connection(_ connection: Connection, received bytes: UnsafeRawBufferPointer) -> Int

    /// Reports that all input of one readiness event has been presented; `hasPartialInput` is
    /// final.
    func connectionRoundEnded(_ connection: Connection)

    /// Reports that the peer sends nothing more but may still read; all its input has been
    /// presented.
    ///
    /// A delegate that does not close the connection now must do so later.
    func connectionInputEnded(_ connection: Connection)

    /// Reports that the socket took the last byte of a backlog.
    func connectionDrained(_ connection: Connection)

    /// Reports that the connection is closed; called once for each opened connection, as the last
    /// call.
    func connectionClosed(_ connection: Connection, reason: CloseReason)
}

extension ConnectionDelegate {
    package func connectionRoundEnded(_ connection: Connection) {}
    package func connectionInputEnded(_ connection: Connection) { connection.close(.peerClosed) }
    package func connectionDrained(_ connection: Connection) {}
}
