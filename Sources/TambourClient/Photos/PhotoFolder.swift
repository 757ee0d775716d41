import Foundation
import Glibc

/// The folder for copies of queued photos. It is next to the account's store and readable by its
/// owner only. Each copy has the name of the task that created it.
struct PhotoFolder: Sendable {
    private let path: String

    /// - Parameter store: the path of the account's store.
    /// - Returns: nil for a store in memory.
    init?(store: String) {
        guard store != LocalStore.inMemory else { return nil }
        path = store + ".photos"
    }

    func path(of keeper: TaskID) -> String { "\(path)/\(keeper)" }

    func remove(_ keepers: [TaskID]) {
        for keeper in keepers { unlink(path(of: keeper)) }
    }

    /// Removes all files except the copies that the tasks `keepers` created. Also removes partial
    /// copies, which dead processes have left.
    func removeAll(but keepers: Set<TaskID>) {
        let kept = Set(keepers.map { "\($0)" })
        let names = (try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []
        for name in names where !kept.contains(name) { unlink("\(path)/\(name)") }
    }
}
