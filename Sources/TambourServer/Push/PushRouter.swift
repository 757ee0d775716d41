import Synchronization
import TambourNet
import TambourStore

/// Counts the lanes that have delivered what was posted before it.
final class DeliveryReceipt: Sendable {
    private let left: Atomic<Int>
    private let body: @Sendable () -> Void

    init(lanes: Int, _ body: @escaping @Sendable () -> Void) {
        left = Atomic(lanes)
        self.body = body
    }

    /// Called once by each lane.
    func laneIsDone() {
        if left.subtract(1, ordering: .relaxed).newValue == 0 { body() }
    }
}

/// Hands events to every lane, and login codes to their delivery.
///
/// All pushes come from here. The engine calls it after each commit, readers for events that are
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

    /// Calls `body` after the codes that were routed before are handed over and their delivery has
    /// ended.
    func stopCodes(then body: @escaping @Sendable () -> Void) {
        let codes = codes
        codeQueue.async { codes.stop(body) }
    }

    /// Posts the events to all lanes. A reply that is posted afterwards comes after them.
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

    /// Calls `body`, on any queue, once every lane has delivered what was routed before.
    func whenDelivered(_ body: @escaping @Sendable () -> Void) {
        let gateways = gateways.withLock { $0 }
        guard !gateways.isEmpty else { return body() }
        let receipt = DeliveryReceipt(lanes: gateways.count, body)
        for gateway in gateways { gateway.post(.delivered(receipt)) }
    }

    /// Posts new feature rules to all lanes, after every push that was routed before.
    func route(_ reload: FeatureReload) {
        for gateway in gateways.withLock({ $0 }) { gateway.post(.features(reload)) }
    }
}
