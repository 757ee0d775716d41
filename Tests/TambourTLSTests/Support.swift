#if TLS
    import Dispatch
    import Glibc
    import Synchronization
    import TambourNet
    import TambourTLS
    import TambourTesting
    import Testing

    @testable import TambourQueues

    extension SerialQueue {
        /// Waits for all work that was queued earlier, runs `body`, and waits until it ends.
        func sync<Result>(_ body: () throws -> Result) rethrows -> Result {
            try dispatch.sync(execute: body)
        }
    }

    /// A clock that a test sets.
    final class ManualClock: Sendable {
        private let ms = Atomic<Int64>(0)

        var now: Int64 { ms.load(ordering: .relaxed) }

        func advance(by amount: Int64) { ms.add(amount, ordering: .relaxed) }
    }

    /// A delegate that sends back all bytes that it receives.
    final class Echo: ConnectionDelegate {
        /// What the connection reported to the delegate.
        enum Event: Equatable {
            case opened
            case inputEnded
            case drained
            case closed(CloseReason)
        }

        let events = Arrivals<Event>()
        /// Bytes to write when the connection opens, before the handshake.
        var greeting: [UInt8] = []
        /// The number of bytes with which the delegate answers each input. If it is nil, the
        /// delegate sends the input back.
        var answerBytes: Int?
        var refusesHandshakes = false
        /// The number of handshakes that have begun.
        let begun: Begun

        /// A count of handshakes. Several delegates may share it.
        final class Begun: Sendable {
            private let value = Atomic<Int>(0)

            var count: Int { value.load(ordering: .relaxed) }

            func add() { value.add(1, ordering: .relaxed) }
        }

        init(begun: Begun = Begun()) { self.begun = begun }

        func connectionMayOpenLayers(_ connection: Connection) -> Bool {
            begun.add()
            if refusesHandshakes { connection.close(.local("refused")) }
            return !refusesHandshakes
        }

        func connectionOpened(_ connection: Connection) {
            connection.write(greeting)
        }

        func connectionLayersOpened(_ connection: Connection) { events.add(.opened) }

        func connection(_ connection: Connection, received bytes: UnsafeRawBufferPointer) -> Int {
            if let answerBytes {
                connection.write((0..<answerBytes).map { UInt8($0 % 251) })
                connection.closeAfterFlush(.local("answered"), within: .seconds(100))
            } else {
                connection.write(bytes)
            }
            return bytes.count
        }

        func connectionInputEnded(_ connection: Connection) {
            events.add(.inputEnded)
            connection.closeAfterFlush(.peerClosed, within: .seconds(100))
        }

        func connectionDrained(_ connection: Connection) { events.add(.drained) }

        func connectionClosed(_ connection: Connection, reason: CloseReason) {
            events.add(.closed(reason))
        }
    }

    /// A server for a test: one lane, and the certificates that an authority has issued.
    struct World {
        let authority: TestAuthority
        let lane: Lane
        let tls: TLSServer
        let outcomes: Arrivals<TLSOutcome>
        let clock: ManualClock

        /// Runs `body` with a lane, and then stops the lane.
        static func with(
            _ names: [[String]] = [["DNS:chat.example.org", "IP:127.0.0.1"]],
            requiresClients: Bool = false,
            openingsPerRound: Int = 4,
            _ body: (World) throws -> Void
        ) throws {
            let authority = try TestAuthority()
            let pairs = try names.enumerated().map { try authority.issue("pair\($0)", $1) }
            let outcomes = Arrivals<TLSOutcome>()
            let clock = ManualClock()
            let tls = try TLSServer(
                TLSFiles(
                    pairs: pairs,
                    clientAuthorities: requiresClients ? authority.certificate : nil
                ),
                ticketKeyLifetimeMs: 1000,
                nowMs: { clock.now },
                report: { outcomes.add($0) }
            )
            let lane = Lane(
                index: 0,
                label: "test lane",
                timerTick: .milliseconds(1),
                lowPriority: .init(openingsPerRound: openingsPerRound),
                poisonAfterCallback: true
            )
            lane.start()
            let stopped = DispatchSemaphore(value: 0)
            defer {
                lane.stop { stopped.signal() }
                #expect(stopped.wait(timeout: .now() + .seconds(120)) == .success)
            }
            let world = World(
                authority: authority,
                lane: lane,
                tls: tls,
                outcomes: outcomes,
                clock: clock
            )
            try body(world)
        }

        /// Returns a client that trusts the authority.
        func client(
            isOld: Bool = false,
            identity: TLSPair? = nil,
            ciphers: String = TLSContext.ciphers
        ) throws -> TLSClient {
            try TLSClient(
                .authorities(pem: authority.pem()),
                identity: identity,
                isOld: isOld,
                ciphers: ciphers
            )
        }

        /// Connects to the lane without TLS.
        func connect(to delegate: sending Echo = Echo()) throws -> Wire {
            var ends: [Int32] = [0, 0]
            try #require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0)
            lane.adopt(
                fileDescriptor: ends[0],
                peer: "pair",
                layers: [tls.makeLayer()],
                delegate: delegate
            )
            return Wire(descriptor: ends[1])
        }

        /// Connects to the lane and completes the TLS handshake.
        func peer(
            _ client: TLSClient,
            host: String = "chat.example.org",
            to delegate: sending Echo = Echo()
        ) throws -> TLSPeer {
            try TLSPeer(connect(to: delegate), client, host: host)
        }
    }
#endif
