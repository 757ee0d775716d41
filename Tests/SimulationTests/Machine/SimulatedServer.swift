import Glibc
import Logging
import TambourNet
import TambourProtocol
import TambourSQL
import TambourStore
import TambourTesting

@testable import TambourGateway
@testable import TambourMessenger
@testable import TambourServer

/// The whole server without listeners, in one life of its process.
///
/// `@unchecked Sendable`: everything happens on the thread that runs the simulation.
final class SimulatedServer: @unchecked Sendable {
    let server: Server
    let life: ServerLife
    private var isPoked = false

    /// - Parameter offsetMs: Returns the offset of the server's wall clock from the machine's
    ///   clock. The server's clock calls it at each use.
    init(
        directory: String,
        limits: Limits,
        loop: EventLoop,
        offsetMs: @escaping () -> Int64
    ) throws {
        let life = ServerLife(loop: loop)
        self.life = life
        let clock = Clock(loop: loop, offsetMs: offsetMs)
        var logger = Logger(label: "simulation") { _ in SwiftLogNoOpLogHandler() }
        logger.logLevel = .critical
        let environment = Environment(
            wallMs: { clock.wallMs },
            randomBytes: { clock.randomBytes($0) },
            scheduler: life,
            disk: { [unowned life] in life.disk($0, $1) }
        )
        server = try Server(
            ServerConfiguration(
                listen: [],
                dataDirectory: directory,
                loginCodes: LoginCodeSource(fixedDigits: nil) { _, _ in },
                lanes: 2,
                limits: limits,
                environment: environment,
                logger: logger
            )
        )
        // A restarted server forgets which people each user has found. The plays need users who
        // have found each other, so note all of them at every start.
        let users = (0..<Templates.users).map { Templates.shared.user($0) }
        for user in users { server.messenger.foundPeople.note(users, by: user) }
        server.startWithoutDoors()
    }

    /// `@unchecked Sendable`: everything happens on the thread that runs the simulation.
    private final class Clock: @unchecked Sendable {
        let loop: EventLoop
        let offsetMs: () -> Int64

        init(loop: EventLoop, offsetMs: @escaping () -> Int64) {
            self.loop = loop
            self.offsetMs = offsetMs
        }

        var wallMs: Int64 { loop.nowMs + offsetMs() }

        func randomBytes(_ count: Int) -> [UInt8] {
            (0..<count).map { _ in UInt8(truncatingIfNeeded: loop.random.next()) }
        }
    }

    /// Makes the lanes check their sockets.
    func poke() {
        guard !isPoked, !life.isDead else { return }
        isPoked = true
        for lane in server.gateway.lanes {
            life.run(on: lane.queue, after: .zero) { [weak self] in
                self?.isPoked = false
                lane.serve()
            }
        }
    }

    /// Ends the process abruptly.
    func crash() {
        if !life.isDead { life.die() }
        life.bury(server.gateway.lanes)
        // Break these references: a real process end would free them, but here they form a cycle.
        server.messenger.router.disconnect()
        server.messenger.router.connect(timer: nil)
    }
}
