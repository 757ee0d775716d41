import Foundation
import TambourNet
import TambourProtocol

/// Tambour itself, unmodified. Every user has a token, and all data is seeded through the server.
final class TambourContestant: Contestant {
    private let program: String
    private let corpus: Corpus
    private var directory = URL(fileURLWithPath: "/")
    var process: ServerProcess?
    private var accounts: [Int: Account] = [:]
    /// The start times of the W5 pages.
    private var anchors: [Int64] = []

    init(program: String, corpus: Corpus) {
        self.program = program
        self.corpus = corpus
    }

    let name = "Tambour"

    var version: String {
        let text = try? Tool.text(program, ["--version"])
        return text?.trimmingCharacters(in: .whitespacesAndNewlines) ?? "of unknown version"
    }

    var isInstalled: Bool { FileManager.default.isExecutableFile(atPath: program) }

    var durability: String {
        """
        SQLite in WAL mode, synchronous FULL: a message is committed and flushed, many in one commit, \
        before its sender and its receiver hear of it
        """
    }

    var unfair: [String] {
        [
            "one copy of a message serves all its readers, where XMPP archives one each: for it",
            "W4 answers both questions of XMPP, roster and archive, with one request: for it",
        ]
    }

    func prepare(_ cast: Cast, in directory: URL) throws {
        self.directory = directory
        let made = try TambourServer.makeUsers(
            Cast.users.count,
            firstPhone: 79_990_000_000,
            program: program,
            directory: directory
        )
        accounts = Dictionary(uniqueKeysWithValues: zip(Cast.users, made))

        try start()
        defer { stop() }
        let reader = try session(Cast.reader)
        for contact in Cast.contacts {
            let texts = cast.texts(Cast.earlierMessages, from: contact * Cast.earlierMessages)
            try reader.write(texts, to: account(contact))
        }
        let writer = try session(Cast.historian.wrote)
        let batch = 500
        for first in stride(from: 0, to: Cast.conversation, by: batch) {
            try writer.write(cast.texts(batch, from: first), to: account(Cast.historian.reads))
        }
    }

    func launch() throws -> ServerProcess {
        try TambourServer(program: program, directory: directory).process
    }

    func verifiedDurability() throws -> String {
        let file = directory.appendingPathComponent("tambour.db")
        return try SQLiteFile(file).seen(by: running())
            + "; synchronous is 2 (FULL), which tambourd reads back when it starts"
    }

    private func account(_ user: Int) -> Account {
        guard let account = accounts[user] else {
            preconditionFailure("prepare makes every user of the cast; \(user) is none")
        }
        return account
    }

    private func session(_ user: Int) throws -> TambourSession {
        let session = try TambourSession(address, account: account(user))
        _ = try session.logIn()
        return session
    }

    func person(
        _ index: Int,
        writesTo to: Int?,
        run: String,
        _ sink: any LoadSink
    ) -> LoadClient {
        let account = account(index)
        return TambourClient(
            index: index,
            sink: sink,
            account: account,
            corpus: corpus,
            chat: account.dialog(with: self.account(index ^ 1))
        )
    }

    func member(
        _ index: Int,
        of count: Int,
        run: String,
        _ sink: any LoadSink
    ) -> LoadClient {
        TambourClient(
            index: index,
            sink: sink,
            account: account(index),
            corpus: corpus,
            creates: index == 0 ? (1..<count).map { account($0) } : []
        )
    }

    /// Each reconnect is one login. It uses the login mark that the previous login returned.
    func catchUp(_ cast: Cast) throws -> (() throws -> Exchange)? {
        let (address, meter) = (try address, try meter)
        let reader = account(Cast.reader)
        let writers = try Cast.writers.map(session)
        let first = try TambourSession(address, account: reader).logIn()
        let configHash = first.config?.hash
        var mark = first.time
        var round = 0
        return {
            round += 1
            let texts = cast.texts(writers.count, from: round * writers.count)
            for (writer, text) in zip(writers, texts) { try writer.write([text], to: reader) }
            return try Exchange.measure(meter) {
                let session = try TambourSession(address, account: reader)
                let reply = try session.logIn(since: mark, configHash: configHash)
                let new = Set(reply.chats.compactMap { $0.lastMessage?.text })
                for text in texts where !new.contains(Text(unchecked: Bytes(text))) {
                    throw BenchError("Tambour's login brought \(new.count) new messages")
                }
                mark = reply.time
                return session.connection
            }
        }
    }

    func pages(_ cast: Cast) throws -> (() throws -> Exchange)? {
        let session = try session(Cast.historian.reads)
        let partner = account(Cast.historian.wrote)
        if anchors.isEmpty { anchors = try pagesFromTheMiddle(session, partner) }
        let meter = try meter
        var count = 0
        return { [anchors] in
            count += 1
            return try Exchange.measure(meter, on: session.connection) {
                let page = try session.page(
                    with: partner,
                    after: anchors[count % anchors.count],
                    limit: Int64(Cast.pageSize)
                )
                guard page.count == Cast.pageSize else {
                    throw BenchError("Tambour sent a page of \(page.count)")
                }
                return session.connection
            }
        }
    }

    /// Reads and decodes the conversation once, and returns the start times of pages.
    private func pagesFromTheMiddle(_ session: TambourSession, _ partner: Account) throws -> [Int64]
    {
        let size = Int64(Cast.pageSize)
        let half = Cast.conversation / 2 / Cast.pageSize
        var times: [Int64] = [0]
        while times.count < half + 500 {
            let page = try session.page(with: partner, after: times[times.count - 1], limit: size)
            guard page.count == Cast.pageSize, let last = page.last else {
                throw BenchError("Tambour sent a page of \(page.count)")
            }
            times.append(last.time)
        }
        return Array(times.dropFirst(half))
    }
}
