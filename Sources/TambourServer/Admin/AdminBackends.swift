import Dispatch
package import TambourProtocol
import TambourSQL
package import TambourStore

/// A running server: admin commands run as ordinary engine commands.
package struct LiveAdminBackend: AdminBackend {
    private unowned let server: Server

    package init(_ server: Server) {
        self.server = server
    }

    package var environment: Environment { server.configuration.environment }
    package var limits: Limits { server.configuration.limits }

    package func write(_ body: @escaping @Sendable (WriteTransaction) throws -> Void) throws {
        let failure = Box<(any Error)?>(nil)
        let done = DispatchSemaphore(value: 0)
        let command = Command { tx in
            failure.value = nil
            do {
                try body(tx)
            } catch let error as AdminService.Failure {
                // A refusal, so that the failure does not roll back the batch with other commands.
                failure.value = error
                throw RequestError.notAllowed
            }
            return .done
        } done: { answer in
            if case .refusal(let error) = answer.outcome, failure.value == nil {
                failure.value = error
            }
            done.signal()
        }
        server.shared.engine.post(command)
        done.wait()
        if let error = failure.value { throw error }
    }

    package func read(_ body: @escaping @Sendable (StoreConnection) throws -> Void) throws {
        let failure = Box<(any Error)?>(nil)
        let done = DispatchSemaphore(value: 0)
        server.shared.readers.post(for: .server) { store in
            do { try body(store) } catch { failure.value = error }
            done.signal()
        }
        done.wait()
        if let error = failure.value { throw error }
    }

    package func readApart<Result>(_ body: (StoreConnection) throws -> Result) throws -> Result {
        try body(server.openStore())
    }

    package func vacuum() throws -> (before: Int64, after: Int64) { try server.vacuum() }

    package var metricsText: String? {
        // Health checks read this: a hung lane, engine or reader must not look healthy.
        guard let lanes = server.laneReports(), (try? write { _ in }) != nil,
            (try? read { _ in }) != nil
        else { return nil }
        let now = environment.wallMs()
        return server.metrics.prometheusText(gauges: [
            .init("connections", "Open connections.", server.connectionCount),
            .init("sessions", "Logged-in connections.", server.shared.accounts.count),
            .init(
                "strangers",
                "Connections that have not logged in.",
                server.shared.strangers.count
            ),
            .init(
                "uptime_seconds",
                "Seconds since the start.",
                Int(clamping: now - server.metrics.startedMs) / 1000
            ),
            .init(
                "clock_drift_milliseconds",
                "How far the commit clock runs ahead of the wall.",
                Int(clamping: server.shared.clock.drift(wall: now))
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
        ])
    }

    package func reload() throws -> (rules: FeatureRules, told: Int)? {
        try server.reloadFeatures()
    }
}

/// A store that no server has open: commands run here, under the directory's lock.
///
/// `@unchecked Sendable`: used only by the single thread of a command-line program.
package final class OfflineAdminBackend: AdminBackend, @unchecked Sendable {
    package let environment: Environment
    package let limits: Limits
    private let directory: DataDirectory
    /// Created by the first command that writes, so that a store no server can continue with can
    /// still be read.
    private var core: EngineCore?
    private let store: StoreConnection
    private let connection: SQLiteConnection

    package init(
        dataDirectory: String,
        environment: Environment = .live,
        limits: Limits = .standard
    ) throws {
        self.environment = environment
        self.limits = limits
        directory = try DataDirectory(dataDirectory)
        connection = try SQLiteConnection(path: directory.databasePath, mode: .readWrite)
        try StoreConnection.migrate(connection)
        store = try StoreConnection(
            SQLiteConnection(path: directory.databasePath, mode: .readOnly),
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
    package func reload() throws -> (rules: FeatureRules, told: Int)? { nil }
}
