import Foundation
import TambourNet

/// A server of the comparison: how to run it, its clients, and its properties.
protocol Contestant: AnyObject {
    var name: String { get }
    /// The version of the running program.
    var version: String { get }
    /// How safely the server has stored a message when its receiver gets it.
    var durability: String { get }
    /// The known biases of the comparison, each with `for` or `against` this server.
    var unfair: [String] { get }

    var isInstalled: Bool { get }

    /// The server's process while it runs; otherwise nil.
    var process: ServerProcess? { get set }

    /// Creates users, contacts and the long conversation; leaves the server stopped.
    func prepare(_ cast: Cast, in directory: URL) throws
    /// Starts the server on the data from `prepare`; data of earlier rounds stays.
    func launch() throws -> ServerProcess

    /// Returns a client that writes to the user `to`; if `to` is nil, the client only reads. There
    /// are `Cast.people` such clients.
    func person(_ index: Int, writesTo to: Int?, run: String, _ sink: any LoadSink)
        -> LoadClient
    /// Returns a member of the group `run`; only its first member writes.
    func member(_ index: Int, of count: Int, run: String, _ sink: any LoadSink) -> LoadClient

    /// Prepares W4. Each call of the returned function reconnects the reader and catches up.
    /// Returns nil if the server cannot do this.
    func catchUp(_ cast: Cast) throws -> (() throws -> Exchange)?
    /// Prepares W5. Each call of the returned function reads one page. Returns nil if the server
    /// cannot do this.
    func pages(_ cast: Cast) throws -> (() throws -> Exchange)?

    /// Checks `durability` on the running server after its work, and describes what was verified.
    ///
    /// - Throws: if a part of `durability` is false.
    func verifiedDurability() throws -> String
}

extension Contestant {
    func start() throws { process = try launch() }

    func stop() {
        process?.stop()
        process = nil
    }

    func running() throws -> ServerProcess {
        guard let process else { throw BenchError("\(name) does not run") }
        return process
    }

    var address: ListenAddress {
        get throws { try running().address }
    }

    var meter: ProcessMeter {
        get throws { try running().meter }
    }
}

/// One measured action of a client, and its cost.
struct Exchange {
    var seconds: Double
    var serverSeconds: Double
    var driverSeconds: Double
    var bytesIn: Int
    var bytesOut: Int

    /// Measures `body`. Counts the bytes on the connection that `body` returns. This is
    /// `connection`, or a new connection if `connection` is nil.
    static func measure(
        _ server: ProcessMeter,
        on connection: BlockingConnection? = nil,
        _ body: () throws -> BlockingConnection
    ) rethrows -> Exchange {
        let bytes = (connection?.bytesIn ?? 0, connection?.bytesOut ?? 0)
        let cpu = (server.cpuSeconds, ProcessMeter.own.cpuSeconds)
        let start = monotonicNow()
        let used = try body()
        let end = monotonicNow()
        return Exchange(
            seconds: Double(end - start) / 1e9,
            serverSeconds: server.cpuSeconds - cpu.0,
            driverSeconds: ProcessMeter.own.cpuSeconds - cpu.1,
            bytesIn: used.bytesIn - bytes.0,
            bytesOut: used.bytesOut - bytes.1
        )
    }
}

/// The users and messages that every server gets. Users are identified by number.
struct Cast {
    /// Users who form the pairs 0 and 1, 2 and 3, and so on; in W2 they form a group.
    static let people = 100
    /// The user who reconnects and catches up.
    static let reader = 1_000
    static let contacts = 1_001...1_200
    /// The number of earlier messages from each contact.
    static let earlierMessages = 20
    /// The contacts that write while the reader is offline.
    static let writers = [1_001, 1_041, 1_081, 1_121, 1_161]
    /// The two users of the long conversation: the user who reads it, and the user who wrote it.
    static let historian = (reads: 2_000, wrote: 2_001)
    static let conversation = 100_000
    static let pageSize = 50

    static var users: [Int] { Array(0..<people) + [reader] + contacts + [2_000, 2_001] }

    let corpus: Corpus

    /// Returns `count` texts, starting with number `first`.
    func texts(_ count: Int, from first: Int = 0) -> [Bytes100] {
        (first..<(first + count)).map { corpus.message(UInt32($0)) }
    }
}
