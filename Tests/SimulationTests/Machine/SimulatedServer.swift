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

/// The whole server without its doors, in one life of its process.
///
/// `@unchecked Sendable`: everything happens on the thread that runs the simulation.
final class SimulatedServer: @unchecked Sendable {
    let server: Server
    let life: ServerLife
    private var isPoked = false

    /// - Parameter offsetMs: how far the server's wall clock is from the machine's; read at each look.
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
        // What a restart forgets; the plays of users begin with groups of people who have met.
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

    /// Has the lanes look at their sockets.
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

    /// Ends the process without a word.
    func crash() {
        if !life.isDead { life.die() }
        life.bury(server.gateway.lanes)
        // The process would take these with it; here they hold each other.
        server.messenger.router.disconnect()
        server.messenger.router.connect(timer: nil)
    }
}
