import Synchronization
import TambourEvents
import TambourProtocol
import TambourQueues

/// Hands events to the doors, login codes to the `LoginCodeSource`, and due times to the
/// `DelayedTimer`.
///
/// All pushes pass through the router. The engine calls it after each commit. The store's readers
/// call it for events that are not stored, such as typing. The presence code calls it when a user's
/// presence changes.
package final class EventRouter: Sendable {
    private let doors = Mutex<[any Door]>([])
    private let delayed = Mutex<DelayedTimer?>(nil)
    private let codes: LoginCodeSource
    private let codeQueue: SerialQueue
    private let metrics: ServerMetrics

    init(codes: LoginCodeSource, environment: Environment, metrics: ServerMetrics) {
        self.codes = codes
        self.metrics = metrics
        codeQueue = SerialQueue(label: "tambour.login-codes", simulated: environment.scheduler)
    }

    /// Delivers all later events to a door. The router holds the door until `disconnect`.
    func connect(_ door: any Door) {
        doors.withLock { $0.append(door) }
    }

    func disconnect() {
        doors.withLock { $0 = [] }
    }

    func connect(timer: DelayedTimer?) {
        delayed.withLock { $0 = timer }
    }

    /// Hands over all earlier codes, waits until their delivery has ended, and then calls `body`.
    func stopCodes(then body: @escaping @Sendable () -> Void) {
        let codes = codes
        codeQueue.async { codes.stop(body) }
    }

    /// Distributes events. A reply that is handed over later reaches the client after these events.
    func route(_ events: [Event]) {
        guard !events.isEmpty else { return }
        var pushes: [Event] = []
        for event in events {
            switch event {
            case .code(let code, let recipient):
                let deliver = codes.deliver
                codeQueue.async { deliver(recipient, code) }
            case .codeWithheld:
                // Queue a withheld code like a delivered code, so that both cases take equally long
                // here.
                codeQueue.async { [metrics] in metrics.codesWithheld.add(1) }
            case .delayed(let time):
                delayed.withLock { $0 }?.arm(at: time)
            default:
                pushes.append(event)
            }
        }
        guard !pushes.isEmpty else { return }
        for door in doors.withLock({ $0 }) { door.deliver(pushes) }
    }

    /// Calls `body`, on any queue, once every door has delivered all earlier events.
    func whenDelivered(_ body: @escaping @Sendable () -> Void) {
        let doors = doors.withLock { $0 }
        guard !doors.isEmpty else { return body() }
        if doors.count == 1 { return doors[0].whenDelivered(body) }
        let left = Countdown(from: doors.count, body)
        for door in doors { door.whenDelivered { left.step() } }
    }

    /// Returns the users among `users` who have a client that receives unread counters with each
    /// message.
    ///
    /// - Parameter users: in the order of their ids.
    func counted(among users: [UserID]) -> [UserID] {
        let doors = doors.withLock { $0 }
        if doors.count == 1 { return doors[0].counted(among: users) }
        let counted = Set(doors.flatMap { $0.counted(among: users) })
        return users.filter { counted.contains($0) }
    }

    /// Returns a user's connected sessions.
    func sessions(of user: UserID) -> Set<SessionID> {
        doors.withLock { $0 }.reduce(into: []) { $0.formUnion($1.sessions(of: user)) }
    }
}
