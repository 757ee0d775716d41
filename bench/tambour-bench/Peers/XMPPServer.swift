import Foundation
import TambourNet
import TambourSQL

/// The common parts of Prosody and ejabberd: users `u0`, `u1` and so on, message archives, rooms.
///
/// A subclass provides its configuration and the SQLite format of its archive. Seeded rows are
/// copies of a row that the server wrote, with other texts and times.
class XMPPServer: Contestant {
    class var package: String { "" }

    final private(set) var directory = URL(fileURLWithPath: "/")
    final private(set) var port = 0
    final var process: ServerProcess?
    final private let corpus: Corpus
    /// The archive id in the middle of the long conversation.
    final private var middle = ""
    final private var rosterVersion = ""

    init(corpus: Corpus) { self.corpus = corpus }

    // MARK: - For subclasses

    /// Writes one additional row into an archive.
    ///
    /// - Parameters:
    /// - sender: The index of the sender in the parameter `senders` of `archiver`.
    /// - age: The number of seconds before the time of the row that the server wrote.
    /// - Returns: the row's archive id.
    typealias Archiver = (_ sender: Int, _ text: Bytes100, _ age: Int) throws -> String

    /// Writes the configuration.
    func configure() throws {}
    func launch() throws -> ServerProcess { throw BenchError("not a server") }
    var database: URL { directory }
    /// Creates the tables of the database.
    func makeTables() throws {}
    /// The statement that adds the user $1 with the password $2.
    var insertUser: String { "" }
    /// Makes the reader's contacts mutual.
    func befriend(_ user: String, in database: any SQLConnection) throws {}
    /// Removes the only message from the archive of `user`; `senders[0]` wrote it. Returns a
    /// function that writes the seeded rows after the pattern of this message.
    func archiver(
        of user: String,
        from senders: [String],
        in database: any SQLConnection
    ) throws -> Archiver { throw BenchError("not a server") }

    final var name: String { Self.package }
    final var version: String { Installed.version(of: Self.package) }
    var isInstalled: Bool { Installed.program(Self.package) != nil }

    final var durability: String {
        """
        SQLite in WAL mode (set once by hand; its own is DELETE), synchronous FULL: the archive rows of \
        sender and receiver are each committed and flushed before delivery
        """
    }

    var unfair: [String] {
        [
            "stores each message twice, in the archives of both, and parses XML: against it",
            """
            acknowledges no message to its sender, and a message counts as done when it is delivered: \
            for it
            """,
        ]
    }

    // MARK: - Running

    final func prepare(_ cast: Cast, in directory: URL) throws {
        self.directory = directory
        port = try freePort()
        try configure()
        try makeTables()
        try addUsers()
        let reader = user(Cast.reader)
        let (historian, partner) = (user(Cast.historian.reads), user(Cast.historian.wrote))
        let contacts = Cast.contacts.map(user)

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

    /// Inserts the users into the database of the stopped server.
    private func addUsers() throws {
        // Opening the file with this connection enables its write-ahead log permanently.
        let connection = try SQLiteConnection(path: database.path, mode: .readWrite)
        try connection.transaction(.immediate) {
            let insert = try connection.prepare(insertUser)
            for number in Cast.users {
                insert.bindText(1, user(number))
                insert.bindText(2, XMPP.password)
                try insert.run()
            }
        }
    }

    /// - Returns: the archive id of the message in the middle.
    private func seedArchive(
        of user: String,
        from senders: [String],
        texts: [Bytes100],
        in database: any SQLConnection
    ) throws -> String {
        let archive = try archiver(of: user, from: senders, in: database)
        var middle = ""
        for (index, text) in texts.enumerated() {
            let id = try archive(index % senders.count, text, texts.count - index)
            if index == texts.count / 2 { middle = id }
        }
        return middle
    }

    /// `synchronous` is a property of a connection and cannot be read from outside, so the check
    /// reads the default of the SQLite library.
    final func verifiedDurability() throws -> String {
        let process = try running()
        let file = SQLiteFile(database)
        let library = try file.defaultsToFull(in: process)
        return try file.seen(by: process)
            + "; synchronous is 2 (FULL) by default in the \(library) it has loaded; "
            + "that it sets no other is read in its source, not seen"
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

    /// Requests the roster by version, and then the archive after the last known message.
    final func catchUp(_ cast: Cast) throws -> (() throws -> Exchange)? {
        let (address, meter) = (try address, try meter)
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
            let texts = cast.texts(writers.count, from: round * writers.count)
            for (writer, text) in zip(writers, texts) { try writer.write([text], to: reader) }
            return try Exchange.measure(meter) {
                let session = try XMPPSession(address, user: reader)
                guard try session.rosterVersion(since: rosterVersion) == nil else {
                    throw BenchError("\(self.name) sent a roster that was known")
                }
                let page = try session.page(after: last)
                guard page.texts == texts.map(XMPP.arriving), let newest = page.last else {
                    throw BenchError("\(self.name) brought \(page.texts.count) messages, or others")
                }
                last = newest
                return session.connection
            }
        }
    }

    final func pages(_ cast: Cast) throws -> (() throws -> Exchange)? {
        let session = try XMPPSession(address, user: user(Cast.historian.reads))
        let partner = user(Cast.historian.wrote)
        let meter = try meter
        var after = middle
        var count = 0
        return { [middle, name] in
            count += 1
            return try Exchange.measure(meter, on: session.connection) {
                let page = try session.page(with: partner, after: after, limit: Cast.pageSize)
                guard page.texts.count == Cast.pageSize, let last = page.last else {
                    throw BenchError("\(name) sent a page of \(page.texts.count)")
                }
                after = count % 500 == 0 ? middle : last
                return session.connection
            }
        }
    }

    // MARK: - For seeding

    /// Splits a stored stanza around its text, once per sender.
    final func patterns(
        _ stanza: String,
        for senders: [String]
    ) throws -> [(before: String, after: String)] {
        try senders.map { sender in
            let own = stanza.replacingOccurrences(of: senders[0], with: sender)
            guard let start = own.range(of: "<body>")?.upperBound,
                let end = own.range(of: "</body>")?.lowerBound
            else { throw BenchError("the archive holds no message: \(own)") }
            return (String(own[..<start]), String(own[end...]))
        }
    }
}
