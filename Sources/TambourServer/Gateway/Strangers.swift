import Synchronization
import TambourNet
import TambourProtocol

/// The connections that have not logged in, over all lanes: who of them makes room for others.
///
/// Those go first that came longer ago than `strangerGraceMs`, of these the ones that have said least,
/// of these the oldest. Each operation is O(1), amortised: lists keep the ids of connections that have
/// moved on until they are looked at.
final class Strangers: Sendable {
    /// How far a connection has come; a lower stage makes room first.
    enum Stage: Int, CaseIterable {
        /// It has not sent SESSION_INIT.
        case silent
        case talking
        /// A LOGIN is under way.
        case loggingIn
    }

    fileprivate struct Stranger {
        let session: Session
        let address: PeerAddress
        let openedMs: Int64
        var stage: Stage
    }

    /// Ids of connections by stage, oldest first; those of connections in another stage count for nothing.
    fileprivate struct Line {
        var count = 0
        var stages = Stage.allCases.map { _ in FIFO<UInt64>() }
    }

    fileprivate struct State {
        var strangers: [UInt64: Stranger] = [:]
        var all = Line()
        var byAddress: [PeerAddress: Line] = [:]
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

    /// A connection has come, or its login has failed after all; one that is known moves.
    ///
    /// - Parameter id: of the connection, never used twice.
    /// - Returns: those of its address that have to go, because there are too many. Those that came
    ///   within `strangerGraceMs` stay, as do those whose LOGIN is under way: after an outage
    ///   everybody comes at once.
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
                stage: stage
            )
            state.all.count += 1
            state.all.append(id, stage, state.strangers)
            state.byAddress[address, default: Line()].count += 1
            state.byAddress[address]?.append(id, stage, state.strangers)
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
    /// Dead ids are dropped from this many on, when they are half of the list.
    private static var keptDead: Int { 64 }

    fileprivate mutating func append(
        _ id: UInt64,
        _ stage: Strangers.Stage,
        _ strangers: [UInt64: Strangers.Stranger]
    ) {
        stages[stage.rawValue].append(id)
        guard stages[stage.rawValue].count > 2 * count + Self.keptDead else { return }
        stages[stage.rawValue].removeAll { strangers[$0]?.stage != stage }
    }

    /// The oldest of the lowest stage, of those that came before a time.
    fileprivate mutating func oldest(
        _ strangers: [UInt64: Strangers.Stranger],
        of wanted: [Strangers.Stage],
        cameBefore time: Int64
    ) -> UInt64? {
        for stage in wanted {
            while let id = stages[stage.rawValue].first {
                guard let stranger = strangers[id], stranger.stage == stage else {
                    _ = stages[stage.rawValue].popFirst()
                    continue
                }
                if stranger.openedMs <= time { return id }
                break
            }
        }
        return nil
    }
}

extension Strangers.State {
    fileprivate mutating func move(_ id: UInt64, to stage: Strangers.Stage) {
        guard let stranger = strangers[id], stranger.stage != stage else { return }
        strangers[id]?.stage = stage
        all.append(id, stage, strangers)
        byAddress[stranger.address]?.append(id, stage, strangers)
    }

    fileprivate mutating func oldest(cameBefore time: Int64) -> UInt64? {
        all.oldest(strangers, of: Strangers.Stage.allCases, cameBefore: time)
    }

    /// The oldest of an address whose LOGIN is not under way.
    fileprivate mutating func oldest(of address: PeerAddress, cameBefore time: Int64) -> UInt64? {
        byAddress[address]?.oldest(strangers, of: [.silent, .talking], cameBefore: time)
    }

    fileprivate mutating func remove(_ id: UInt64) -> Strangers.Stranger? {
        guard let stranger = strangers.removeValue(forKey: id) else { return nil }
        all.count -= 1
        byAddress[stranger.address]?.count -= 1
        if byAddress[stranger.address]?.count == 0 { byAddress[stranger.address] = nil }
        return stranger
    }
}
