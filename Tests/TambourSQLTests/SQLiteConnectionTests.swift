import Foundation
import TambourSQL
import Testing

@Suite("SQLite as the server opens it")
struct SQLiteConnectionTests {
    /// A temporary directory that is removed with the test.
    private final class Folder {
        let url = FileManager.default.temporaryDirectory
            .appendingPathComponent("tambour-\(UUID().uuidString)")
        var file: String { url.appendingPathComponent("test.db").path }
        var log: String { file + "-wal" }

        init() throws {
            try FileManager.default.createDirectory(at: url, withIntermediateDirectories: false)
        }

        deinit {
            try? FileManager.default.removeItem(at: url)
        }
    }

    private func size(of path: String) throws -> Int {
        let attributes = try FileManager.default.attributesOfItem(atPath: path)
        return try #require(attributes[.size] as? Int)
    }

    @Test("a writer waits for the disk, and its settings can be read back")
    func settings() throws {
        let folder = try Folder()
        let writer = try SQLiteConnection(path: folder.file, mode: .readWrite)
        #expect(try writer.pragma("synchronous") == 2)
        #expect(try writer.pragma("page_size") == 4096)
        #expect(try writer.pragma("cache_size") == -64 * 1024)
        #expect(try writer.pragma("wal_autocheckpoint") == 8000)
        #expect(try writer.pragma("temp_store") == 2)
        #expect(try writer.pragma("foreign_keys") == 0)
        let journal = try writer.prepare("PRAGMA journal_mode")
        #expect(try journal.step())
        #expect(journal.string(0) == "wal")

        let reader = try SQLiteConnection(path: folder.file, mode: .readOnly)
        #expect(try reader.pragma("synchronous") == 2)
        #expect(try reader.pragma("cache_size") == -8 * 1024)
    }

    @Test("tests may ask for commits that do not wait for the disk")
    func normal() throws {
        let folder = try Folder()
        let writer = try SQLiteConnection(
            path: folder.file,
            mode: .readWrite,
            synchronous: .normal
        )
        #expect(try writer.pragma("synchronous") == 1)
    }

    @Test("a file in memory is refused, because it has no log")
    func memory() {
        let error = #expect(throws: SQLError.self) {
            try SQLiteConnection(path: ":memory:", mode: .readWrite)
        }
        #expect(error?.message == "journal_mode is memory, not wal")
    }

    @Test("a missing file is not created by a reader")
    func missing() throws {
        let folder = try Folder()
        let error = #expect(throws: SQLError.self) {
            try SQLiteConnection(path: folder.file, mode: .readOnly)
        }
        #expect(error?.kind == .io)
        #expect(!FileManager.default.fileExists(atPath: folder.file))
    }

    @Test("an unknown file layer is refused")
    func unknownVFS() throws {
        let folder = try Folder()
        let error = #expect(throws: SQLError.self) {
            try SQLiteConnection(path: folder.file, mode: .readWrite, vfs: "missing")
        }
        #expect(error?.message == "no such vfs: missing")
    }

    @Test("what is no database is called corrupt")
    func noDatabase() throws {
        let folder = try Folder()
        try Data(repeating: 7, count: 10_000).write(to: URL(fileURLWithPath: folder.file))
        let error = #expect(throws: SQLError.self) {
            try SQLiteConnection(path: folder.file, mode: .readWrite)
        }
        #expect(error?.kind == .corrupt)
    }

    @Test("a second writer is told the file is busy, and can write later")
    func busy() throws {
        let folder = try Folder()
        let first = try SQLiteConnection(path: folder.file, mode: .readWrite)
        let second = try SQLiteConnection(path: folder.file, mode: .readWrite, busyTimeoutMs: 0)
        try first.begin(.immediate)
        let error = #expect(throws: SQLError.self) { try second.begin(.immediate) }
        #expect(error?.kind == .busy)
        #expect(!second.isInTransaction)
        try first.commit()
        try second.begin(.immediate)
        try second.commit()
    }

    @Test("a full file is told as full, and nothing of the transaction stays")
    func full() throws {
        let folder = try Folder()
        let writer = try SQLiteConnection(path: folder.file, mode: .readWrite)
        try writer.execute("CREATE TABLE t(b BLOB); PRAGMA max_page_count = 20")
        let insert = try writer.prepare("INSERT INTO t VALUES (zeroblob($1))")
        insert.bind(1, 1_000)
        try insert.run()
        let error = #expect(throws: SQLError.self) {
            try writer.transaction(.immediate) {
                insert.bind(1, 1_000_000)
                try insert.run()
            }
        }
        #expect(error?.kind == .full)
        #expect(!writer.isInTransaction)
        #expect(try writer.quickCheck() == [])
    }

    @Test("a checkpoint empties the log once no snapshot needs it")
    func checkpoint() throws {
        let folder = try Folder()
        let writer = try SQLiteConnection(path: folder.file, mode: .readWrite, busyTimeoutMs: 0)
        try writer.execute("CREATE TABLE t(b BLOB)")
        let reader = try SQLiteConnection(path: folder.file, mode: .readOnly)
        try reader.begin(.snapshot)
        try writer.execute("INSERT INTO t VALUES (zeroblob(100000))")
        let error = #expect(throws: SQLError.self) { try writer.checkpoint() }
        #expect(error?.kind == .busy)
        try reader.commit()
        try writer.checkpoint()
        #expect(try size(of: folder.log) == 0)
        #expect(try size(of: folder.file) > 100_000)
    }

    @Test("pages written are counted")
    func pagesWritten() throws {
        let folder = try Folder()
        let writer = try SQLiteConnection(path: folder.file, mode: .readWrite)
        try writer.execute("CREATE TABLE t(b BLOB)")
        let before = writer.pagesWritten
        try writer.execute("INSERT INTO t VALUES (zeroblob(409600))")
        #expect((100...110).contains(writer.pagesWritten - before))
    }

    @Test("a row that was visited and not returned is seen by the instruction counter")
    func virtualMachineSteps() throws {
        let folder = try Folder()
        let writer = try SQLiteConnection(path: folder.file, mode: .readWrite)
        try writer.execute("CREATE TABLE t(id INTEGER PRIMARY KEY, n INTEGER)")
        func cost(of sql: String) throws -> Int {
            let before = writer.virtualMachineSteps
            try writer.prepare(sql).run()
            return writer.virtualMachineSteps - before
        }
        let search = "SELECT n FROM t WHERE id = 500"
        let scan = "SELECT id FROM t WHERE n = 500"
        try writer.transaction(.immediate) {
            let insert = try writer.prepare("INSERT INTO t VALUES ($1, $1)")
            for id in 1...1_000 {
                insert.bind(1, id)
                try insert.run()
            }
        }
        let rows = writer.rowsStepped
        #expect(try cost(of: search) < 20)
        #expect(try cost(of: scan) > 1_000)
        #expect(writer.rowsStepped - rows == 2)
    }

    @Test("a damaged page is found by the check")
    func quickCheck() throws {
        let folder = try Folder()
        do {
            let writer = try SQLiteConnection(path: folder.file, mode: .readWrite)
            try writer.execute(
                """
                CREATE TABLE t(id INTEGER PRIMARY KEY, b BLOB);
                WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)
                INSERT INTO t SELECT i, zeroblob(100) FROM n;
                """
            )
            #expect(try writer.quickCheck() == [])
        }
        let file = try FileHandle(forUpdating: URL(fileURLWithPath: folder.file))
        try file.seek(toOffset: 4096 * 20)
        try file.write(contentsOf: Data(repeating: 0xff, count: 4096))
        try file.close()
        let reader = try SQLiteConnection(path: folder.file, mode: .readOnly)
        #expect(try reader.quickCheck() != [])
    }

    @Test("a statement keeps its connection open")
    func lifetime() throws {
        let folder = try Folder()
        var connection: SQLiteConnection? = try SQLiteConnection(
            path: folder.file,
            mode: .readWrite
        )
        let statement = try #require(try connection?.prepare("SELECT 42"))
        weak let weakly = connection
        connection = nil
        #expect(weakly != nil)
        #expect(try statement.step())
        #expect(statement.int(0) == 42)
    }

    @Test("closing the last connection empties and removes the log")
    func close() throws {
        let folder = try Folder()
        do {
            let writer = try SQLiteConnection(path: folder.file, mode: .readWrite)
            try writer.execute("CREATE TABLE t(id INTEGER PRIMARY KEY)")
            #expect(FileManager.default.fileExists(atPath: folder.log))
        }
        #expect(!FileManager.default.fileExists(atPath: folder.log))
    }

    @Test(
        "only parameters written $1 to $n are taken",
        arguments: ["SELECT ?", "SELECT ?1", "SELECT :a", "SELECT @a", "SELECT $a", "SELECT $0"]
    )
    func otherParameters(sql: String) throws {
        let folder = try Folder()
        let writer = try SQLiteConnection(path: folder.file, mode: .readWrite)
        let error = #expect(throws: SQLError.self) { try writer.prepare(sql) }
        #expect(error?.message == "parameters must be $1 to $n without a gap")
    }

    @Test("a value too long for SQLite fails the statement, not the process")
    func tooLong() throws {
        let folder = try Folder()
        let writer = try SQLiteConnection(path: folder.file, mode: .readWrite)
        try writer.execute("CREATE TABLE t(b BLOB)")
        let insert = try writer.prepare("INSERT INTO t VALUES (zeroblob($1))")
        insert.bind(1, 2_000_000_000)
        let error = #expect(throws: SQLError.self) { try insert.run() }
        #expect(error?.kind == .other)
    }

    /// Creates a file that still contains the bytes of deleted rows.
    private func fileWithRemains(_ folder: Folder) throws -> SQLiteConnection {
        let writer = try SQLiteConnection(path: folder.file, mode: .readWrite)
        // Some systems build SQLite so that it overwrites deleted bytes.
        try writer.execute("PRAGMA secure_delete = OFF")
        try writer.execute("CREATE TABLE note (id INTEGER PRIMARY KEY, text BLOB NOT NULL)")
        try writer.transaction(.immediate) {
            let insert = try writer.prepare("INSERT INTO note (text) VALUES ($1)")
            for number in 0..<200 {
                insert.bindBlob(1, Array("remains of \(number)".utf8))
                try insert.run()
            }
        }
        try writer.execute("DELETE FROM note WHERE id <> 7")
        try writer.checkpoint()
        #expect(try remains(in: folder.file))
        return writer
    }

    private func remains(in path: String) throws -> Bool {
        let bytes = try Data(contentsOf: URL(fileURLWithPath: path))
        return bytes.range(of: Data("remains of 9".utf8)) != nil
    }

    @Test("a file written anew has nothing of what was deleted, nor has its log")
    func vacuum() throws {
        let folder = try Folder()
        let writer = try fileWithRemains(folder)
        let before = try writer.fileBytes
        try writer.vacuum()
        #expect(try !remains(in: folder.file))
        #expect(try !remains(in: folder.log))
        #expect(try writer.fileBytes < before)
        #expect(try writer.pragma("temp_store") == 2)
        let left = try writer.prepare("SELECT text FROM note")
        #expect(try left.step() && left.string(0) == "remains of 6")
    }

    @Test("a copy is of the snapshot it is made in, and has nothing of what was deleted before")
    func copy() throws {
        let folder = try Folder()
        let writer = try fileWithRemains(folder)
        let reader = try SQLiteConnection(path: folder.file, mode: .readOnly)
        try reader.begin(.snapshot)
        try writer.execute("INSERT INTO note (text) VALUES (X'00')")
        let path = folder.url.appendingPathComponent("copy.db").path
        try reader.copy(to: path)
        reader.rollback()
        #expect(try !remains(in: path))
        #expect(!FileManager.default.fileExists(atPath: path + "-wal"))
        let copy = try SQLiteConnection(path: path, mode: .readWrite)
        #expect(try copy.quickCheck() == [])
        var rows = 0
        try copy.readRows(of: "note") { _ in rows += 1 }
        #expect(rows == 1)
        #expect(try copy.tableNames() == ["note"])
    }
}
