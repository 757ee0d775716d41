import ArgumentParser
import Configuration
import Foundation
import Logging
import TambourGateway
import TambourMessenger
import TambourNet
import TambourProtocol
import TambourServer

extension Tambourd {
    struct Serve: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Serves clients until SIGTERM or SIGINT.",
            discussion: """
                Every option can also stand in the environment (TAMBOUR_LISTEN, TAMBOUR_DATA, …) or \
                in a YAML or JSON file named by --config (keys: listen, tlsCertificate, tlsKey, tlsClientCA, data, loginCodes, registration, \
                userInvitations, linkPreviews, lanes, countries, auditDays, limits, features, logLevel). \
                A flag wins over the environment, the environment over the file.
                """
        )

        @Option(
            help: """
                Where to listen: HOST:PORT; may be given several times, port 0 takes a free one. \
                tls://HOST:PORT encrypts. tcp://HOST:PORT?dialect=tamtam is for apps of TamTam.
                """
        )
        var listen: [String] = []

        @Option(
            name: .customLong("tls-certificate"),
            help: """
                The certificate of tls:// listeners with its chain, in PEM; may be given several times, each \
                with its --tls-key. Clients get the one for the name they ask for, otherwise the first.
                """
        )
        var tlsCertificates: [String] = []

        @Option(
            name: .customLong("tls-key"),
            help: """
                The private key of the --tls-certificate at the same place, in PEM, not encrypted.
                """
        )
        var tlsKeys: [String] = []

        @Option(
            name: .customLong("tls-client-ca"),
            help: """
                Refuse clients of tls:// listeners without a certificate that an authority of this file \
                signed.
                """
        )
        var tlsClientCA: String?

        @Option(help: "The data directory; created when missing.")
        var data: String?

        @Option(
            help: """
                How login codes reach people: console, file:PATH, exec:PROGRAM, or fixed:DIGITS \
                (loopback listeners only).
                """
        )
        var loginCodes: String?

        @Option(
            help: """
                Who may create an account: open (everybody), invite (people with an invitation, see `admin \
                invites`) or closed. Existing accounts always log in. By default open.
                """
        )
        var registration: String?

        @Option(
            help: """
                How many people each user may invite within 30 days, with --registration invite. By default 0: \
                only the operator invites.
                """
        )
        var userInvitations: Int?

        @Option(
            help: """
                Who knows what is behind a link: exec:PROGRAM. Without it there are no previews of \
                links.
                """
        )
        var linkPreviews: String?

        @Option(
            name: .customLong("country"),
            help: """
                A country that apps offer for signing in, by its two letters; may be given several times, \
                the first is the one they begin with. Without it they offer all.
                """
        )
        var countries: [String] = []

        @Option(help: "Threads that serve connections; by default one less than there are cores.")
        var lanes: Int?

        @Option(help: "How many days the audit log goes back, 1 to 3650; 90 by default.")
        var auditDays: Int?

        @Option(help: "A YAML or JSON file that overrides limits by name.")
        var limits: String?

        @Option(
            help: """
                A YAML or JSON file that says which features are on for whom; `admin reload` reads it \
                again.
                """
        )
        var features: String?

        @Option(help: "trace, debug, info, notice, warning, error or critical.")
        var logLevel: String?

        @Option(help: "A YAML or JSON file with any of these options.")
        var config: String?

        func run() throws {
            Signals.block()
            let manager = ServiceManager.connect()
            let settings = try Settings(
                flags: self,
                environment: ProcessInfo.processInfo.environment
            )
            let logger = Self.logger(settings.logLevel)
            // Other users of this machine must not read the data.
            umask(0o077)
            let server: Server
            do {
                server = try Server(settings.server(logger: logger))
                for (endpoint, address) in zip(settings.listen, try server.start()) {
                    StandardOutput.writeLine("listening \(endpoint.transport) \(address)")
                }
            } catch {
                throw Failure(String(describing: error))
            }
            logger.notice(
                "serving",
                metadata: [
                    "lanes": "\(settings.lanes)", "descriptors": "\(Self.descriptorLimit())",
                ]
            )
            manager?.reportReady()
            manager?.watch { server.isAlive(within: $0) }
            let signal = Signals.waitForTermination {
                manager?.reportReloading()
                Self.reload(server, logger)
                manager?.reportReady()
            }
            manager?.reportStopping()
            logger.notice("stopping", metadata: ["signal": "\(signal)"])
            server.stop {
                logger.notice("stopped")
                Foundation.exit(0)
            }
            Signals.waitForSecondTermination()
        }

        /// Does the same as `admin reload`, and logs the result.
        private static func reload(_ server: Server, _ logger: Logger) {
            do {
                for line in try server.reload() { logger.notice("\(line)") }
            } catch {
                logger.error(
                    "a file is not reloaded, its old content stays",
                    metadata: ["reason": "\(error)"]
                )
            }
        }

        /// Creates a logger for structured lines on standard error. The lines never contain tokens,
        /// codes, phones or texts.
        private static func logger(_ level: Logger.Level) -> Logger {
            var logger = Logger(label: "tambourd") { StreamLogHandler.standardError(label: $0) }
            logger.logLevel = level
            return logger
        }

        /// Raises the soft limit of file descriptors to the hard limit, because each connection
        /// uses a descriptor. Returns the new limit.
        private static func descriptorLimit() -> Int {
            var limit = rlimit()
            let files = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
            getrlimit(files, &limit)
            limit.rlim_cur = limit.rlim_max
            setrlimit(files, &limit)
            getrlimit(files, &limit)
            return Int(clamping: limit.rlim_cur)
        }
    }
}

/// An error. Its description is the complete message for the user.
struct Failure: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) {
        self.description = description
    }
}

/// Prints lines for the person who started the program. Does not buffer the output, because a
/// program may read it through a pipe.
enum StandardOutput {
    static func writeLine(_ line: String) {
        try? FileHandle.standardOutput.write(contentsOf: Data("\(line)\n".utf8))
    }
}

/// Handles SIGTERM, SIGINT and SIGHUP. The first SIGTERM or SIGINT requests a graceful stop; a
/// second one ends the process at once. Before the stop, SIGHUP requests a reload.
///
/// The main thread waits for the signals with `sigwait`. With a dispatch source, the process would
/// have to ignore the signals, and a signal that arrives before the source is registered would be
/// lost.
enum Signals {
    private static let handled = [SIGTERM, SIGINT, SIGHUP]

    private static var handledSet: sigset_t {
        var signals = sigset_t()
        sigemptyset(&signals)
        for number in handled { sigaddset(&signals, number) }
        return signals
    }

    /// The thread that waits for the signals. `nonisolated(unsafe)`: the variable is set only once,
    /// before a handler or another thread exists.
    private nonisolated(unsafe) static var waiting = pthread_t()

    /// Blocks the signals until `waitForTermination` is called. Call this function before any
    /// thread is started, because threads inherit the signal mask.
    static func block() {
        signal(SIGPIPE, SIG_IGN)
        // The thread in which swift-subprocess watches programs does not block signals. Without a
        // handler, a signal that reaches this thread would end the server at once. The handler
        // forwards the signal to the waiting thread.
        waiting = pthread_self()
        for number in handled { signal(number) { pthread_kill(Signals.waiting, $0) } }
        var signals = handledSet
        pthread_sigmask(SIG_BLOCK, &signals, nil)
    }

    /// Waits for SIGTERM or SIGINT. Calls `reload` for each SIGHUP until then.
    static func waitForTermination(reload: () -> Void) -> Int32 {
        while true {
            let number = next()
            if number != SIGHUP { return number }
            reload()
        }
    }

    /// Ends the process with status 1 on the next SIGTERM or SIGINT.
    static func waitForSecondTermination() -> Never {
        while next() == SIGHUP {}
        // Do not call `exit`, because the functions that it runs may wait for a hanging thread.
        _exit(1)
    }

    private static func next() -> Int32 {
        var signals = handledSet
        var number: Int32 = 0
        while sigwait(&signals, &number) != 0 {}
        return number
    }
}
