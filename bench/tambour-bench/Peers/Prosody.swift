import Foundation
import TambourSQL

/// Prosody with every message archived in SQLite.
final class Prosody: XMPPServer {
    override class var package: String { "prosody" }

    override var unfair: [String] {
        super.unfair + [
            "Nagle's algorithm is off, which its default is not: for it (40 ms stalls in W4)",
            "one core is all it can use: against it in W1 and W2",
        ]
    }

    override func configure() throws {
        let configuration = """
            daemonize = false
            run_as_root = true
            pidfile = "\(directory.path)/prosody.pid"
            data_path = "\(directory.path)/data"
            log = { warn = "\(directory.path)/prosody.log" }
            interfaces = { "127.0.0.1" }
            c2s_ports = { \(port) }
            s2s_ports = {}
            modules_enabled = { "roster", "saslauth", "disco", "carbons", "mam", "ping" }
            modules_disabled = { "s2s", "offline", "tls", "http" }
            c2s_require_encryption = false
            s2s_require_encryption = false
            allow_unencrypted_plain_auth = true
            authentication = "internal_plain"
            storage = "sql"
            sql = { driver = "SQLite3", database = "prosody.sqlite" }
            default_archive_policy = true
            archive_expires_after = "never"
            max_archive_query_results = \(Cast.pageSize)
            network_backend = "epoll"
            network_settings = { tcp_backlog = 1024, nagle = false }
            VirtualHost "\(XMPP.domain)"
            Component "conference.\(XMPP.domain)" "muc"
              modules_enabled = { "muc_mam" }
              muc_log_by_default = true
              muc_log_presences = false
              log_all_rooms = true
              muc_room_locking = false
              muc_room_default_persistent = true

            """
        try FileManager.default.createDirectory(
            at: directory.appendingPathComponent("data"),
            withIntermediateDirectories: true
        )
        try Data(configuration.utf8).write(to: directory.appendingPathComponent("prosody.cfg.lua"))
    }

    override func launch() throws -> ServerProcess {
        guard let program = Installed.program(name) else {
            throw BenchError("prosody is not installed")
        }
        return try ServerProcess(
            program,
            ["-F", "--config", directory.appendingPathComponent("prosody.cfg.lua").path],
            in: directory,
            port: port
        )
    }

    override var database: URL { directory.appendingPathComponent("data/prosody.sqlite") }

    /// Waits until Prosody has created the tables at its first start. Its port answers before the
    /// last table exists.
    override func makeTables() throws {
        try start()
        defer { stop() }
        let names = [
            "prosody_index", "prosodyarchive_index", "prosodyarchive_with_when",
            "prosodyarchive_when", "prosodyarchive_sort",
        ]
        let journal = database.path + "-journal"
        let deadline = Date.now + 30
        while Date.now < deadline {
            // Reads the file directly, because an SQLite connection could block Prosody's
            // connection.
            let content = (try? Data(contentsOf: database)) ?? Data()
            let isWhole = names.allSatisfy { content.range(of: Data($0.utf8)) != nil }
            if isWhole, !FileManager.default.fileExists(atPath: journal) { return }
            usleep(20_000)
        }
        throw BenchError("prosody has not made its tables within 30 s")
    }

    override var insertUser: String {
        """
        INSERT INTO prosody (host, user, store, key, type, value)
        VALUES ('\(XMPP.domain)', $1, 'accounts', 'password', 'string', $2)
        """
    }

    override func befriend(_ user: String, in database: any SQLConnection) throws {
        try database.execute(
            """
            UPDATE prosody
            SET value = replace(value, '"subscription":"none"', '"subscription":"both"')
            WHERE store = 'roster' AND user = '\(user)'
            """
        )
    }

    override func archiver(
        of user: String,
        from senders: [String],
        in database: any SQLConnection
    ) throws -> Archiver {
        let select = try database.prepare(
            """
            SELECT value, "when" FROM prosodyarchive WHERE user = $1 AND store = 'archive' LIMIT 1
            """
        )
        select.bindText(1, user)
        guard try select.step() else { throw BenchError("prosody archived nothing for \(user)") }
        let (stanza, time) = (select.string(0), select.int(1))
        select.reset()
        try database.execute("DELETE FROM prosodyarchive WHERE user = '\(user)'")

        let patterns = try patterns(stanza, for: senders)
        let insert = try database.prepare(
            """
            INSERT INTO prosodyarchive (host, user, store, key, "when", "with", type, value)
            VALUES ($1, $2, 'archive', $3, $4, $5, 'xml', $6)
            """
        )
        return { sender, text, age in
            let key = UUID().uuidString.lowercased()
            let (before, after) = patterns[sender]
            insert.bindText(1, XMPP.domain)
            insert.bindText(2, user)
            insert.bindText(3, key)
            insert.bind(4, time - Int64(age))
            insert.bindText(5, XMPP.address(senders[sender]))
            insert.bindText(6, Array(before.utf8) + XMPP.escape(text) + after.utf8)
            try insert.run()
            return key
        }
    }
}
