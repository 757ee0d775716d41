import Foundation
import TambourSQL

/// Prosody with every message archived in SQLite.
final class Prosody: XMPPServer {
    override class var package: String { "prosody" }

    override var durability: String {
        """
        SQLite in WAL mode (set once by hand; Prosody's own is DELETE), synchronous FULL: the archive \
        rows of sender and receiver are each committed and flushed before delivery
        """
    }

    override var unfair: [String] {
        [
            "stores each message twice, in the archives of both, and parses XML: against it",
            """
            acknowledges no message to its sender, and a message counts as done when it is delivered: \
            for it
            """,
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

    override func launch() throws -> PeerProcess {
        guard let program = PeerProcess.find("prosody") else {
            throw BenchError("prosody is not installed")
        }
        return try PeerProcess(
            program,
            ["-F", "--config", directory.appendingPathComponent("prosody.cfg.lua").path],
            in: directory,
            port: port
        )
    }

    override var database: URL { directory.appendingPathComponent("data/prosody.sqlite") }

    override func addUsers(_ names: [String], to database: any SQLConnection) throws {
        let insert = try database.prepare(
            """
            INSERT INTO prosody (host, user, store, key, type, value)
            VALUES ($1, $2, 'accounts', 'password', 'string', $3)
            """
        )
        for name in names {
            insert.bindText(1, XMPP.domain)
            insert.bindText(2, name)
            insert.bindText(3, XMPP.password)
            try insert.run()
        }
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

    override func seedArchive(
        of user: String,
        from senders: [String],
        texts: [Bytes100],
        in database: any SQLConnection
    ) throws -> String {
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

        let insert = try database.prepare(
            """
            INSERT INTO prosodyarchive (host, user, store, key, "when", "with", type, value)
            VALUES ($1, $2, 'archive', $3, $4, $5, 'xml', $6)
            """
        )
        let templates = try senders.map { sender in
            try Self.template(stanza.replacingOccurrences(of: senders[0], with: sender))
        }
        var middle = ""
        for (index, text) in texts.enumerated() {
            let sender = index % senders.count
            let key = UUID().uuidString.lowercased()
            let value = templates[sender]
            if index == texts.count / 2 { middle = key }
            insert.bindText(1, XMPP.domain)
            insert.bindText(2, user)
            insert.bindText(3, key)
            insert.bind(4, time - Int64(texts.count - index))
            insert.bindText(5, XMPP.address(senders[sender]))
            insert.bindText(6, Array(value.before.utf8) + XMPP.escape(text) + value.after.utf8)
            try insert.run()
        }
        return middle
    }
}
