import Foundation
import TambourSQL

/// ejabberd with every message archived in SQLite.
final class Ejabberd: XMPPServer {
    override class var package: String { "ejabberd" }

    override var unfair: [String] {
        super.unfair + [
            "SQLite is its smallest store; with PostgreSQL it may use more cores: against it"
        ]
    }

    override func configure() throws {
        let configuration = """
            hosts: [\(XMPP.domain)]
            loglevel: 2
            listen:
              - port: \(port)
                ip: "127.0.0.1"
                module: ejabberd_c2s
                max_stanza_size: 262144
                shaper: none
                access: all
                backlog: 1024
            auth_method: sql
            auth_password_format: plain
            sql_type: sqlite
            sql_database: "\(database.path)"
            default_db: sql
            new_sql_schema: false
            shaper_rules:
              max_user_sessions: 10000
              max_user_offline_messages: 5000
              c2s_shaper: none
            modules:
              mod_disco: {}
              mod_carboncopy: {}
              mod_roster:
                versioning: true
              mod_mam:
                default: always
                assume_mam_usage: true
              mod_ping: {}
              mod_muc:
                host: "conference.\(XMPP.domain)"
                db_type: mnesia
                access: all
                access_create: all
                access_persistent: all
                access_mam: all
                max_users: 5000
                max_users_presence: 5000
                min_message_interval: 0
                min_presence_interval: 0
                history_size: 0
                default_room_options:
                  mam: true
                  persistent: true
                  max_users: 5000

            """
        try Data(configuration.utf8).write(to: directory.appendingPathComponent("ejabberd.yml"))
    }

    /// Starts without `ejabberdctl`, so that the node has no name. A named node would start a port
    /// mapper and leave it running.
    override func launch() throws -> ServerProcess {
        guard let erl = Installed.program("erl"), let library = Self.library else {
            throw BenchError("ejabberd is not installed")
        }
        return try ServerProcess(
            erl,
            [
                "+K", "true", "+P", "250000", "-mnesia", "dir", "\"\(directory.path)/mnesia\"",
                "-s", "ejabberd", "-noinput",
            ],
            environment: [
                "ERL_LIBS": library,
                "EJABBERD_CONFIG_PATH": directory.appendingPathComponent("ejabberd.yml").path,
                "EJABBERD_LOG_PATH": directory.appendingPathComponent("ejabberd.log").path,
                "HOME": directory.path,
            ],
            in: directory,
            port: port
        )
    }

    override var isInstalled: Bool { Installed.program("erl") != nil && Self.library != nil }

    /// The folder that contains `ejabberd-VERSION`.
    private static var library: String? {
        for folder in (try? FileManager.default.contentsOfDirectory(atPath: "/usr/lib")) ?? [] {
            let path = "/usr/lib/\(folder)"
            let names = (try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []
            if names.contains(where: { $0.hasPrefix("ejabberd-") }) { return path }
        }
        return nil
    }

    override var database: URL { directory.appendingPathComponent("ejabberd.sqlite") }

    /// Creates the tables from the SQL file with which ejabberd itself creates them.
    override func makeTables() throws {
        let tables = try String(contentsOfFile: "/usr/share/ejabberd/sql/lite.sql", encoding: .utf8)
        try SQLiteConnection(path: database.path, mode: .readWrite).execute(tables)
    }

    override var insertUser: String { "INSERT INTO users (username, password) VALUES ($1, $2)" }

    override func befriend(_ user: String, in database: any SQLConnection) throws {
        try database.execute(
            "UPDATE rosterusers SET subscription = 'B', ask = 'N' WHERE username = '\(user)'"
        )
    }

    override func archiver(
        of user: String,
        from senders: [String],
        in database: any SQLConnection
    ) throws -> Archiver {
        let select = try database.prepare(
            "SELECT xml, timestamp, peer, kind, nick FROM archive WHERE username = $1 LIMIT 1"
        )
        select.bindText(1, user)
        guard try select.step() else { throw BenchError("ejabberd archived nothing for \(user)") }
        let (stanza, time, peer) = (select.string(0), select.int(1), select.string(2))
        let (kind, nick) = (select.string(3), select.string(4))
        select.reset()
        try database.execute("DELETE FROM archive WHERE username = '\(user)'")

        let patterns = try patterns(stanza, for: senders)
        let insert = try database.prepare(
            """
            INSERT INTO archive (username, timestamp, peer, bare_peer, xml, txt, kind, nick)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
            """
        )
        return { sender, text, age in
            // The archive ids are times in microseconds.
            let now = "\(time - Int64(age) * 1_000_000)"
            let before = patterns[sender].before.replacingOccurrences(of: "\(time)", with: now)
            let after = patterns[sender].after.replacingOccurrences(of: "\(time)", with: now)
            insert.bindText(1, user)
            insert.bind(2, time - Int64(age) * 1_000_000)
            insert.bindText(3, peer.replacingOccurrences(of: senders[0], with: senders[sender]))
            insert.bindText(4, XMPP.address(senders[sender]))
            insert.bindText(5, Array(before.utf8) + XMPP.escape(text) + after.utf8)
            insert.bindText(6, text)
            insert.bindText(7, kind)
            insert.bindText(8, nick)
            try insert.run()
            return now
        }
    }
}
