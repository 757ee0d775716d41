import Synchronization
import TambourNet
import TambourStore

/// Counts the lanes that have delivered something.
final class DeliveryReceipt: Sendable {
    private let left: Atomic<Int>
    private let body: @Sendable () -> Void

    init(lanes: Int, _ body: @escaping @Sendable () -> Void) {
        left = Atomic(lanes)
        self.body = body
    }

    /// Called by each lane once.
    func laneIsDone() {
        if left.subtract(1, ordering: .relaxed).newValue == 0 { body() }
    }
}

/// Hands events to every lane, and login codes to whoever delivers them.
///
/// The only place that pushes come from: the engine calls it after each commit, readers for what is
/// not stored (typing), presence for its own.
package final class PushRouter: Sendable {
    private let gateways = Mutex<[LaneGateway]>([])
    private let delayed = Mutex<DelayedTimer?>(nil)
    private let codes: LoginCodeSource
    private let codeQueue: SerialQueue

    init(codes: LoginCodeSource, environment: Environment) {
        self.codes = codes
        codeQueue = SerialQueue(label: "tambour.login-codes", simulated: environment.scheduler)
    }

    func connect(_ gateways: [LaneGateway]) {
        self.gateways.withLock { $0 = gateways }
    }

    func connect(timer: DelayedTimer?) {
        delayed.withLock { $0 = timer }
    }

    /// Calls `body` when the codes that were routed before are handed over and their delivery has ended.
    func stopCodes(then body: @escaping @Sendable () -> Void) {
        let codes = codes
        codeQueue.async { codes.stop(body) }
    }

    /// Posts the events to all lanes; whoever posts a reply afterwards posts it behind them.
    func route(_ events: [Event]) {
        guard !events.isEmpty else { return }
        var pushes: [Event] = []
        for event in events {
            switch event {
            case .code(let code, let recipient):
                let deliver = codes.deliver
                codeQueue.async { deliver(recipient, code) }
            case .delayed(let time):
                delayed.withLock { $0 }?.arm(at: time)
            default:
                pushes.append(event)
            }
        }
        guard !pushes.isEmpty else { return }
        for gateway in gateways.withLock({ $0 }) { gateway.post(.events(pushes)) }
    }

    /// Calls `body` when every lane has delivered what was routed before; on any queue.
    func whenDelivered(_ body: @escaping @Sendable () -> Void) {
        let gateways = gateways.withLock { $0 }
        guard !gateways.isEmpty else { return body() }
        let receipt = DeliveryReceipt(lanes: gateways.count, body)
        for gateway in gateways { gateway.post(.delivered(receipt)) }
    }

    /// Posts other rules of features to all lanes: behind every push that was routed before.
    func route(_ reload: FeatureReload) {
        for gateway in gateways.withLock({ $0 }) { gateway.post(.features(reload)) }
    }
}
