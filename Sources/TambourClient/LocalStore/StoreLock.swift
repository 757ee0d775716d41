import Glibc

/// The lock that decides which of the processes sharing a store owns the connection to the server.
///
/// The kernel releases the lock when the process ends in any way.
final class StoreLock {
    private var descriptor: Int32 = -1
    private let path: String

    /// - Parameter path: the path of the store.
    init(path: String) {
        self.path = path + ".lock"
    }

    deinit { release() }

    var isHeld: Bool { descriptor >= 0 }

    /// Takes the lock if it is free. Returns whether this process holds the lock now.
    func take() -> Bool {
        if isHeld { return true }
        let opened = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard opened >= 0 else { return false }
        guard flock(opened, LOCK_EX | LOCK_NB) == 0 else {
            close(opened)
            return false
        }
        descriptor = opened
        return true
    }

    func release() {
        guard isHeld else { return }
        close(descriptor)
        descriptor = -1
    }
}
