import Foundation
import TambourSQL
import Testing

/// The engines a test can run on.
enum SQLEngine: String, Sendable, CustomTestStringConvertible {
    case sqlite = "SQLite"
    case postgreSQL = "PostgreSQL"

    /// The engines that this build supports. The package trait `PostgreSQL` adds PostgreSQL.
    static var available: [SQLEngine] {
        #if PostgreSQL
            [.sqlite, .postgreSQL]
        #else
            [.sqlite]
        #endif
    }

    var testDescription: String { rawValue }
}

/// An empty database for one test. It is removed when its last reference disappears.
///
/// Keep a reference to the database as long as its connections are in use.
final class TestDatabase {
    let engine: SQLEngine
    private let makeConnection: (SQLMode) throws -> any SQLConnection
    private let remove: () -> Void

    init(_ engine: SQLEngine) throws {
        self.engine = engine
        switch engine {
        case .sqlite:
            let directory = FileManager.default.temporaryDirectory
                .appendingPathComponent("tambour-\(UUID().uuidString)")
            try FileManager.default.createDirectory(
                at: directory,
                withIntermediateDirectories: false
            )
            let file = directory.appendingPathComponent("test.db").path
            makeConnection = { mode in try SQLiteConnection(path: file, mode: mode) }
            remove = { try? FileManager.default.removeItem(at: directory) }
        case .postgreSQL:
            #if PostgreSQL
                let (cluster, name) = try PostgresCluster.makeDatabase()
                makeConnection = { _ in try cluster.connect(to: name) }
                remove = { try? cluster.drop(name) }
            #else
                fatalError("the package trait PostgreSQL is off")
            #endif
        }
    }

    deinit {
        remove()
    }

    /// Opens another connection.
    ///
    /// - Parameter mode: The mode of an SQLite connection; PostgreSQL ignores it. The first
    ///   connection must be for writing.
    func connect(_ mode: SQLMode = .readWrite) throws -> any SQLConnection {
        try makeConnection(mode)
    }
}
