import Foundation
import TambourProtocol
import TambourSQL

/// Ten million messages, including four long dialogs; W5 and W9 read pages of these dialogs.
struct HistorySeed {
    static let lengths = [1_000, 10_000, 100_000, longest]
    static let longest = 1_000_000
    private static let total = 10_000_000
    private static let fillers = 2_000

    /// A data directory, which must not be written to.
    let folder: URL
    private let accounts: [Account]

    /// Creates the seed, or uses an existing one.
    init(_ bench: Bench) throws {
        folder = try Seeder.cached("history-2", in: bench.cache) { folder in
            Progress.note("W5: seeding \(Self.total) messages, once; this takes some minutes")
            let accounts = try TambourServer.makeUsers(
                2 * (Self.lengths.count + Self.fillers),
                firstPhone: 79_990_000_000,
                program: bench.tambourd,
                directory: folder
            )
            let (lengths, total, perBatch) = (Self.lengths, Self.total, 1_000)
            let seeder = try Seeder(folder, corpus: bench.corpus, batches: total / perBatch)
            // Writes the chats in turns, as real chats grow, so that a chat's pages are scattered
            // over the file.
            var left =
                lengths
                + Array(
                    repeating: (total - lengths.reduce(0, +)) / Self.fillers,
                    count: Self.fillers
                )
            var pivots = lengths.map { _ in [MessageID]() }
            while left.contains(where: { $0 > 0 }) {
                for index in left.indices where left[index] > 0 {
                    // Long chats get more turns.
                    let turns = max(1, left[index] / 100_000)
                    for _ in 0..<turns where left[index] > 0 {
                        let count = min(perBatch, left[index])
                        let ids = try seeder.dialog(
                            accounts[2 * index].userID,
                            accounts[2 * index + 1].userID,
                            messages: count
                        )
                        left[index] -= count
                        guard index < lengths.count else { continue }
                        let every = max(1, lengths[index] / 2_000)
                        pivots[index] += ids.enumerated().filter { $0.offset % every == 0 }.map(
                            \.element
                        )
                    }
                }
            }
            for (length, ids) in zip(lengths, pivots) {
                // Skips messages near both ends of the dialog.
                let middle = ids[(ids.count / 10)..<(ids.count - ids.count / 10)].shuffled()
                let text = middle.map { "\($0.rawValue)\n" }.joined()
                try Data(text.utf8).write(to: folder.appendingPathComponent("pivots-\(length)"))
            }
        }
        accounts = try Account.read(folder.appendingPathComponent("accounts").path)
    }

    /// Returns the two users of the dialog of this length.
    func readers(of length: Int) -> [Account] {
        guard let position = Self.lengths.firstIndex(of: length) else {
            preconditionFailure("there are dialogs of \(Self.lengths) messages")
        }
        return [accounts[2 * position], accounts[2 * position + 1]]
    }

    /// Returns a file of message ids in the middle of the dialog of this length, one per line.
    func pivots(of length: Int) -> URL { folder.appendingPathComponent("pivots-\(length)") }

    /// Returns the send times of the messages whose ids are in the file `pivots`.
    func times(of length: Int) throws -> [Int64] {
        try String(contentsOf: pivots(of: length), encoding: .utf8).split(separator: "\n")
            .compactMap { Int64($0).map { MessageID($0).timeMs } }
    }

    /// Returns the store's key of the dialog of this length.
    func chatKey(of length: Int) throws -> Int64 {
        let users = readers(of: length).map(\.userID)
        let path = folder.appendingPathComponent("tambour.db").path
        let connection = try SQLiteConnection(path: path, mode: .readOnly)
        let statement = try connection.prepare(
            "SELECT id FROM chat WHERE low_user = $1 AND high_user = $2"
        )
        statement.bind(1, min(users[0], users[1]).rawValue)
        statement.bind(2, max(users[0], users[1]).rawValue)
        defer { statement.reset() }
        guard try statement.step() else { throw BenchError("the seed has no such dialog") }
        return statement.int(0)
    }
}
