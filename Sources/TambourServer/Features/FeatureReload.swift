import Dispatch
import Synchronization
import TambourProtocol

/// The source of the feature rules.
package struct FeatureSource: Sendable {
    /// The rules at startup.
    package var rules: FeatureRules
    /// Reads the rules again, on the admin queue; nil without a file.
    ///
    /// Throws an error in words for the person who wrote the rules.
    package var reload: (@Sendable () throws -> FeatureRules)?

    package static let none = FeatureSource(rules: .none)

    package init(rules: FeatureRules, reload: (@Sendable () throws -> FeatureRules)? = nil) {
        self.rules = rules
        self.reload = reload
    }
}

/// New rules on their way to all lanes, and the lanes' results.
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
    /// - Parameter told: how many of its sessions got new answers.
    func laneIsDone(told: Int) {
        self.told.withLock { $0 += told }
        lanes.leave()
    }

    /// - Returns: how many sessions got new answers; nil when a lane did not finish in time.
    func wait(_ timeout: DispatchTimeInterval) -> Int? {
        lanes.wait(timeout: .now() + timeout) == .success ? told.withLock { $0 } : nil
    }
}

/// The number of connections with each answer about a feature.
struct FeatureCount: Sendable, Equatable {
    var on = 0
    var off = 0
}
