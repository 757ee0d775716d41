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

    /// Makes users, contacts and the long conversation; leaves the server stopped.
    func prepare(_ cast: Cast, in directory: URL) throws
    /// Starts it on what `prepare` made; nothing of earlier rounds is taken away.
    func start() throws
    func stop()
    /// While it runs.
    var address: ListenAddress { get throws }
    var meter: ProcessMeter { get throws }

    /// Somebody who writes to the user `to`, or only reads; `Cast.pairs` says who there is.
    func person(_ index: Int, writesTo to: Int?, run: String, _ sink: any LoadSink)
        -> LoadClient
    /// One of the group `run`, whose first member writes.
    func member(_ index: Int, of count: Int, run: String, _ sink: any LoadSink) -> LoadClient

    /// Gets ready for W4; each call of the result is one return of the reader; nil is "none".
    func catchUp(_ cast: Cast) throws -> (() throws -> Exchange)?
    /// Gets ready for W5; each call of the result is one page; nil is "none".
    func pages(_ cast: Cast) throws -> (() throws -> Exchange)?
}

/// One thing done by a client that waits.
struct Exchange {
    var seconds: Double
    var bytesIn: Int
    var bytesOut: Int

    /// Does `body` and counts on the connection it returns, which may be new.
    static func measure(_ body: () throws -> BlockingConnection) rethrows -> Exchange {
        let start = DispatchTime.now().uptimeNanoseconds
        let connection = try body()
        let end = DispatchTime.now().uptimeNanoseconds
        return Exchange(
            seconds: Double(end - start) / 1e9,
            bytesIn: connection.bytesIn,
            bytesOut: connection.bytesOut
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
