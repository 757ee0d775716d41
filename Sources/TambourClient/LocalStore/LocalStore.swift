package import GRDB
import Glibc
import TambourProtocol

/// What one account holds on this device: one SQLite file, readable by its owner only.
///
/// Everything that is acknowledged to somebody, as a message put into the queue, has been flushed to
/// the disk: the writing connection runs with `synchronous = FULL`, where GRDB would take NORMAL.
package final class LocalStore: Sendable {
    package let path: String
    /// What stands for the path of a store that is in no file.
    static let inMemory = ":memory:"
    private let database: any DatabaseWriter
    /// Called at the end of every transaction: what it throws takes the transaction back.
    private let beforeCommit: (@Sendable () throws -> Void)?
    private let door = Door()

    /// Opens the file, makes it if need be, and brings its tables up to date.
    ///
    /// - Parameter beforeCommit: called before each commit, which fails when it throws: a simulation's disk.
    /// - Throws: `ClientError.store`.
    package init(
        path: String,
        beforeCommit: (@Sendable () throws -> Void)? = nil
    ) throws(ClientError) {
        self.path = path
        self.beforeCommit = beforeCommit
        do {
            // SQLite gives its other files the mode of the first.
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

    /// A store that lives as long as this object, in memory.
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

    /// Runs `body` in a transaction of its own and commits, or rolls back what it did when it throws.
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

    /// Runs `body` over one state of the store, beside whoever writes.
    package func read<Value>(_ body: (Database) throws -> Value) throws(ClientError) -> Value {
        do {
            return try door.enter { try database.read(body) }
        } catch let error as ClientError {
            throw error
        } catch {
            throw Self.failure(error, path)
        }
    }

    /// What SQLite says, for people as far as they can do something about it.
    private static func failure(_ error: any Error, _ path: String) -> ClientError {
        switch (error as? DatabaseError)?.resultCode {
        case .SQLITE_FULL?: .store(reason: "\(path): the disk is full")
        case .SQLITE_NOTADB?, .SQLITE_CORRUPT?:
            .store(reason: "\(path) is damaged; with the file moved away one can sign in anew")
        default: .store(reason: "\(path): \(error)")
        }
    }

    /// A number that changes when another process has written.
    package func dataVersion() -> Int64? {
        try? door.enter {
            try database.writeWithoutTransaction {
                try Int64.fetchOne($0, sql: "PRAGMA data_version")
            }
        }
    }

    /// Waits for whoever reads or writes, and closes the file; whoever comes later gets `ClientError.store`.
    package func close() {
        door.shut { try? database.close() }
    }
}

/// Lets many in until it is shut.
///
/// A pool of connections that is closed under a reader who is just about to take one hands out a closed
/// connection, and SQLite crashes on it.
///
/// `@unchecked Sendable`: `isShut` is touched with the lock held only, and written alone.
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

/// One transaction on the store: what it changes, and what has to be done once it is committed.
package final class StoreTransaction {
    package let db: Database
    /// What readers will find changed.
    package var changes = ChangeSet()
    /// People who were spoken of, of whom nothing may be known.
    var strangers: Set<UserID> = []
    /// What was told of by a push or an answer; of chats, what is among the changes counts as well.
    var learned: Set<Subject> = []
    /// Messages of which something was learned while a page with other reactions was on its way.
    var outrun: [MessageID] = []
    /// Photos whose copies nobody needs any more once this is committed.
    var endedPhotos: [TaskID] = []

    init(_ db: Database) {
        self.db = db
    }

    func execute(_ sql: String, _ arguments: StatementArguments = []) throws {
        let statement = try db.cachedStatement(sql: sql)
        try statement.execute(arguments: arguments)
    }

    /// The first row of a query; nil when there is none.
    func row(_ sql: String, _ arguments: StatementArguments = []) throws -> Row? {
        try Row.fetchOne(db.cachedStatement(sql: sql), arguments: arguments)
    }

    func rows(_ sql: String, _ arguments: StatementArguments = []) throws -> [Row] {
        try Row.fetchAll(db.cachedStatement(sql: sql), arguments: arguments)
    }

    func int(_ sql: String, _ arguments: StatementArguments = []) throws -> Int64? {
        try Int64.fetchOne(db.cachedStatement(sql: sql), arguments: arguments)
    }
}
