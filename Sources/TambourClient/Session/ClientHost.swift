public import TambourProtocol

/// The services that the core of a client requires. The core calls them from the thread that drives
/// the core.
package protocol ClientHost: AnyObject {
    /// Opens a connection, and reports the result with `connectionOpened` or `connectionClosed`.
    ///
    /// A connection with TLS counts as open after the handshake. When the server has accepted the
    /// connection and the handshake begins, the host calls `connectionAccepted`.
    func connect(to server: ServerAddress, trusting trust: ServerTrust)

    /// Closes the connection, or cancels the attempt to open it. The core then receives no events
    /// of this connection.
    func disconnect()

    /// Sends bytes on the connection, after all earlier bytes.
    func send(_ bytes: [UInt8])

    /// Calls the core's `wake` after this number of milliseconds. Replaces any earlier alarm; nil
    /// only cancels the earlier alarm.
    func wake(afterMs: Int64?)

    /// Starts long-running work, and reports its progress with `PhotoRuns.reported`.
    func begin(_ work: PhotoWork)

    /// Cancels the work of this run, if it is still in progress.
    func giveUp(_ run: TaskRun)

    /// Publishes a change of the store.
    func publish(_ changes: ChangeSet)

    /// Publishes a change of the connection's state.
    func publish(_ state: ConnectionState)

    /// Publishes an event that is not stored.
    func publish(_ event: ClientEvent)
}

/// The state of a client's connection to its server.
public enum ConnectionState: Hashable, Sendable {
    /// No account is signed in: request a code.
    case signedOut
    /// The client was not started, or has been stopped.
    case stopped
    /// Another process of this account owns the connection, and performs the actions of this
    /// process.
    case elsewhere
    /// Connecting, or waiting to reconnect. `attempt` counts from 1 after each login.
    case connecting(attempt: Int)
    /// Connected. The changes since the last connection are still arriving.
    case syncing
    /// All earlier changes have arrived, and later changes arrive as pushes.
    case online
}

/// An event that is not stored.
public enum ClientEvent: Hashable, Sendable {
    /// A user is typing in a chat; valid for some seconds.
    case typing(ChatID, UserID)
    /// The account was signed out: by the server, by another process, or because its token belongs
    /// to another account (`Client.holdsAnother`). If the server signed the account out, `reason`
    /// is the server's text.
    case signedOut(reason: String)
    /// The server refused an action that was shown as done. The value is text for the user.
    case refused(String)
    /// A scheduled message reached the server more than a minute after its time, because this
    /// device was offline. The server sent the message at once. The planned time is in Unix
    /// milliseconds.
    case sentLate(ChatID, plannedMs: Int64)
    /// The server could not send a scheduled message at its time. `Client.scheduled` shows the
    /// message.
    case scheduledFailed(ChatID)
    /// A packet was sent or received; published only while `ClientOptions.tapsFrames` is set.
    case frame(FrameTap)
    /// The local store failed. The client retries.
    case storeFailed(reason: String)
}

/// A packet in the debug tap. It omits the content, which may be secret.
public struct FrameTap: Hashable, Sendable {
    public enum Direction: Hashable, Sendable {
        case sent
        case received
    }

    public let direction: Direction
    /// `request`, `reply`, `error` or `push`.
    public let kind: String
    /// A name such as `MSG_SEND`, or a number.
    public let opcode: String
    public let sequence: UInt16
    /// Bytes on the wire, including the header.
    public let bytes: Int
    /// For a reply or an error, the time since its request; nil for other packets.
    public let roundTrip: Duration?
}

/// The sources of time and randomness of the core.
package struct ClientEnvironment {
    /// Wall-clock milliseconds since 1970 on this device; may be wrong by years.
    package var wallMs: () -> Int64
    /// Milliseconds of a monotonic clock.
    package var nowMs: () -> Int64
    package var random: () -> UInt64

    package init(
        wallMs: @escaping () -> Int64,
        nowMs: @escaping () -> Int64,
        random: @escaping () -> UInt64
    ) {
        self.wallMs = wallMs
        self.nowMs = nowMs
        self.random = random
    }
}
