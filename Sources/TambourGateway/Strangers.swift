import Synchronization
import TambourMessenger
import TambourProtocol
import TambourQueues

/// Tracks the strangers of all lanes, and chooses which of them to close. A stranger is a
/// connection that has not logged in.
///
/// Connections older than `strangerGraceMs` are closed first. Among them, connections at the lowest
/// stage are closed first. Within a stage, the oldest connection is closed first.
///
/// Each operation is O(1), amortised. A connection that moves to another stage leaves a stale place
/// in its old list. A later operation drops this place.
final class Strangers: Sendable {
    /// The progress of a connection. Connections at a lower stage are closed first.
    enum Stage: Int, CaseIterable {
        /// Before SESSION_INIT.
        case silent
        /// After SESSION_INIT.
        case talking
        /// During the first LOGIN. After a refused LOGIN, a connection stays at `talking`.
        /// Otherwise it could protect itself by sending bad tokens.
        case loggingIn
    }

    fileprivate struct Stranger {
        let session: Session
        let address: PeerAddress
        let openedMs: Int64
        var stage: Stage
        var wasRefused = false
        /// The ticket of the connection's two valid places. One place is in the line of all
        /// addresses, the other in the line of the connection's own address. Places with other
        /// tickets are stale.
        var ticket: UInt64
    }

    fileprivate struct Place {
        let id: UInt64
        let ticket: UInt64
    }

    /// The places of connections by stage, oldest first.
    fileprivate struct Line {
        var count = 0
        var stages = Stage.allCases.map { _ in FIFO<Place>() }
        /// The number of places that all operations have examined in this line, for tests.
        var looks = 0
    }

    fileprivate struct State {
        var strangers: [UInt64: Stranger] = [:]
        var all = Line()
        var byAddress: [PeerAddress: Line] = [:]
        var lastTicket: UInt64 = 0
    }

    private let perAddress: Int
    private let graceMs: Int64
    private let state = Mutex(State())

    /// The number of strangers to close when one arrives above the limit. Two are closed for one
    /// that arrives, so the number of strangers falls.
    private static let closedForOne = 2

    init(limits: Limits) {
        perAddress = limits.maxStrangersPerAddress
        graceMs = Int64(limits.strangerGraceMs)
    }

    var count: Int { state.withLock { $0.strangers.count } }

    /// The number of places that all operations have examined in the line `all`, for tests.
    var looks: Int { state.withLock { $0.all.looks } }

    /// Adds a connection that has just opened, or that has become a stranger again because its
    /// LOGIN failed. If the connection is already in the list, moves it to `stage`.
    ///
    /// - Parameter id: the id of the connection, which is never reused.
    /// - Returns: the sessions to close because their address has too many strangers. Connections
    ///   younger than `strangerGraceMs` stay open, because all clients reconnect at once after an
    ///   outage.
    func entered(
        _ session: Session,
        id: UInt64,
        address: PeerAddress,
        stage: Stage,
        nowMs: Int64
    ) -> [Session] {
        state.withLock { state in
            guard state.strangers[id] == nil else {
                state.move(id, to: stage)
                return []
            }
            state.strangers[id] = Stranger(
                session: session,
                address: address,
                openedMs: nowMs,
                stage: stage,
                ticket: 0
            )
            state.all.count += 1
            state.byAddress[address, default: Line()].count += 1
            state.queue(id)
            var leaving: [Session] = []
            while leaving.count < Self.closedForOne,
                let line = state.byAddress[address], line.count > perAddress,
                let oldest = state.oldest(of: address, cameBefore: nowMs - graceMs)
            {
                if let session = state.remove(oldest)?.session { leaving.append(session) }
            }
            return leaving
        }
    }

    /// Moves a connection to another stage.
    func moved(_ id: UInt64, to stage: Stage) {
        state.withLock { $0.move(id, to: stage) }
    }

    /// Records that a LOGIN was refused. Later LOGINs do not move the connection to `loggingIn`.
    func refused(_ id: UInt64) {
        state.withLock { state in
            state.strangers[id]?.wasRefused = true
            state.move(id, to: .talking)
        }
    }

    /// Removes a connection that has logged in or closed.
    func left(_ id: UInt64) {
        state.withLock { _ = $0.remove(id) }
    }

    /// Removes a stranger, which the caller closes to make room for a new connection, and returns
    /// it. Returns nil if there are no strangers.
    func takeOldest(nowMs: Int64) -> Session? {
        state.withLock { state in
            let oldest = state.oldest(cameBefore: nowMs - graceMs) ?? state.oldest(cameBefore: .max)
            return oldest.flatMap { state.remove($0)?.session }
        }
    }
}

extension Strangers.Line {
    /// The number of stale places that a list may always keep. A list drops its stale places when
    /// its length exceeds twice the line's number of connections plus this number.
    private static var keptStale: Int { 64 }

    /// - Parameter strangers: all strangers. Each stranger of this line has exactly one valid place
    ///   in its lists.
    fileprivate mutating func append(
        _ place: Strangers.Place,
        _ stage: Strangers.Stage,
        _ strangers: [UInt64: Strangers.Stranger]
    ) {
        stages[stage.rawValue].append(place)
        let length = stages[stage.rawValue].count
        guard length > 2 * count + Self.keptStale else { return }
        looks += length
        stages[stage.rawValue].removeAll { strangers[$0.id]?.ticket != $0.ticket }
    }

    /// Returns the oldest connection at the lowest stage. Considers only connections that opened
    /// before `time`.
    fileprivate mutating func oldest(
        _ strangers: [UInt64: Strangers.Stranger],
        cameBefore time: Int64
    ) -> UInt64? {
        for stage in Strangers.Stage.allCases {
            while let place = stages[stage.rawValue].first {
                looks += 1
                guard let stranger = strangers[place.id], stranger.ticket == place.ticket else {
                    _ = stages[stage.rawValue].popFirst()
                    continue
                }
                if stranger.openedMs <= time { return place.id }
                break
            }
        }
        return nil
    }
}

extension Strangers.State {
    fileprivate mutating func move(_ id: UInt64, to stage: Strangers.Stage) {
        guard let stranger = strangers[id], stranger.stage != stage else { return }
        if stage == .loggingIn, stranger.wasRefused { return }
        strangers[id]?.stage = stage
        queue(id)
    }

    /// Appends a connection to the list of its stage.
    fileprivate mutating func queue(_ id: UInt64) {
        lastTicket += 1
        strangers[id]?.ticket = lastTicket
        guard let stranger = strangers[id] else { return }
        let place = Strangers.Place(id: id, ticket: lastTicket)
        all.append(place, stranger.stage, strangers)
        byAddress[stranger.address]?.append(place, stranger.stage, strangers)
    }

    fileprivate mutating func oldest(cameBefore time: Int64) -> UInt64? {
        all.oldest(strangers, cameBefore: time)
    }

    fileprivate mutating func oldest(of address: PeerAddress, cameBefore time: Int64) -> UInt64? {
        byAddress[address]?.oldest(strangers, cameBefore: time)
    }

    fileprivate mutating func remove(_ id: UInt64) -> Strangers.Stranger? {
        guard let stranger = strangers.removeValue(forKey: id) else { return nil }
        all.count -= 1
        byAddress[stranger.address]?.count -= 1
        if byAddress[stranger.address]?.count == 0 { byAddress[stranger.address] = nil }
        return stranger
    }
}
