import TambourGateway
package import TambourMessenger
package import TambourProtocol
import TambourSQL
package import TambourStore

/// A backend for a running server. Admin commands run as ordinary engine commands.
package struct LiveAdminBackend: AdminBackend {
    private unowned let server: Server

    package init(_ server: Server) {
        self.server = server
    }

    private var messenger: Messenger { server.messenger }
    package var environment: Environment { messenger.environment }
    package var limits: Limits { messenger.limits }

    package func write(_ body: @escaping @Sendable (WriteTransaction) throws -> Void) throws {
        try messenger.write(body)
    }

    package func read(_ body: @escaping @Sendable (StoreConnection) throws -> Void) throws {
        try messenger.read(body)
    }

    package func readApart<Result>(_ body: (StoreConnection) throws -> Result) throws -> Result {
        try body(messenger.openStore())
    }

    package func vacuum() throws -> (before: Int64, after: Int64) { try messenger.vacuum() }

    package var servesClients: Bool { true }

    package var metricsText: String? {
        // Health checks read the metrics. Without this check, a server with a hung lane, engine or
        // reader would look healthy.
        guard let lanes = server.gateway.laneReports(), (try? write { _ in }) != nil,
            (try? read { _ in }) != nil
        else { return nil }
        let now = environment.wallMs()
        return server.metrics.prometheusText(gauges: [
            .init("connections", "Open connections.", server.connectionCount),
            .init("sessions", "Logged-in connections.", server.gateway.sessionCount),
            .init(
                "strangers",
                "Connections that have not logged in.",
                server.gateway.strangerCount
            ),
            .init(
                "uptime_seconds",
                "Seconds since the start.",
                Int(clamping: now - server.metrics.startedMs) / 1000
            ),
            .init(
                "clock_drift_milliseconds",
                "How far the commit clock runs ahead of the wall.",
                Int(clamping: messenger.clockDrift(wall: now))
            ),
            .init(
                "lane_delay_seconds",
                "How long a block posted to each lane for this answer has waited.",
                each: "lane",
                lanes.map(\.delay)
            ),
            .init(
                "feature_connections",
                "Connections by what they were answered about a feature.",
                features: lanes.map(\.features)
            ),
            .init(
                "tls_certificate_expiry_seconds",
                "When each certificate expires, in seconds since 1970.",
                by: "file",
                server.certificates?.ends ?? []
            ),
        ])
    }

    package func reload() throws -> [String]? {
        try server.reload()
    }
}

/// A backend for a store that no server has opened. Commands run in this process, which holds the
/// lock of the data directory.
///
/// `@unchecked Sendable`: only the single thread of a command-line program uses it.
package final class OfflineAdminBackend: AdminBackend, @unchecked Sendable {
    package let environment: Environment
    package let limits: Limits
    private let directory: DataDirectory
    /// The engine. The first command that writes creates it. Commands that only read therefore also
    /// work on a store that the engine refuses.
    private var core: EngineCore?
    private let store: StoreConnection
    private let connection: any SQLFileConnection

    package init(
        dataDirectory: String,
        environment: Environment = .live,
        limits: Limits = .standard
    ) throws {
        self.environment = environment
        self.limits = limits
        directory = try DataDirectory(dataDirectory)
        let file = SQLFile(directory.databasePath)
        connection = try file.connect(.readWrite)
        try StoreConnection.migrate(connection)
        store = try StoreConnection(
            file.open(.readOnly),
            limits: limits
        )
    }

    private func makeCore() throws -> EngineCore {
        let writer = try StoreWriter(
            StoreConnection(connection, limits: limits),
            userIDs: environment.userIDs
        )
        return EngineCore(
            writer: writer,
            clock: CommitClock(
                persistedLeaseEnd: try writer.persistedLeaseEnd(),
                leaseMs: limits.commitLeaseMs
            ),
            metrics: ServerMetrics(startedMs: environment.wallMs()),
            report: { _ in }
        )
    }

    package func write(_ body: @escaping @Sendable (WriteTransaction) throws -> Void) throws {
        let core = try core ?? makeCore()
        self.core = core
        let failure = Box<(any Error)?>(nil)
        let command = Command { tx in
            do {
                try body(tx)
            } catch {
                failure.value = error
                throw error
            }
            return .done
        }
        let result = core.run([command][...], wall: environment.wallMs)
        if let error = failure.value { throw error }
        if case .refusal(let error)? = result.answers.first?.outcome { throw error }
    }

    package func read(_ body: @escaping @Sendable (StoreConnection) throws -> Void) throws {
        try body(store)
    }

    package func readApart<Result>(_ body: (StoreConnection) throws -> Result) throws -> Result {
        try body(store)
    }

    package func vacuum() throws -> (before: Int64, after: Int64) {
        let before = try connection.fileBytes
        try connection.vacuum()
        return (before, try connection.fileBytes)
    }

    package var metricsText: String? { nil }
    package func reload() throws -> [String]? { nil }
}
