import Dispatch
import Synchronization
import TambourMessenger
import TambourProtocol

/// A reload of feature rules. Contains the new rules for all lanes, and collects the results of the
/// lanes.
final class FeatureReload: Sendable {
    let rules: FeatureRules
    private let lanes = DispatchGroup()
    private let told = Mutex(0)

    init(_ rules: FeatureRules, lanes count: Int) {
        self.rules = rules
        for _ in 0..<count { lanes.enter() }
    }

    /// Records that a lane has applied the rules.
    ///
    /// - Parameter told: the number of the lane's sessions that got new decisions.
    func laneIsDone(told: Int) {
        self.told.withLock { $0 += told }
        lanes.leave()
    }

    /// - Returns: the number of sessions that got new decisions; nil when a lane did not finish
    ///   within `timeout`.
    func wait(_ timeout: DispatchTimeInterval) -> Int? {
        lanes.wait(timeout: .now() + timeout) == .success ? told.withLock { $0 } : nil
    }
}
