import Foundation
import TambourMessenger
import TambourProtocol
import TambourSQL
import TambourServer
import TambourStore
import TambourTesting
import Testing

/// Stores in which one number has a value that no server writes, as after a flipped bit in a
/// well-formed page.
@Suite("Impossible rows", .serialized)
struct ImpossibleRowTests {
    /// An extreme number in one row or in all rows.
    private struct Damage: CustomStringConvertible {
        let column: StoreColumn
        let value: Int64
        let isEverywhere: Bool

        var description: String {
            "\(column.table).\(column.name) = \(value)\(isEverywhere ? " everywhere" : "")"
        }

        var sql: String {
            let set = "UPDATE OR IGNORE \(column.table) SET \(column.name) = \(value)"
            guard !isEverywhere else { return set }
            let keys = column.keys.joined(separator: ", ")
            return "\(set) WHERE (\(keys)) = (SELECT \(keys) FROM \(column.table) "
                + "ORDER BY \(column.keys.map { "\($0) DESC" }.joined(separator: ", ")) LIMIT 1)"
        }
    }

    private static let values: [Int64] = [.min, .min + 1, -1, .max - 1, .max]

    @Test("a store with a number at an end is refused in words, or served; `admin check` names it")
    func sweep() throws {
        let environment = ProcessInfo.processInfo.environment
        let isSoak = environment["TAMBOUR_SOAK"] == "1"
        // A trap ends the whole test process, so only a soak run uses a random seed.
        let seed =
            environment["TAMBOUR_SEED"].flatMap { UInt64($0) }
            ?? (isSoak ? .random(in: 0 ... .max) : 7)
        var random = SeededGenerator(seed: seed)
        let world = try StoredWorld()
        defer { world.remove() }
        let columns = try world.columns()
        #expect(Set(columns.map(\.table)).count > 30)
        var damages = columns.flatMap { column in
            Self.values.flatMap { value in
                [false, true].map { Damage(column: column, value: value, isEverywhere: $0) }
            }
        }
        .shuffled(using: &random)
        if !isSoak { damages = Array(damages.prefix(8)) }
        print("impossible rows: \(damages.count) stores, TAMBOUR_SEED=\(seed)")
        for damage in damages {
            // After a crash, the last line shows which damage caused it.
            if environment["TAMBOUR_TRACE"] != nil { print(damage) }
            try look(at: world, damage)
        }
    }

    /// Damage that prevents the server's start, with the expected error.
    private static let refused: [(sql: String, says: String)] = [
        ("UPDATE meta SET v = 9223372036854775807 WHERE k = 'ct_lease'", "meta ct_lease is"),
        ("UPDATE meta SET v = -9223372036854775808 WHERE k = 'ct_lease'", "meta ct_lease is"),
        ("UPDATE meta SET v = 9223372036854775807 WHERE k = 'ct'", "meta ct is"),
        ("UPDATE meta SET v = 9223372036854775807 WHERE k = 'last_session'", "meta last_session"),
        ("UPDATE device SET id = 9223372036854775807 WHERE id = 2", "device: id is"),
        ("UPDATE session SET id = 9223372036854775807 WHERE id = 2", "session: id is"),
        (
            "UPDATE chat SET id = 9223372036854775807 WHERE id = (SELECT max(id) FROM chat)",
            "chat: id is"
        ),
    ]

    @Test("a start says what it cannot go on with, and the check lists it")
    func starts() throws {
        let world = try StoredWorld()
        defer { world.remove() }
        for (sql, says) in Self.refused {
            let (directory, _) = try world.copy(changedBy: sql)
            defer { TestServer.removeDirectory(directory) }
            let refusal = try #require(throws: ImpossibleRow.self, "\(sql)") {
                _ = try TestServer(dataDirectory: directory)
            }
            #expect(refusal.description.hasPrefix(says), "\(refusal)")
            #expect(try !problems(in: directory).isEmpty, "\(sql)")
        }
    }

    /// Starts a server, sends it ordinary requests, and runs its background work.
    private func look(at world: StoredWorld, _ damage: Damage) throws {
        let (directory, hasChanged) = try world.copy(changedBy: damage.sql)
        defer { TestServer.removeDirectory(directory) }
        let found = try problems(in: directory)
        if hasChanged, let range = damage.column.range, !range.contains(damage.value) {
            let says = "\(damage.column.name) is \(damage.value)"
            let isNamed = found.contains {
                $0.hasPrefix(damage.column.table) && $0.hasSuffix(says)
            }
            #expect(isNamed, "\(damage): \(found)")
        }
        let server: TestServer
        do {
            server = try TestServer(dataDirectory: directory, logs: false)
        } catch is ImpossibleRow {
            return
        }
        defer { server.stop() }
        world.visit(server)
        try world.waitForOwnWork(of: server)
        try world.administer(server)
        let stranger = try server.connect()
        try stranger.call(PingRequest())
    }

    /// Returns the output of `admin check` for a store without a server.
    private func problems(in directory: String) throws -> [String] {
        var lines: [String] = []
        do {
            try AdminService(OfflineAdminBackend(dataDirectory: directory)).run(.check) {
                lines.append($0)
            }
        } catch is AdminService.Failure {
            return lines
        }
        return []
    }
}
