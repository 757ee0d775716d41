public import TambourProtocol

/// What the core of a client asks of the world around it. All calls come from where the core is driven.
package protocol ClientHost: AnyObject {
    /// Opens a connection; `connectionOpened` or `connectionClosed` tells the core what came of it.
    func connect(to server: String)

    /// Closes the connection, or gives up opening one; the core hears of it no more.
    func disconnect()

    /// Sends bytes on the connection, after all that was sent before.
    func send(_ bytes: [UInt8])

    /// Calls the core's `wake` in so many milliseconds, and not for what was asked before; nil for not at all.
    func wake(afterMs: Int64?)

    /// Begins what takes time; `photoReported` tells the core how it goes.
    func begin(_ work: PhotoWork)

    /// Nobody waits for the work of this run any more, if it is not over yet.
    func giveUp(_ run: TaskRun)

    /// The store has changed.
    func publish(_ changes: ChangeSet)

    /// The state of the connection has changed.
    func publish(_ state: ConnectionState)

    /// Something that is not kept has happened.
    func publish(_ event: ClientEvent)
}

/// Where a client stands with its server.
public enum ConnectionState: Hashable, Sendable {
    /// Nobody is signed in: a code has to be asked for.
    case signedOut
    /// The client was not started, or stopped.
    case stopped
    /// Another process of this account is connected, and does what is asked for here.
    case elsewhere
    /// Connecting, or waiting to do so again: `attempt` counts from 1 since it was last online.
    case connecting(attempt: Int)
    /// Connected; what changed meanwhile is on its way.
    case syncing
    /// Everything that has happened is here or announced.
    case online
}

/// What happens and is not kept.
public enum ClientEvent: Hashable, Sendable {
    /// Somebody is typing in a chat; it holds for some seconds.
    case typing(ChatID, UserID)
    /// The account was signed out by the server, whose word `reason` is, or by another process.
    case signedOut(reason: String)
    /// The server refused something that had been shown as done: `reason` is for people.
    case refused(String)
    /// A packet went over the wire; only while `ClientOptions.tapsFrames` is set.
    case frame(FrameTap)
    /// The local store failed; the client tries again.
    case storeFailed(reason: String)
}

/// One packet as the debug tap shows it: never what is in it, for that may be secret.
public struct FrameTap: Hashable, Sendable {
    public enum Direction: Hashable, Sendable {
        case sent
        case received
    }

    public let direction: Direction
    /// `request`, `reply`, `error` or `push`.
    public let kind: String
    /// As `MSG_SEND`, or a number.
    public let opcode: String
    public let sequence: UInt16
    /// Bytes on the wire, header included.
    public let bytes: Int
    /// How long the answer took.
    public let roundTrip: Duration?
}

/// Time and chance, as the core is given them.
package struct ClientEnvironment {
    /// Milliseconds since 1970 on this device, which may be wrong by years.
    package var wallMs: () -> Int64
    /// Milliseconds of a clock that never goes back.
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
