package import GRDB
import Glibc
import TambourProtocol

/// The data of one account on this device: one SQLite file, readable by its owner only.
///
/// A call that writes, for example one that queues a message, returns only after its data is
/// flushed to disk. The writing connection uses `synchronous = FULL`; GRDB's default is NORMAL.
package final class LocalStore: Sendable {
    package let path: String
    /// The path of a store in memory.
    static let inMemory = ":memory:"
    private let database: any DatabaseWriter
    /// Called at the end of every write transaction. If it throws, the transaction is rolled back.
    private let beforeCommit: (@Sendable () throws -> Void)?
    private let door = Door()

    /// Opens the file, creates it if needed, and migrates its tables.
    ///
    /// - Parameter beforeCommit: called before each commit. If it throws, the commit fails; tests
    ///   use this to simulate disk errors.
    /// - Throws: `ClientError.store`.
    package init(
        path: String,
        beforeCommit: (@Sendable () throws -> Void)? = nil
    ) throws(ClientError) {
        self.path = path
        self.beforeCommit = beforeCommit
        do {
            // SQLite creates its other files with the mode of this file.
            let descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
            guard descriptor >= 0 else {
                throw ClientError.store(reason: "\(path): \(String(cString: strerror(errno)))")
            }
            fchmod(descriptor, 0o600)
            Glibc.close(descriptor)
            var configuration = Configuration()
            configuration.label = "tambour.store"
            configuration.busyMode = .timeout(10)
            configuration.maximumReaderCount = 3
            configuration.prepareDatabase { db in
                try db.execute(sql: "PRAGMA synchronous = FULL")
            }
            let pool = try DatabasePool(path: path, configuration: configuration)
            try LocalSchema.migrator.migrate(pool)
            database = pool
        } catch let error as ClientError {
            throw error
        } catch {
            throw Self.failure(error, path)
        }
    }

    /// Creates a store in memory, which exists as long as this object.
    package init() throws(ClientError) {
        path = Self.inMemory
        beforeCommit = nil
        do {
            let queue = try DatabaseQueue()
            try LocalSchema.migrator.migrate(queue)
            database = queue
        } catch {
            throw .store(reason: "\(error)")
        }
    }

    /// Runs `body` in its own transaction. Commits, or rolls back if `body` throws.
    package func write<Value>(
        _ body: (StoreTransaction) throws -> Value
    ) throws(ClientError) -> Value {
        do {
            return try door.enter {
                try database.write { db in
                    let value = try body(StoreTransaction(db))
                    try beforeCommit?()
                    return value
                }
            }
        } catch let error as ClientError {
            throw error
        } catch {
            throw Self.failure(error, path)
        }
    }

    /// Runs `body` on a snapshot of the store, concurrently with a writer.
    package func read<Value>(_ body: (Database) throws -> Value) throws(ClientError) -> Value {
        do {
            return try door.enter { try database.read(body) }
        } catch let error as ClientError {
            throw error
        } catch {
            throw Self.failure(error, path)
        }
    }

    /// Converts an SQLite error, with advice if the user can fix the problem.
    private static func failure(_ error: any Error, _ path: String) -> ClientError {
        switch (error as? DatabaseError)?.resultCode {
        case .SQLITE_FULL?: .store(reason: "\(path): the disk is full")
        case .SQLITE_NOTADB?, .SQLITE_CORRUPT?:
            .store(reason: "\(path) is damaged: move the file away and sign in again")
        default: .store(reason: "\(path): \(error)")
        }
    }

    /// Returns the data version, which changes when another process has written.
    package func dataVersion() -> Int64? {
        try? door.enter {
            try database.writeWithoutTransaction { try $0.dataVersion() }
        }
    }

    /// Waits for readers and writers, then closes the file. Later calls throw `ClientError.store`.
    package func close() {
        door.shut { try? database.close() }
    }
}

/// A gate that admits many callers until it is shut.
///
/// Without the gate, a reader could obtain a connection while the pool is being closed. The pool
/// would then hand out a closed connection, and SQLite would crash.
///
/// `@unchecked Sendable`: `isShut` is read under the read lock and written under the write lock.
private final class Door: @unchecked Sendable {
    private let lock: UnsafeMutablePointer<pthread_rwlock_t>
    private var isShut = false

    init() {
        lock = .allocate(capacity: 1)
        pthread_rwlock_init(lock, nil)
    }

    deinit {
        pthread_rwlock_destroy(lock)
        lock.deallocate()
    }

    func enter<Value>(_ body: () throws -> Value) throws -> Value {
        pthread_rwlock_rdlock(lock)
        defer { pthread_rwlock_unlock(lock) }
        if isShut { throw ClientError.store(reason: "it is closed") }
        return try body()
    }

    func shut(_ body: () -> Void) {
        pthread_rwlock_wrlock(lock)
        defer { pthread_rwlock_unlock(lock) }
        isShut = true
        body()
    }
}

/// One transaction on the store: its changes, and the follow-up work after the commit.
package final class StoreTransaction {
    package let db: Database
    /// The changes to report to readers.
    package var changes = ChangeSet()
    /// People named in stored chats and messages, who may not be stored themselves.
    var strangers: Set<UserID> = []
    /// Subjects that a push or a reply has updated. `allLearned` also contains the chats in
    /// `changes`.
    var learned: Set<Subject> = []
    /// Messages that changed while a page with older reactions was in flight.
    var outrun: [MessageID] = []
    /// Photos whose copies are unused after the commit.
    var endedPhotos: [TaskID] = []

    init(_ db: Database) {
        self.db = db
    }

    func execute(_ sql: String, _ arguments: StatementArguments = []) throws {
        let statement = try db.cachedStatement(sql: sql)
        try statement.execute(arguments: arguments)
    }
}
