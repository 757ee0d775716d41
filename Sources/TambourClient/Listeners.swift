import Synchronization
import TambourProtocol

/// The streams of a client's listeners.
final class Listeners: Sendable {
    private struct State {
        var changes: [Int: AsyncStream<ChangeSet>.Continuation] = [:]
        var states: [Int: AsyncStream<ConnectionState>.Continuation] = [:]
        var events: [Int: AsyncStream<ClientEvent>.Continuation] = [:]
        var state = ConnectionState.stopped
        /// The reason why the server or another process signed the account out.
        var signedOutReason: String?
        var lastID = 0
        /// The changes that each listener has not consumed yet.
        var untold: [Int: ChangeSet] = [:]
    }

    private static let keptEvents = 256
    private let guarded = Mutex(State())

    var state: ConnectionState { guarded.withLock { $0.state } }

    var signedOutReason: String? { guarded.withLock { $0.signedOutReason } }

    /// Passes a notice on to the listeners. Called on the lane only, which keeps notices in order.
    ///
    /// Notifies listeners after releasing this object's lock, to avoid a deadlock: a terminating
    /// stream holds a lock that `yield` needs, and waits for this object's lock.
    func tell(_ notice: ClientDriver.Notice) {
        switch notice {
        case .changes(let changes):
            let (listeners, untold) = guarded.withLock { ($0.changes, $0.untold) }
            for (id, listener) in listeners {
                // If the listener has not consumed the buffered set, the union of that set and the
                // new set replaces it. No change is lost.
                var whole = untold[id] ?? ChangeSet()
                whole.formUnion(changes)
                var isDropped = false
                if case .dropped = listener.yield(whole) { isDropped = true }
                let left = isDropped ? whole : changes
                guarded.withLock { if $0.changes[id] != nil { $0.untold[id] = left } }
            }
        case .state(let state):
            let listeners = guarded.withLock { guarded in
                guarded.state = state
                if state == .online { guarded.signedOutReason = nil }
                return Array(guarded.states.values)
            }
            for listener in listeners { listener.yield(state) }
        case .event(let event):
            let listeners = guarded.withLock { guarded in
                if case .signedOut(let reason) = event { guarded.signedOutReason = reason }
                return Array(guarded.events.values)
            }
            for listener in listeners { listener.yield(event) }
        }
    }

    func changes() -> AsyncStream<ChangeSet> {
        AsyncStream(bufferingPolicy: .bufferingNewest(1)) { continuation in
            let id = guarded.withLock { guarded in
                guarded.lastID += 1
                guarded.changes[guarded.lastID] = continuation
                return guarded.lastID
            }
            continuation.onTermination = { [weak self] _ in
                self?.guarded.withLock {
                    $0.changes[id] = nil
                    $0.untold[id] = nil
                }
            }
        }
    }

    func states() -> AsyncStream<ConnectionState> {
        AsyncStream(bufferingPolicy: .bufferingNewest(1)) { continuation in
            let id = guarded.withLock { guarded in
                guarded.lastID += 1
                guarded.states[guarded.lastID] = continuation
                continuation.yield(guarded.state)
                return guarded.lastID
            }
            continuation.onTermination = { [weak self] _ in
                self?.guarded.withLock { $0.states[id] = nil }
            }
        }
    }

    func events() -> AsyncStream<ClientEvent> {
        AsyncStream(bufferingPolicy: .bufferingNewest(Self.keptEvents)) { continuation in
            let id = guarded.withLock { guarded in
                guarded.lastID += 1
                guarded.events[guarded.lastID] = continuation
                return guarded.lastID
            }
            continuation.onTermination = { [weak self] _ in
                self?.guarded.withLock { $0.events[id] = nil }
            }
        }
    }

    /// Ends all streams.
    func finish() {
        let state = guarded.withLock { guarded in
            defer { guarded = State() }
            return guarded
        }
        for listener in state.changes.values { listener.finish() }
        for listener in state.states.values { listener.finish() }
        for listener in state.events.values { listener.finish() }
    }
}
