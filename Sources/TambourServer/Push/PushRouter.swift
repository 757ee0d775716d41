import Synchronization
import TambourNet
import TambourStore

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

    /// Posts other rules of features to all lanes: behind every push that was routed before.
    func route(_ reload: FeatureReload) {
        for gateway in gateways.withLock({ $0 }) { gateway.post(.features(reload)) }
    }
}
