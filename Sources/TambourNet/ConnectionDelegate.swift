/// Receives a connection's events, always on the connection's lane.
///
/// The lane never calls a method from inside `write`, `close` or another call of the owner. It
/// reports the effects of such a call later in the same round.
package protocol ConnectionDelegate: AnyObject {
    /// Reports that the connection is on its lane and may be written to. Called once, before all
    /// other methods.
    func connectionOpened(_ connection: Connection)

    /// Asks whether the layers may open, when the peer's first bytes arrive. Called at most once,
    /// and only for layers whose opening costs CPU time.
    ///
    /// - Returns: false if the delegate has closed the connection.
    func connectionMayOpenLayers(_ connection: Connection) -> Bool

    /// Reports that the layers have opened. Called at most once, before all input is presented.
    func connectionLayersOpened(_ connection: Connection)

    /// Presents all unread bytes: first the unconsumed bytes of the last call, then the new bytes.
    ///
    /// The bytes are valid only during the call. The lane keeps unconsumed bytes and presents them
    /// again before the next bytes. The delegate must limit the number of bytes that it leaves.
    /// - Returns: The number of bytes consumed, from the front.
    func connection(_ connection: Connection, received bytes: UnsafeRawBufferPointer) -> Int

    /// Reports that all input of one readiness event has been presented. `hasPartialInput` is now
    /// final.
    func connectionRoundEnded(_ connection: Connection)

    /// Reports that the peer has ended its output but may still read. All its input has been
    /// presented.
    ///
    /// A delegate that does not close the connection now must close it later.
    func connectionInputEnded(_ connection: Connection)

    /// Reports that the socket accepted the last byte of a backlog.
    func connectionDrained(_ connection: Connection)

    /// Reports that the connection is closed. This is the last call, and happens once for each
    /// opened connection.
    func connectionClosed(_ connection: Connection, reason: CloseReason)
}

extension ConnectionDelegate {
    package func connectionMayOpenLayers(_ connection: Connection) -> Bool { true }
    package func connectionLayersOpened(_ connection: Connection) {}
    package func connectionRoundEnded(_ connection: Connection) {}
    package func connectionInputEnded(_ connection: Connection) { connection.close(.peerClosed) }
    package func connectionDrained(_ connection: Connection) {}
}
