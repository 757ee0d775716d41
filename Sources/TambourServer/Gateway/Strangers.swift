import Synchronization
import TambourNet
import TambourProtocol

/// The connections that have not logged in, over all lanes: who of them makes room for others.
///
/// Connections older than `strangerGraceMs` go first. Of these go the ones that have said least, and of
/// those the oldest. Each operation is O(1), amortised: a list keeps the place of a connection that has
/// moved to another stage until somebody looks at it.
final class Strangers: Sendable {
    /// How far a connection has come; a lower stage makes room first.
    enum Stage: Int, CaseIterable {
        /// It has not sent SESSION_INIT.
        case silent
        case talking
        /// Its first LOGIN is under way. After a refusal a connection is `talking` for good, or bad
        /// tokens would keep its place.
        case loggingIn
    }

    fileprivate struct Stranger {
        let session: Session
        let address: PeerAddress
        let openedMs: Int64
        var stage: Stage
        var wasRefused = false
        /// Names the one place in a line that counts.
        var ticket: UInt64
    }

    fileprivate struct Place {
        let id: UInt64
        let ticket: UInt64
    }

    /// Places of connections by stage, oldest first.
    fileprivate struct Line {
        var count = 0
        var stages = Stage.allCases.map { _ in FIFO<Place>() }
        /// The number of places that were looked at.
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

    /// The number of strangers to close for each one above the bound, so that their number falls.
    private static let closedForOne = 2

    init(limits: Limits) {
        perAddress = limits.maxStrangersPerAddress
        graceMs = Int64(limits.strangerGraceMs)
    }

    var count: Int { state.withLock { $0.strangers.count } }

    /// The number of places that all operations so far have looked at in the line of everybody.
    var looks: Int { state.withLock { $0.all.looks } }

    /// A connection has come, or its login has failed after all; one that is known moves.
    ///
    /// - Parameter id: of the connection, never used twice.
    /// - Returns: those of its address that have to go, because there are too many. Those that came
    ///   within `strangerGraceMs` stay: after an outage everybody comes at once.
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

    /// A connection has come to another stage.
    func moved(_ id: UInt64, to stage: Stage) {
        state.withLock { $0.move(id, to: stage) }
    }

    /// The LOGIN of a connection has failed: none of its later ones protects it.
    func refused(_ id: UInt64) {
        state.withLock { state in
            state.strangers[id]?.wasRefused = true
            state.move(id, to: .talking)
        }
    }

    /// A connection has logged in, or is gone.
    func left(_ id: UInt64) {
        state.withLock { _ = $0.remove(id) }
    }

    /// Takes the connection that makes room for another one; nil when everybody has logged in.
    func takeOldest(nowMs: Int64) -> Session? {
        state.withLock { state in
            let oldest = state.oldest(cameBefore: nowMs - graceMs) ?? state.oldest(cameBefore: .max)
            return oldest.flatMap { state.remove($0)?.session }
        }
    }
}

extension Strangers.Line {
    /// Dead places are dropped from this many on, when they are half of the list.
    private static var keptDead: Int { 64 }

    /// - Parameter strangers: all of them; each has one live place in one of the lists.
    fileprivate mutating func append(
        _ place: Strangers.Place,
        _ stage: Strangers.Stage,
        _ strangers: [UInt64: Strangers.Stranger]
    ) {
        stages[stage.rawValue].append(place)
        let length = stages[stage.rawValue].count
        guard length > 2 * count + Self.keptDead else { return }
        looks += length
        stages[stage.rawValue].removeAll { strangers[$0.id]?.ticket != $0.ticket }
    }

    /// The oldest of the lowest stage, of those that came before a time.
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

    /// Gives a connection the last place of its stage.
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
