/// Receives a connection's events, always on the connection's lane.
///
/// The lane never calls a method of the delegate while `write`, `close` or another method of the
/// connection runs. It reports the effects of such a call later in the same round.
package protocol ConnectionDelegate: AnyObject {
    /// Reports that the connection is on its lane, and that the delegate may write to it. Called
    /// once, before all other methods.
    func connectionOpened(_ connection: Connection)

    /// Asks whether the layers may open. The lane calls this method when the peer's first bytes
    /// arrive. It calls it at most once, and only for layers whose opening costs CPU time.
    ///
    /// - Returns: false if the delegate has closed the connection.
    func connectionMayOpenLayers(_ connection: Connection) -> Bool

    /// Reports that the layers have opened. Called at most once, before all input is presented.
    func connectionLayersOpened(_ connection: Connection)

    /// Presents all unconsumed bytes: first those from the last call, then the new ones.
    ///
    /// The bytes are valid only during the call. The lane keeps unconsumed bytes and presents them
    /// again before the next bytes. The delegate must limit the number of bytes that it leaves.
    /// - Returns: The number of bytes consumed, from the front.
    func connection(_ connection: Connection, received bytes: UnsafeRawBufferPointer) -> Int

    /// Reports that all input of one readiness event has been presented. `hasPartialInput` is now
    /// final.
    func connectionRoundEnded(_ connection: Connection)

    /// Reports that the peer has ended its output. The peer may still read. The lane has presented
    /// all its bytes.
    ///
    /// If the delegate does not close the connection now, it must close it later.
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
