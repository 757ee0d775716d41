import Foundation
import TambourNet
import TambourSQL

/// What Prosody and ejabberd have in common: users `u0`, `u1` …, archives of messages, rooms.
///
/// A subclass knows its configuration and how its archive lies in SQLite. What is seeded there is a
/// copy of a row that the server wrote itself, with other texts and times.
class XMPPServer: Contestant {
    class var package: String { "" }

    final private(set) var directory = URL(fileURLWithPath: "/")
    final private(set) var port = 0
    final private var process: PeerProcess?
    final private let corpus: Corpus
    /// Where the middle of the long conversation is.
    final private var middle = ""
    final private var rosterVersion = ""

    init(corpus: Corpus) { self.corpus = corpus }

    // MARK: - For subclasses

    /// Writes the configuration.
    func configure() throws {}
    func launch() throws -> PeerProcess { throw BenchError("not a server") }
    var database: URL { directory }
    /// Makes the tables of the database; unless overridden, the server does it at its first start.
    func makeTables() throws {
        try start()
        // Its port answers before the last table is made, and nothing tells when that is.
        Thread.sleep(forTimeInterval: 5)
        stop()
    }
    /// Adds users to the database of the stopped server.
    func addUsers(_ names: [String], to database: any SQLConnection) throws {}
    /// Makes the reader's contacts mutual.
    func befriend(_ user: String, in database: any SQLConnection) throws {}
    /// Replaces `user`'s archive, which holds one message of `from[0]`, by one with all `texts`.
    ///
    /// - Returns: the archive's id of the message in the middle.
    func seedArchive(
        of user: String,
        from senders: [String],
        texts: [Bytes100],
        in database: any SQLConnection
    ) throws -> String { "" }

    var name: String { Self.package }
    final var version: String { PeerProcess.version(of: Self.package) }
    var durability: String { "" }
    var unfair: [String] { [] }
    var isInstalled: Bool { PeerProcess.find(Self.package) != nil }

    // MARK: - Running

    final var address: ListenAddress {
        get throws { try running().address }
    }

    final var meter: ProcessMeter {
        get throws { try running().meter }
    }

    private func running() throws -> PeerProcess {
        guard let process else { throw BenchError("\(name) does not run") }
        return process
    }

    final func start() throws { process = try launch() }

    final func stop() {
        process?.stop()
        process = nil
    }

    final func prepare(_ cast: Cast, in directory: URL) throws {
        self.directory = directory
        port = try PeerProcess.freePort()
        try configure()
        try makeTables()
        let reader = user(Cast.reader)
        let (historian, partner) = (user(Cast.historian.reads), user(Cast.historian.wrote))
        let contacts = Cast.contacts.map(user)
        do {
            // Opening the file here turns its log on, once and for all.
            let connection = try SQLiteConnection(path: database.path, mode: .readWrite)
            try connection.transaction(.immediate) {
                try addUsers(Cast.users.map(user), to: connection)
            }
        }

        try start()
        do {
            let session = try XMPPSession(address, user: reader)
            for (index, contact) in contacts.enumerated() {
                let request = XMPP.addContact(contact, name: "Contact \(index)", id: "c\(index)")
                try session.ask(request, id: "c\(index)") { _ in }
            }
            try XMPPSession(address, user: contacts[0]).write(cast.texts(1), to: reader)
            try XMPPSession(address, user: partner).write(cast.texts(1), to: historian)
        }
        stop()

        let connection = try SQLiteConnection(path: database.path, mode: .readWrite)
        try connection.transaction(.immediate) {
            try befriend(reader, in: connection)
            _ = try seedArchive(
                of: reader,
                from: contacts,
                texts: cast.texts(contacts.count * Cast.earlierMessages),
                in: connection
            )
            middle = try seedArchive(
                of: historian,
                from: [partner],
                texts: cast.texts(Cast.conversation),
                in: connection
            )
        }
        try connection.checkpoint()
    }

    final func user(_ number: Int) -> String { "u\(number)" }

    // MARK: - The work

    final func person(
        _ index: Int,
        writesTo to: Int?,
        run: String,
        _ sink: any LoadSink
    ) -> LoadClient {
        XMPPClient(
            index: index,
            sink: sink,
            user: user(index),
            target: to.map { .user(user($0)) } ?? .nobody,
            corpus: corpus
        )
    }

    final func member(
        _ index: Int,
        of count: Int,
        run: String,
        _ sink: any LoadSink
    ) -> LoadClient {
        XMPPClient(
            index: index,
            sink: sink,
            user: user(index),
            target: .room("\(run)@conference.\(XMPP.domain)", writes: index == 0),
            corpus: corpus
        )
    }

    /// The roster by its version, then the archive behind the last message that is known.
    final func catchUp(_ cast: Cast) throws -> (() throws -> Exchange)? {
        let address = try address
        let reader = user(Cast.reader)
        let writers = try Cast.writers.map { try XMPPSession(address, user: user($0)) }
        let first = try XMPPSession(address, user: reader)
        rosterVersion = try first.rosterVersion(since: rosterVersion) ?? rosterVersion
        guard var last = try first.page(after: nil, limit: 1).last else {
            throw BenchError("\(name): the reader's archive is empty")
        }
        var round = 0
        return { [rosterVersion] in
            round += 1
            for (index, writer) in writers.enumerated() {
                try writer.write(cast.texts(1, from: round * writers.count + index), to: reader)
            }
            return try Exchange.measure {
                let session = try XMPPSession(address, user: reader)
                guard try session.rosterVersion(since: rosterVersion) == nil else {
                    throw BenchError("\(self.name) sent a roster that was known")
                }
                let page = try session.page(after: last)
                guard page.count == writers.count, let newest = page.last else {
                    throw BenchError("\(self.name) brought \(page.count) new messages")
                }
                last = newest
                return session.connection
            }
        }
    }

    final func pages(_ cast: Cast) throws -> (() throws -> Exchange)? {
        let session = try XMPPSession(address, user: user(Cast.historian.reads))
        let partner = user(Cast.historian.wrote)
        var after = middle
        var count = 0
        return { [middle, name] in
            let before = (session.connection.bytesIn, session.connection.bytesOut)
            var exchange = try Exchange.measure {
                let page = try session.page(with: partner, after: after, limit: Cast.pageSize)
                guard page.count == Cast.pageSize, let last = page.last else {
                    throw BenchError("\(name) sent a page of \(page.count)")
                }
                count += 1
                after = count % 500 == 0 ? middle : last
                return session.connection
            }
            exchange.bytesIn -= before.0
            exchange.bytesOut -= before.1
            return exchange
        }
    }

    // MARK: - For seeding

    /// Cuts a stored stanza around its text.
    static func template(_ stanza: String) throws -> (before: String, after: String) {
        guard let start = stanza.range(of: "<body>")?.upperBound,
            let end = stanza.range(of: "</body>")?.lowerBound
        else { throw BenchError("the archive holds no message: \(stanza)") }
        return (String(stanza[..<start]), String(stanza[end...]))
    }
}
