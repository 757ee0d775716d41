import Crypto
import Glibc
package import TambourMessenger
import TambourProtocol
import TambourSQL
import TambourStore

/// Copies a store, even while its server writes to it, and restores these copies.
///
/// A backup is a directory with two files. `tambour.db` is the database without a log. `digests`
/// describes the content of the copied snapshot and the bytes of the database file. If a backup
/// cannot be completed, no backup is created.
package struct Backup: Sendable {
    package typealias Failure = AdminService.Failure

    let path: String
    private let environment: Environment

    package init(_ path: String, environment: Environment = .live) {
        self.path = path.count > 1 && path.hasSuffix("/") ? String(path.dropLast()) : path
        self.environment = environment
    }

    private static let database = "tambour.db"
    static let digests = "digests"

    // MARK: - Taking a backup

    /// Copies the store of a data directory. A server may run on the directory at the same time.
    ///
    /// The copy contains the state of the store at one moment. Before the function returns, it
    /// reads the copy back and verifies it.
    /// - Parameter output: receives information for the operator, line by line.
    /// - Throws: if the copy fails, and if the backup's path already exists.
    package func take(from dataDirectory: String, output: (String) throws -> Void) throws {
        try Self.refusePostgreSQL(dataDirectory)
        let source = "\(dataDirectory)/\(Self.database)"
        guard access(source, F_OK) == 0 else {
            throw Failure(description: "there is no store in \(dataDirectory)")
        }
        guard access(path, F_OK) != 0 else { throw Failure(description: "\(path) exists") }
        // Every change that the server has acknowledged so far has a commit time of at most
        // `acknowledged`. The snapshot is taken later and therefore contains these changes.
        let acknowledged = try Self.clock(of: dataDirectory)
        let partial = "\(path).partial"
        Self.remove(partial)
        guard mkdir(partial, 0o700) == 0 else {
            throw Failure(description: "cannot create \(partial): \(DataDirectory.reason())")
        }
        do {
            let manifest = try copy(source, to: partial)
            if let acknowledged, manifest.clock < acknowledged {
                throw Failure(
                    description: "the snapshot ends at \(manifest.clock), before what the server"
                        + " had acknowledged at \(acknowledged): not the file that it serves?"
                )
            }
            try output("snapshot of \(AdminText.time(manifest.clock)), clock \(manifest.clock)")
            if acknowledged != nil {
                try output("acknowledged before it and not in it: 0")
            }
            let size = try FileWork.bytes("\(partial)/\(Self.database)")
            guard rename(partial, path) == 0 else {
                throw Failure(description: "cannot rename \(partial): \(DataDirectory.reason())")
            }
            try FileWork.sync(Self.parent(of: path))
            try output(
                "\(path): \(manifest.rows) rows in \(manifest.count) tables, "
                    + AdminText.bytes(size)
            )
        } catch {
            Self.remove(partial)
            throw error
        }
    }

    private func copy(_ source: String, to directory: String) throws -> Manifest {
        let connection = try SQLFile(source).connect(.readOnly)
        try connection.begin(.snapshot)
        defer { connection.rollback() }
        var manifest = try Manifest(of: connection, taken: environment.wallMs())
        let copy = "\(directory)/\(Self.database)"
        try connection.copy(to: copy)
        connection.rollback()
        do {
            let copied = try SQLFile(copy).connect(.readWrite)
            try manifest.compare(with: copied)
            // Leave WAL mode, so that the database is a single file without a log.
            try copied.execute("PRAGMA journal_mode = DELETE")
        }
        manifest.file = try FileWork.copy(copy, to: nil)
        try FileWork.write(manifest.text, to: "\(directory)/\(Self.digests)")
        try FileWork.sync(copy)
        try FileWork.sync(directory)
        return manifest
    }

    /// Returns the time of the running server's last commit; nil when no server uses the directory.
    private static func clock(of dataDirectory: String) throws -> Int64? {
        var clock: Int64?
        let client = AdminClient(dataDirectory: dataDirectory)
        guard try client.run(.clock, output: { clock = Int64($0) }) else { return nil }
        return clock
    }

    // MARK: - Restoring a backup

    /// Verifies the backup and creates a data directory from it.
    ///
    /// - Throws: if the backup is damaged, and if the directory already has a store.
    package func restore(to dataDirectory: String, output: (String) throws -> Void) throws {
        try Self.refusePostgreSQL(dataDirectory)
        let manifest = try manifest()
        let directory = try DataDirectory(dataDirectory)
        guard access(directory.databasePath, F_OK) != 0 else {
            throw Failure(description: "there is a store in \(dataDirectory) already")
        }
        let partial = "\(directory.databasePath).partial"
        do {
            try check(partial, against: manifest, output)
            try noteRestore(partial)
            guard rename(partial, directory.databasePath) == 0 else {
                throw Failure(description: "cannot rename \(partial): \(DataDirectory.reason())")
            }
            try FileWork.sync(dataDirectory)
        } catch {
            FileWork.remove(partial)
            throw error
        }
        try output("\(dataDirectory) restored: \(manifest.rows) rows in \(manifest.count) tables")
    }

    /// Records the restore in the store. At their next login, clients learn that some of their data
    /// may be missing on the server.
    private func noteRestore(_ path: String) throws {
        let connection = try SQLFile(path).connect(.readWrite)
        let store = try StoreConnection(connection, limits: .standard)
        try store.noteRestore(at: environment.wallMs())
        try connection.checkpoint()
    }

    /// Verifies the backup by restoring it into a temporary directory.
    ///
    /// - Parameter scratch: the directory in which the temporary directory is created.
    package func verify(in scratch: String, output: (String) throws -> Void) throws {
        let manifest = try manifest()
        let directory = "\(scratch)/tambour-verify-\(getpid())-\(environment.wallMs())"
        guard mkdir(directory, 0o700) == 0 else {
            throw Failure(description: "cannot create \(directory): \(DataDirectory.reason())")
        }
        defer { Self.remove(directory) }
        try check("\(directory)/\(Self.database)", against: manifest, output)
        try output(
            "all \(manifest.count) digests equal: \(manifest.rows) rows of the snapshot of "
                + "\(AdminText.time(manifest.clock)), 0 lost"
        )
    }

    /// Copies the file, compares every digest, and runs the checks of `admin check`.
    private func check(
        _ copy: String,
        against manifest: Manifest,
        _ output: (String) throws -> Void
    ) throws {
        let file = try FileWork.copy("\(path)/\(Self.database)", to: copy)
        guard file == manifest.file else {
            throw Failure(description: "\(path)/\(Self.database) is not the file that was made")
        }
        let connection = try SQLFile(copy).connect(.readWrite)
        for digest in try manifest.compare(with: connection) {
            try output("\(digest.table) \(digest.rows) \(digest.sha256.prefix(16)) equal")
        }
        try StoreConnection.migrate(connection)
        let store = try StoreConnection(connection, limits: .standard)
        let problems = try StoreCheck.problems(of: store, wall: environment.wallMs())
        for problem in problems { try output(problem) }
        guard problems.isEmpty else {
            throw Failure(description: "\(problems.count) problems found")
        }
        try connection.checkpoint()
        try output("check ok")
    }

    private func manifest() throws -> Manifest {
        guard let text = FileWork.text("\(path)/\(Self.digests)") else {
            throw Failure(
                description: "\(path) is no backup: it has no file \"\(Self.digests)\""
            )
        }
        guard let manifest = Manifest(text) else {
            throw Failure(description: "\(path)/\(Self.digests) is damaged")
        }
        return manifest
    }

    private static func refusePostgreSQL(_ place: String) throws {
        if place.hasPrefix("postgres://") || place.hasPrefix("postgresql://") {
            throw Failure(description: StoreDigest.Unsupported().description)
        }
    }

    private static func parent(of path: String) -> String {
        guard let slash = path.lastIndex(of: "/") else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }

    /// Removes a directory that this program created, and the files in the directory.
    private static func remove(_ directory: String) {
        FileWork.remove("\(directory)/\(database)")
        unlink("\(directory)/\(digests)")
        rmdir(directory)
    }
}

// MARK: - The manifest

extension Backup {
    /// The content of the file `digests`. The first line is a title. The next lines are `taken`
    /// (the time of the backup, Unix milliseconds), `clock` (the commit clock of the last commit)
    /// and `file` (the SHA-256 of the database file). Then follow a line for each table and a line
    /// for the schema.
    package struct Manifest: Equatable {
        private static let title = "tambour backup 1"

        let taken: Int64
        let clock: Int64
        package fileprivate(set) var file = ""
        let tables: [TableDigest]

        init(of connection: any SQLFileConnection, taken: Int64) throws {
            self.taken = taken
            clock = try connection.prepare("SELECT v FROM meta WHERE k = 'ct'").oneInt() ?? 0
            tables = try StoreDigest.tables(of: connection)
        }

        package init?(_ text: String) {
            let lines = text.split(separator: "\n").map { $0.split(separator: " ") }
            guard lines.count > 4, lines[0].joined(separator: " ") == Self.title,
                lines[1].count == 2, lines[1][0] == "taken", let taken = Int64(lines[1][1]),
                lines[2].count == 2, lines[2][0] == "clock", let clock = Int64(lines[2][1]),
                lines[3].count == 2, lines[3][0] == "file", lines[3][1].isSHA256
            else { return nil }
            let tables = lines[4...].compactMap(TableDigest.init(words:))
            guard tables.count == lines.count - 4 else { return nil }
            self.taken = taken
            self.clock = clock
            file = String(lines[3][1])
            self.tables = tables
        }

        package var text: String {
            let head = [Self.title, "taken \(taken)", "clock \(clock)", "file \(file)"]
            return (head + tables.map(\.line)).map { "\($0)\n" }.joined()
        }

        /// The number of tables, without the digest of the schema.
        package var count: Int { tables.count - 1 }
        package var rows: Int { tables.dropLast().reduce(0) { $0 + $1.rows } }

        /// Computes the digests of a store and compares them with the digests in the manifest.
        ///
        /// - Returns: the store's digests. They are equal to the digests in the manifest.
        /// - Throws: a failure that lists all tables with different digests.
        @discardableResult
        func compare(with connection: any SQLFileConnection) throws -> [TableDigest] {
            let found = try StoreDigest.tables(of: connection)
            let names = Set((tables + found).map(\.table)).sorted()
            let other = names.filter { name in
                tables.first { $0.table == name } != found.first { $0.table == name }
            }
            guard other.isEmpty else {
                throw Failure(
                    description: "not what the snapshot held: \(other.joined(separator: ", "))"
                )
            }
            return found
        }
    }
}

extension TableDigest {
    fileprivate var line: String { "\(table) \(rows) sha256 \(sha256)" }

    /// The valid range of a table's number of rows. The sum over all tables fits an `Int`.
    private static let rowRange = 0...(1 << 48)

    fileprivate init?(words: [Substring]) {
        guard words.count == 4, let rows = Int(words[1]), Self.rowRange ~= rows,
            words[2] == "sha256", words[3].isSHA256
        else { return nil }
        self.init(table: String(words[0]), rows: rows, sha256: String(words[3]))
    }
}

extension Substring {
    /// Whether the text is a digest as this program writes it: 64 lower-case hexadecimal digits.
    fileprivate var isSHA256: Bool {
        utf8.count == 64
            && utf8.allSatisfy { byte in
                UInt8(ascii: "0")...UInt8(ascii: "9") ~= byte
                    || UInt8(ascii: "a")...UInt8(ascii: "f") ~= byte
            }
    }
}

// MARK: - Files

/// The file operations of backups.
private enum FileWork {
    private typealias Failure = AdminService.Failure

    /// Removes a database and its log and journal files.
    static func remove(_ path: String) {
        for suffix in ["", "-wal", "-shm", "-journal"] { unlink(path + suffix) }
    }

    static func bytes(_ path: String) throws -> Int64 {
        var status = stat()
        guard stat(path, &status) == 0 else { throw failure("read", path) }
        return Int64(status.st_size)
    }

    /// Returns nil for a file that cannot be read or is not UTF-8.
    static func text(_ path: String) -> String? {
        let file = open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return nil }
        defer { close(file) }
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = read(file, &chunk, chunk.count)
            guard count >= 0 else { return nil }
            if count == 0 { return String(validating: bytes, as: UTF8.self) }
            bytes += chunk[..<count]
        }
    }

    static func write(_ text: String, to path: String) throws {
        let file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard file >= 0 else { throw failure("create", path) }
        defer { close(file) }
        try write(Array(text.utf8)[...], to: file, path)
        guard fsync(file) == 0 else { throw failure("write", path) }
    }

    /// Reads a file, and copies it to `path` unless `path` is nil.
    ///
    /// - Returns: the SHA-256 of the file's bytes, as hex digits.
    static func copy(_ source: String, to path: String?) throws -> String {
        let input = open(source, O_RDONLY | O_CLOEXEC)
        guard input >= 0 else { throw failure("read", source) }
        defer { close(input) }
        let output = path.map { open($0, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600) }
        if let output, output < 0 { throw failure("create", path ?? "") }
        defer { if let output { close(output) } }
        var sha = SHA256()
        var chunk = [UInt8](repeating: 0, count: 1 << 20)
        while true {
            let count = read(input, &chunk, chunk.count)
            guard count >= 0 else { throw failure("read", source) }
            if count == 0 { break }
            chunk[..<count].withUnsafeBytes { sha.update(bufferPointer: $0) }
            if let output { try write(chunk[..<count], to: output, path ?? "") }
        }
        if let output, fsync(output) != 0 { throw failure("write", path ?? "") }
        return Tokens.hex(Array(sha.finalize()))
    }

    private static func write(_ bytes: ArraySlice<UInt8>, to file: Int32, _ path: String) throws {
        var rest = bytes
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(file, $0.baseAddress, $0.count) }
            guard count > 0 else { throw failure("write", path) }
            rest = rest.dropFirst(count)
        }
    }

    /// Syncs a file or a directory to disk.
    static func sync(_ path: String) throws {
        let file = open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { throw failure("read", path) }
        defer { close(file) }
        guard fsync(file) == 0 else { throw failure("write", path) }
    }

    private static func failure(_ what: String, _ path: String) -> any Error {
        Failure(description: "cannot \(what) \(path): \(DataDirectory.reason())")
    }
}
