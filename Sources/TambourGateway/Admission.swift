import Glibc
import Logging
import Synchronization
import TambourMessenger
import TambourProtocol

/// Admits or refuses accepted sockets, depending on the number of free descriptors. To make room,
/// closes strangers. A stranger is a connection that has not logged in.
///
/// The system gives a new socket the lowest free descriptor. At least that many descriptors are
/// therefore in use. When a low descriptor has just become free, this estimate is too low. The
/// number of connections is a second estimate. The server uses the larger of the two.
final class Admission: Sendable {
    private let strangers: Strangers
    private let metrics: ServerMetrics
    private let log: ThrottledLog
    private let nowMs: @Sendable () -> Int64
    /// When this many descriptors are in use, the server closes the oldest stranger for each new
    /// connection.
    private let crowdedFrom: Int
    /// When this many descriptors are in use, the server refuses new connections. It gets this far
    /// when strangers close more slowly than new connections arrive.
    private let fullFrom: Int
    /// The number of descriptors in use before the first connection.
    private let ownDescriptors = Atomic<Int>(0)

    /// The number of strangers to close when no descriptor is left.
    private static let closedWhenExhausted = 32

    /// - Parameters:
    ///   - descriptors: the process's limit of open file descriptors.
    ///   - nowMs: the lanes' clock.
    init(
        descriptors: Int,
        limits: Limits,
        strangers: Strangers,
        metrics: ServerMetrics,
        logger: Logger,
        nowMs: @escaping @Sendable () -> Int64
    ) {
        self.strangers = strangers
        self.metrics = metrics
        log = ThrottledLog(logger, nowMs: nowMs)
        self.nowMs = nowMs
        let reserve = min(limits.reservedDescriptors, descriptors / 4)
        crowdedFrom = descriptors - reserve
        fullFrom = descriptors - reserve / 2
    }

    /// The limit of descriptors of this process.
    static var descriptorLimit: Int {
        var limit = rlimit()
        getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        return Int(clamping: limit.rlim_cur)
    }

    /// Counts the descriptors that the server has before the first connection.
    func begin() {
        let lowestFree = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)
        guard lowestFree >= 0 else { return }
        close(lowestFree)
        ownDescriptors.store(Int(clamping: lowestFree), ordering: .relaxed)
    }

    /// Returns whether an accepted socket may stay, and closes the oldest stranger when descriptors
    /// are scarce.
    func admits(_ descriptor: Int32) -> Bool {
        let connections = metrics.connectionCount
        let used = max(
            Int(clamping: descriptor),
            ownDescriptors.load(ordering: .relaxed) + connections
        )
        guard used >= crowdedFrom else { return true }
        let hasRoom = closeOldest() && used < fullFrom
        if !hasRoom { metrics.connectionsRefused.add(1) }
        log.warning(
            """
            file descriptors are nearly exhausted; closing connections that have not logged in. \
            Raise LimitNOFILE.
            """
        )
        return hasRoom
    }

    /// Closes strangers after descriptors or memory ran out. Afterwards the listeners pause for a
    /// moment.
    func exhausted() {
        metrics.acceptPauses.add(1)
        for _ in 0..<Self.closedWhenExhausted where !closeOldest() { break }
        log.warning(
            "out of file descriptors or memory; accepting pauses for 100 ms. Raise LimitNOFILE."
        )
    }

    private func closeOldest() -> Bool {
        guard let oldest = strangers.takeOldest(nowMs: nowMs()) else { return false }
        metrics.strangersClosedForRoom.add(1)
        oldest.gateway.post(.makeRoom(oldest))
        return true
    }
}
