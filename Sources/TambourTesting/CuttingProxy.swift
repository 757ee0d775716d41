import Foundation
import Synchronization

/// A bad network between clients and one server on this machine: a TCP proxy that cuts each connection after a number of
/// bytes in either direction that a seed decides, in the midst of a packet as a rule. What it has read behind the cut is lost.
///
/// Connections are numbered door by door, in the order in which a door accepts them; the seed, the door and the number decide
/// where one is cut. One thread of its own does everything.
package final class CuttingProxy: Sendable {
    /// A connection that was cut.
    package struct Cut: Sendable {
        /// Which of the addresses it came in by.
        package let door: Int
        /// Counts from 0, the connections of its door.
        package let connection: Int
        /// 64 bits that belong to this connection, to decide by what else shall happen at this moment.
        package let draw: UInt64
    }

    /// Where clients connect: `127.0.0.1:PORT`, one for each door.
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
    ///   - server: `127.0.0.1:PORT`. It may be away; who connects then is closed.
    ///   - typicalBytes: about half of the cuts come before so many bytes.
    ///   - onCut: called on the proxy's thread, behind each cut.
    /// - Throws: `WireClient.Failure` when it cannot listen.
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

    /// How many connections were cut so far.
    package var cuts: Int { state.withLock { $0.cuts } }

    /// How many connections came so far.
    package var connections: Int { state.withLock { $0.connections } }

    /// Whether connections are cut, which they are not at first. What passes meanwhile does not count.
    package var isCutting: Bool {
        get { state.withLock { $0.isCutting } }
        set {
            state.withLock { $0.isCutting = newValue }
            wakeUp.wake()
        }
    }

    /// Closes everything; returns when its thread has ended.
    package func stop() {
        state.withLock { $0.isStopped = true }
        wakeUp.wake()
        hasEnded.wait()
    }
}

/// Where connections are cut.
struct CutPlan {
    let seed: UInt64
    let typicalBytes: Int

    struct Limits {
        /// Bytes that get through to the server.
        var up: Int
        /// Bytes that get through to the client.
        var down: Int
        /// Whether both sides see a reset, rather than an end.
        var isReset: Bool
        var draw: UInt64
    }

    func limits(door: Int, connection: Int) -> Limits {
        var seeds = SeededGenerator(seed: seed)
        var random = SeededGenerator(
            seed: seeds.next() &+ UInt64(door) << 32 &+ UInt64(connection)
        )
        // One of twelve does not get through the login; those are what makes clients wait longer and longer.
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

    /// As a process without memory cuts: the half-life is `typicalBytes`.
    private func exponential(_ random: inout SeededGenerator) -> Int {
        let unit = Double(random.next() >> 11) / Double(1 << 53)
        return Int(-log2(1 - unit) * Double(typicalBytes))
    }
}
