import Foundation
import Glibc

/// Where the copies of photos are kept that wait to be sent: beside the account's store, in a folder
/// that its owner alone reads, each under the id of the task that made it.
struct PhotoFolder: Sendable {
    private let path: String

    /// - Parameter store: the path of the account's store.
    /// - Returns: nil for a store that is in memory.
    init?(store: String) {
        guard store != LocalStore.inMemory else { return nil }
        path = store + ".photos"
    }

    func path(of keeper: TaskID) -> String { "\(path)/\(keeper)" }

    func remove(_ keepers: [TaskID]) {
        for keeper in keepers { unlink(path(of: keeper)) }
    }

    /// Removes what a process that died left behind, half copies too.
    func removeAll(but keepers: Set<TaskID>) {
        let kept = Set(keepers.map { "\($0)" })
        let names = (try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []
        for name in names where !kept.contains(name) { unlink("\(path)/\(name)") }
    }
}
