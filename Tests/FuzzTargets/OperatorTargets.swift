import Glibc
import TambourMessenger
import TambourProtocol
import TambourSQL
import TambourServer
import TambourStore

/// Parses an admin line, writes the request as words again, and checks that these words parse to
/// the same request. Also checks that a store answers the request.
struct AdminFixture {
    static let shared = AdminFixture()

    private let service: AdminService

    private init() {
        do {
            let backend = try OfflineAdminBackend(dataDirectory: Scratch.directory + "/admin")
            service = AdminService(backend)
            try service.run(.createUsers(count: 3, firstPhone: 79_990_000_001)) { _ in }
        } catch {
            broken("no store: \(error)")
        }
    }

    func run(_ input: [UInt8]) {
        let line = String(decoding: input, as: UTF8.self)
        let words = line.split(separator: "\t").map(String.init)
        guard let request = AdminService.Request(words: words) else { return }
        guard let again = AdminService.Request(words: request.words), again.words == request.words
        else { broken("\(request.words) is read as another request") }
        guard isHarmless(request) else { return }
        // Refusals are allowed; the target ignores the output of the command.
        try? service.run(request) { _ in }
    }

    /// Returns whether the request only reads. A request that writes would change the store for the
    /// next input.
    private func isHarmless(_ request: AdminService.Request) -> Bool {
        switch request {
        case .users, .user, .chats, .chat, .sessions, .session, .export, .stats, .reports, .clock:
            true
        default: false
        }
    }
}

/// Parses the digest list of a backup, writes it as text again, and checks that this text parses to
/// the same list.
func fuzzManifest(_ input: [UInt8]) {
    guard let text = String(validating: input, as: UTF8.self),
        let manifest = Backup.Manifest(text)
    else { return }
    guard let again = Backup.Manifest(manifest.text), again == manifest else {
        broken("a list of digests is read as another one")
    }
    _ = (manifest.count, manifest.rows)
}

/// Changes bytes of a store file. All code that reads a whole store must then either read the file
/// or throw an error.
struct StoreFixture {
    static let shared = StoreFixture()

    private let original: [UInt8]
    private let path = Scratch.directory + "/changed.db"

    private init() {
        let directory = Scratch.directory + "/store"
        do {
            let service = AdminService(try OfflineAdminBackend(dataDirectory: directory))
            try service.run(.createUsers(count: 20, firstPhone: 79_990_000_001)) { _ in }
            let copy = Scratch.directory + "/original.db"
            try SQLiteConnection(path: directory + "/tambour.db", mode: .readOnly).copy(to: copy)
            let connection = try SQLiteConnection(path: copy, mode: .readWrite)
            try connection.execute("PRAGMA journal_mode = DELETE")
            original = Scratch.read(copy)
        } catch {
            broken("no store: \(error)")
        }
    }

    func run(_ input: [UInt8]) {
        var file = original
        for patch in stride(from: 0, to: input.count - 3, by: 4).prefix(64) {
            let place = Int(input[patch]) << 16 | Int(input[patch + 1]) << 8 | Int(input[patch + 2])
            file[place % file.count] = input[patch + 3]
        }
        for suffix in ["-wal", "-shm", "-journal"] { unlink(path + suffix) }
        Scratch.write(file, to: path)
        try? look()
    }

    /// Reads the file in the same ways as `restore`, `admin check` and the start of a server.
    private func look() throws {
        let connection = try SQLiteConnection(path: path, mode: .readWrite)
        _ = try StoreDigest.tables(of: connection)
        try StoreConnection.migrate(connection)
        let store = try StoreConnection(connection, limits: .standard)
        _ = try StoreCheck.problems(of: store, wall: 1_790_000_000_000)
        let writer = try StoreWriter(store, userIDs: .random(Environment.live.randomBytes))
        _ = CommitClock(persistedLeaseEnd: try writer.persistedLeaseEnd(), leaseMs: 250)
    }
}

/// A directory for the files that targets need, in memory if the machine has `/dev/shm`.
enum Scratch {
    static let directory: String = {
        let parent = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp"
        var template = Array("\(parent)/tambour-fuzz-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { broken("no directory in \(parent)") }
        return String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }()

    static func write(_ bytes: [UInt8], to path: String) {
        let file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
        let count = bytes.withUnsafeBytes { Glibc.write(file, $0.baseAddress, $0.count) }
        close(file)
        guard count == bytes.count else { broken("cannot write \(path)") }
    }

    static func read(_ path: String) -> [UInt8] {
        let file = open(path, O_RDONLY)
        defer { close(file) }
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 1 << 16)
        while true {
            let count = Glibc.read(file, &chunk, chunk.count)
            guard count > 0 else { return bytes }
            bytes += chunk[..<count]
        }
    }
}
