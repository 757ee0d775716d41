@testable import TambourClient

/// The work of photos, which no move asks for: the server refuses every message with one.
extension Device {
    func begin(_ work: PhotoWork) { preconditionFailure("no move sends a photo") }

    func giveUp(_ run: TaskRun) {}
}
