import Foundation
import Synchronization

/// A TCP proxy that simulates a bad network between clients and one local server. It cuts each
/// connection after a number of bytes in one of the two directions, usually in the middle of a
/// packet. The bytes after the cut are lost.
///
/// A door is an address to which clients connect. The connections of each door are numbered in the
/// order in which the proxy accepts them. The seed, the door and this number determine where a
/// connection is cut. One separate thread does all the work.
package final class CuttingProxy: Sendable {
    /// A connection that was cut.
    package struct Cut: Sendable {
        /// The index, in `addresses`, of the address to which the client connected.
        package let door: Int
        /// The number of the connection at its door, from 0.
        package let connection: Int
        /// 64 random bits of this connection. From these bits, tests choose what else happens at
        /// the cut.
        package let draw: UInt64
    }

    /// The addresses for clients: `127.0.0.1:PORT`, one for each door.
    package let addresses: [String]

    private struct State {
        var isCutting = false
        var isStopped = false
        var cuts = 0
        var connections = 0
    }

    private let state = Mutex(State())
    private let wakeUp: WakeUp
    private let hasEnded = DispatchSemaphore(value: 0)

    /// - Parameters:
    ///   - server: the address of the server, `127.0.0.1:PORT`. If the server does not run, the
    ///     proxy closes new connections.
    ///   - typicalBytes: the median number of bytes before a cut.
    ///   - onCut: called on the proxy's thread after each cut.
    /// - Throws: `WireClient.Failure` when the proxy cannot listen.
    package init(
        to server: String,
        doors: Int,
        seed: UInt64,
        typicalBytes: Int,
        onCut: @escaping @Sendable (Cut) -> Void
    ) throws {
        let loop = try ProxyLoop(
            to: server,
            doors: doors,
            plan: CutPlan(seed: seed, typicalBytes: typicalBytes)
        )
        addresses = loop.addresses
        wakeUp = loop.wakeUp
        Thread.detachNewThread { [self] in
            while let isCutting = state.withLock({ $0.isStopped ? nil : $0.isCutting }) {
                loop.isCutting = isCutting
                let cuts = loop.turn()
                state.withLock {
                    $0.connections = loop.connections
                    $0.cuts += cuts.count
                }
                for cut in cuts { onCut(cut) }
            }
            loop.close()
            hasEnded.signal()
        }
    }

    /// The number of connections cut so far.
    package var cuts: Int { state.withLock { $0.cuts } }

    /// The number of connections accepted so far.
    package var connections: Int { state.withLock { $0.connections } }

    /// Whether the proxy cuts connections; initially false. Bytes that pass while it is false do
    /// not count towards a cut.
    package var isCutting: Bool {
        get { state.withLock { $0.isCutting } }
        set {
            state.withLock { $0.isCutting = newValue }
            wakeUp.wake()
        }
    }

    /// Closes all sockets, and returns after the proxy's thread has ended.
    package func stop() {
        state.withLock { $0.isStopped = true }
        wakeUp.wake()
        hasEnded.wait()
    }
}

/// Determines where connections are cut.
struct CutPlan {
    let seed: UInt64
    let typicalBytes: Int

    struct Limits {
        /// The number of bytes that reach the server before the cut.
        var up: Int
        /// The number of bytes that reach the client before the cut.
        var down: Int
        /// Whether both sides see a reset instead of a normal close.
        var isReset: Bool
        var draw: UInt64
    }

    func limits(door: Int, connection: Int) -> Limits {
        var seeds = SeededGenerator(seed: seed)
        var random = SeededGenerator(
            seed: seeds.next() &+ UInt64(door) << 32 &+ UInt64(connection)
        )
        // One of twelve connections is cut within its first 600 bytes, during login. With more such
        // cuts, the clients would wait longer before each retry.
        let isEarly = random.next() % 12 == 0
        let down = isEarly ? Int(random.next() % 600) : exponential(&random)
        let up = isEarly ? Int(random.next() % 600) : exponential(&random) / 2
        return Limits(
            up: up,
            down: down,
            isReset: random.next() % 2 == 0,
            draw: random.next()
        )
    }

    /// Returns a random number with an exponential distribution whose median is `typicalBytes`.
    private func exponential(_ random: inout SeededGenerator) -> Int {
        let unit = Double(random.next() >> 11) / Double(1 << 53)
        return Int(-log2(1 - unit) * Double(typicalBytes))
    }
}
