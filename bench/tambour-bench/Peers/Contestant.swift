import Foundation
import TambourNet

/// A server of the comparison: how to run it, how to talk to it, and its properties.
protocol Contestant: AnyObject {
    var name: String { get }
    /// The version of the running program.
    var version: String { get }
    /// What has happened to a message by the time its receiver gets it.
    var durability: String { get }
    /// Which rows of the comparison are unfair, and to whose advantage.
    var unfair: [String] { get }

    var isInstalled: Bool { get }

    /// The process, while it runs.
    var process: ServerProcess? { get set }

    /// Creates users, contacts and the long conversation; leaves the server stopped.
    func prepare(_ cast: Cast, in directory: URL) throws
    /// Starts the server on the data from `prepare`; data of earlier rounds stays.
    func launch() throws -> ServerProcess

    /// Returns a client that writes to the user `to`, or only reads; `Cast.people` is their number.
    func person(_ index: Int, writesTo to: Int?, run: String, _ sink: any LoadSink)
        -> LoadClient
    /// Returns a member of the group `run`, whose first member writes.
    func member(_ index: Int, of count: Int, run: String, _ sink: any LoadSink) -> LoadClient

    /// Prepares W4; each call of the result is one return of the reader. Nil means "none".
    func catchUp(_ cast: Cast) throws -> (() throws -> Exchange)?
    /// Prepares W5; each call of the result reads one page. Nil means "none".
    func pages(_ cast: Cast) throws -> (() throws -> Exchange)?

    /// Returns the parts of `durability` that could be verified on the running server after its
    /// work.
    ///
    /// - Throws: when a part turns out to be false.
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

/// One action of a waiting client, and its costs.
struct Exchange {
    var seconds: Double
    var serverSeconds: Double
    var driverSeconds: Double
    var bytesIn: Int
    var bytesOut: Int

    /// Runs `body` and counts the bytes on the connection it returns: a new one, or `connection`.
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

/// The users of every server, and their messages; users are numbers.
struct Cast {
    /// Pairs 0 and 1, 2 and 3 …; in W2 they form a group.
    static let people = 100
    /// The user who returns to its contacts.
    static let reader = 1_000
    static let contacts = 1_001...1_200
    /// The number of earlier messages from each contact.
    static let earlierMessages = 20
    /// The contacts that write while the reader is away.
    static let writers = [1_001, 1_041, 1_081, 1_121, 1_161]
    /// The two users of the long conversation: the reader and the writer.
    static let historian = (reads: 2_000, wrote: 2_001)
    static let conversation = 100_000
    static let pageSize = 50

    static var users: [Int] { Array(0..<people) + [reader] + contacts + [2_000, 2_001] }

    let corpus: Corpus

    /// Returns `count` texts, from number `first` on.
    func texts(_ count: Int, from first: Int = 0) -> [Bytes100] {
        (first..<(first + count)).map { corpus.message(UInt32($0)) }
    }
}
