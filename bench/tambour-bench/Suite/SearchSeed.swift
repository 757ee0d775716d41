import Foundation
import TambourProtocol
import TambourSQL

/// A million indexed messages. One dialog has nine hundred thousand messages, and one of its users
/// has nine further, short dialogs. The remaining messages are in dialogs of other users.
struct SearchSeed {
    static let total = 1_000_000
    static let long = 900_000
    private static let short = 2_000
    private static let shortDialogs = 9
    private static let others = 41

    /// A data directory, which must not be written to.
    let folder: URL
    private let accounts: [Account]

    /// Creates the seed, or uses an existing one.
    init(_ bench: Bench) throws {
        folder = try Seeder.cached("search-1", in: bench.cache) { folder in
            Progress.note("W10: seeding \(Self.total) messages, once")
            let accounts = try TambourServer.makeUsers(
                2 + Self.shortDialogs + 2 * Self.others,
                firstPhone: 79_990_000_000,
                program: bench.tambourd,
                directory: folder
            )
            let perBatch = 1_000
            let seeder = try Seeder(
                folder,
                corpus: bench.corpus,
                batches: Self.total / perBatch
            )
            // The dialogs, each with the number of messages still to write. They are written in
            // turns, as real chats grow.
            var turns: [(a: UserID, b: UserID, left: Int)] = [
                (accounts[0].userID, accounts[1].userID, Self.long)
            ]
            for index in 0..<Self.shortDialogs {
                turns.append((accounts[0].userID, accounts[2 + index].userID, Self.short))
            }
            for index in 0..<Self.others {
                let first = 2 + Self.shortDialogs + 2 * index
                turns.append((accounts[first].userID, accounts[first + 1].userID, Self.short))
            }
            var pivots: [MessageID] = []
            while turns.contains(where: { $0.left > 0 }) {
                for index in turns.indices {
                    for _ in 0..<max(1, turns[index].left / 50_000) where turns[index].left > 0 {
                        let count = min(perBatch, turns[index].left)
                        let ids = try seeder.dialog(
                            turns[index].a,
                            turns[index].b,
                            messages: count
                        )
                        turns[index].left -= count
                        if index == 0 { pivots += ids.prefix(2) }
                    }
                }
            }
            // Skips messages near both ends of the dialog.
            let middle = pivots[(pivots.count / 10)..<(pivots.count - pivots.count / 10)].shuffled()
            let text = middle.map { "\($0.rawValue)\n" }.joined()
            try Data(text.utf8).write(to: folder.appendingPathComponent("pivots"))
        }
        accounts = try Account.read(folder.appendingPathComponent("accounts").path)
    }

    /// The user who searches; `partner` is the other user of the long dialog.
    var searcher: Account { accounts[0] }
    var partner: Account { accounts[1] }

    /// A file of message ids in the middle of the long dialog, one per line.
    var pivots: URL { folder.appendingPathComponent("pivots") }

    /// Returns the store's key of the long dialog.
    func chatKey() throws -> Int64 {
        let path = folder.appendingPathComponent("tambour.db").path
        let connection = try SQLiteConnection(path: path, mode: .readOnly)
        let statement = try connection.prepare(
            "SELECT chat FROM message GROUP BY chat ORDER BY count(*) DESC LIMIT 1"
        )
        defer { statement.reset() }
        guard try statement.step() else { throw BenchError("the seed has no dialog") }
        return statement.int(0)
    }

    /// Returns the numbers at the start of messages of the long dialog; each number occurs as a
    /// word in only one message.
    func rareWords(_ count: Int) throws -> [String] {
        let path = folder.appendingPathComponent("tambour.db").path
        let connection = try SQLiteConnection(path: path, mode: .readOnly)
        let statement = try connection.prepare(
            "SELECT text FROM message WHERE chat = $1 AND n % $2 = 7 ORDER BY id"
        )
        defer { statement.reset() }
        statement.bind(1, try chatKey())
        statement.bind(2, Self.long / count)
        var words: [String] = []
        while try statement.step() {
            words.append(String(statement.string(0).dropFirst().prefix(8)))
        }
        return words.shuffled()
    }
}
