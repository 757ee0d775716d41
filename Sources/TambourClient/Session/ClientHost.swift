public import TambourProtocol

/// The services that the core of a client requires. The core calls them from the thread that drives
/// it.
package protocol ClientHost: AnyObject {
    /// Opens a connection, and reports the result with `connectionOpened` or `connectionClosed`.
    func connect(to server: String)

    /// Closes the connection, or stops opening one. The core receives no more events of it.
    func disconnect()

    /// Sends bytes on the connection, after all earlier ones.
    func send(_ bytes: [UInt8])

    /// Calls the core's `wake` after this many milliseconds, in place of any earlier alarm; nil for
    /// no alarm.
    func wake(afterMs: Int64?)

    /// Starts long-running work, and reports its progress with `PhotoRuns.reported`.
    func begin(_ work: PhotoWork)

    /// Cancels the work of this run, if it is not over yet.
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
    /// Nobody is signed in: request a code.
    case signedOut
    /// The client was not started, or has been stopped.
    case stopped
    /// Another process of this account owns the connection, and carries out the actions of this
    /// one.
    case elsewhere
    /// Connecting, or waiting to reconnect; `attempt` counts from 1 since the client was last
    /// online.
    case connecting(attempt: Int)
    /// Connected; the changes since the last connection are in flight.
    case syncing
    /// Everything that has happened is here, or has been announced.
    case online
}

/// An event that is not stored.
public enum ClientEvent: Hashable, Sendable {
    /// Somebody is typing in a chat; valid for some seconds.
    case typing(ChatID, UserID)
    /// The server or another process signed the account out. `reason` is the server's, if it did.
    case signedOut(reason: String)
    /// The server refused an action that was shown as done; the text is for people.
    case refused(String)
    /// A packet was sent or received; published only while `ClientOptions.tapsFrames` is set.
    case frame(FrameTap)
    /// The local store failed. The client tries again.
    case storeFailed(reason: String)
}

/// A packet as the debug tap shows it: never its content, which may be secret.
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
    /// The time from the request to its answer; nil for other packets.
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
