import Foundation
import TambourNet

/// A server of the comparison: how to run it, how to speak to it, what to know about it.
protocol Contestant: AnyObject {
    var name: String { get }
    /// Of the program that runs.
    var version: String { get }
    /// What has happened to a message when its receiver gets it.
    var durability: String { get }
    /// To whose advantage the rows are.
    var unfair: [String] { get }

    var isInstalled: Bool { get }

    /// While it runs.
    var process: ServerProcess? { get set }

    /// Makes users, contacts and the long conversation; leaves the server stopped.
    func prepare(_ cast: Cast, in directory: URL) throws
    /// Starts it on what `prepare` made; nothing of earlier rounds is taken away.
    func launch() throws -> ServerProcess

    /// Somebody who writes to the user `to`, or only reads; `Cast.people` says how many there are.
    func person(_ index: Int, writesTo to: Int?, run: String, _ sink: any LoadSink)
        -> LoadClient
    /// One of the group `run`, whose first member writes.
    func member(_ index: Int, of count: Int, run: String, _ sink: any LoadSink) -> LoadClient

    /// Gets ready for W4; each call of the result is one return of the reader; nil is "none".
    func catchUp(_ cast: Cast) throws -> (() throws -> Exchange)?
    /// Gets ready for W5; each call of the result is one page; nil is "none".
    func pages(_ cast: Cast) throws -> (() throws -> Exchange)?

    /// What of `durability` is seen to be so while it runs and after it has worked.
    ///
    /// - Throws: when something is seen to be otherwise.
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

/// One thing done by a client that waits, and what it cost while it was done.
struct Exchange {
    var seconds: Double
    var serverSeconds: Double
    var driverSeconds: Double
    var bytesIn: Int
    var bytesOut: Int

    /// Does `body` and counts on the connection it returns: a new one, or `connection`.
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

/// Who there is on every server, and what they have said: users are numbers.
struct Cast {
    /// 0 and 1, 2 and 3 …; in W2 they are a group.
    static let people = 100
    /// Comes back to its contacts.
    static let reader = 1_000
    static let contacts = 1_001...1_200
    /// What each contact has said before.
    static let earlierMessages = 20
    /// The contacts that write while the reader is away.
    static let writers = [1_001, 1_041, 1_081, 1_121, 1_161]
    /// The two with a long conversation: who reads and who wrote.
    static let historian = (reads: 2_000, wrote: 2_001)
    static let conversation = 100_000
    static let pageSize = 50

    static var users: [Int] { Array(0..<people) + [reader] + contacts + [2_000, 2_001] }

    let corpus: Corpus

    /// Texts `first`, `first + 1` …
    func texts(_ count: Int, from first: Int = 0) -> [Bytes100] {
        (first..<(first + count)).map { corpus.message(UInt32($0)) }
    }
}
