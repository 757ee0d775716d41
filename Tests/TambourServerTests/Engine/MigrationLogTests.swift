import Logging
import Synchronization
import TambourProtocol
import TambourSQL
import TambourStore
import TambourTesting
import Testing

@testable import TambourMessenger

@Suite("The log of migrations")
struct MigrationLogTests {
    private final class Lines: LogHandler, Sendable {
        private let lines = Mutex<[String]>([])

        var all: [String] { lines.withLock { $0 } }
        var metadata: Logger.Metadata {
            get { [:] }
            set {}
        }
        var logLevel: Logger.Level {
            get { .notice }
            set {}
        }

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { nil }
            set {}
        }

        func log(event: Logging.LogEvent) {
            var metadata = event.metadata ?? [:]
            metadata["took"] = nil
            metadata["step"] = nil
            let values = metadata.sorted { $0.key < $1.key }.map { "\($0)=\($1)" }
            lines.withLock { $0.append("\(event.message) \(values.joined(separator: " "))") }
        }
    }

    private func log(openingStoreAt version: Int) throws -> [String] {
        let directory = try TestServer.temporaryDirectory()
        defer { TestServer.removeDirectory(directory) }
        let file = SQLFile("\(directory)/tambour.db")
        if version > 0 {
            try MigrationRunner.migrate(
                file.open(.readWrite),
                with: Array(Schema.migrations.prefix(version))
            )
        }
        let lines = Lines()
        _ = try StoreSource(
            file,
            limits: .standard,
            environment: .live,
            logger: Logger(label: "test") { _ in lines }
        )
        return lines.all
    }

    @Test("names each migration of an older store, and the versions at the end")
    func olderStore() throws {
        let last = Schema.migrations.count
        #expect(
            try log(openingStoreAt: last - 2) == [
                "migrating the store schema=\(last - 1)", "migrating the store schema=\(last)",
                "the store is migrated from=\(last - 2) schema=\(last)",
            ]
        )
    }

    @Test(
        "says nothing of a new store and of a current one",
        arguments: [0, Schema.migrations.count]
    )
    func nothingToTell(version: Int) throws {
        #expect(try log(openingStoreAt: version) == [])
    }
}
