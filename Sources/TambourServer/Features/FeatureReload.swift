import Dispatch
import Synchronization
import TambourProtocol

/// Where the rules come from.
package struct FeatureSource: Sendable {
    /// What the server begins with.
    package var rules: FeatureRules
    /// Reads the rules again, on the admin queue; nil when they come from nowhere.
    ///
    /// Throws what is wrong with them, in words for the person who wrote them.
    package var reload: (@Sendable () throws -> FeatureRules)?

    package static let none = FeatureSource(rules: .none)

    package init(rules: FeatureRules, reload: (@Sendable () throws -> FeatureRules)? = nil) {
        self.rules = rules
        self.reload = reload
    }
}

/// Rules on their way to all lanes, and what the lanes say of them.
final class FeatureReload: Sendable {
    let rules: FeatureRules
    private let lanes = DispatchGroup()
    private let told = Mutex(0)

    init(_ rules: FeatureRules, lanes count: Int) {
        self.rules = rules
        for _ in 0..<count { lanes.enter() }
    }

    /// A lane goes by these rules now.
    ///
    /// - Parameter told: how many of its sessions got other answers.
    func laneIsDone(told: Int) {
        self.told.withLock { $0 += told }
        lanes.leave()
    }

    /// - Returns: how many sessions got other answers; nil when a lane has not come to it yet.
    func wait(_ timeout: DispatchTimeInterval) -> Int? {
        lanes.wait(timeout: .now() + timeout) == .success ? told.withLock { $0 } : nil
    }
}

/// How many connections have which answer about a feature.
struct FeatureCount: Sendable, Equatable {
    var on = 0
    var off = 0
}
