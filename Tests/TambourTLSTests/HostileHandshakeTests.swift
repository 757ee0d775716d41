#if TLS
    import Glibc
    import TambourNet
    import TambourTLS
    import TambourTesting
    import Testing

    @Suite("Handshakes of hostile peers")
    struct HostileHandshakeTests {
        /// A ClientHello that offers TLS up to `version`, with AES-128-GCM and with ECDHE on P-256.
        private static func hello(version: UInt8) -> [UInt8] {
            func counted(_ bytes: [UInt8], _ width: Int = 2) -> [UInt8] {
                (0..<width).reversed().map { UInt8(bytes.count >> (8 * $0) & 0xFF) } + bytes
            }
            let groups: [UInt8] = [0, 10] + counted(counted([0, 23]))
            let signatures: [UInt8] = [0, 13] + counted(counted([4, 3]))
            let ciphers: [UInt8] = [0xC0, 0x2B, 0xC0, 0x09, 0xC0, 0x0A]
            let body =
                [3, version] + [UInt8](repeating: 7, count: 32) + [0] + counted(ciphers)
                + [1, 0] + counted(groups + signatures)
            let message = [1] + counted(body, 3)
            return [22, 3, 1] + counted(message)
        }

        /// Sends bytes to the server. Returns the failure that the server reports, and the bytes
        /// that the server sent.
        private func fails(
            _ bytes: [UInt8],
            in world: World
        ) throws -> (failure: TLSFailure?, answer: [UInt8]) {
            let wire = try world.connect()
            try wire.send(bytes)
            wire.endOutput()
            let answer = try wire.receiveAll()
            return (try world.outcomes.next().failure, answer)
        }

        @Test("TLS 1.1 and older versions are refused", arguments: [0, 1, 2] as [UInt8])
        func oldVersion(version: UInt8) throws {
            try World.with { world in
                let (failure, answer) = try fails(Self.hello(version: version), in: world)
                #expect(failure == .version)
                // The answer is a fatal alert: handshake_failure for SSL 3, and protocol_version
                // for all other versions.
                #expect(answer.suffix(2) == [2, version == 0 ? 40 : 70])
                #expect(answer.first == 21)
            }
        }

        @Test("the same ClientHello with TLS 1.2 gets an answer")
        func newVersion() throws {
            try World.with { world in
                let wire = try world.connect()
                try wire.send(Self.hello(version: 3))
                let answer = try wire.receiveSome()
                // The answer is a handshake record with a ServerHello.
                #expect(answer.first == 22)
                #expect(answer.dropFirst(5).first == 2)
                // The server has chosen ECDHE_ECDSA with AES-128-GCM.
                #expect(answer[44...45] == [0xC0, 0x2B])
            }
        }

        @Test("other protocols are told apart")
        func otherProtocols() throws {
            try World.with { world in
                let client = try world.client()
                let texts = ["GET / HTTP/1.1\r\n\r\n", "CONNECT a:1 HTTP/1.1\r\n\r\n"]
                for text in texts {
                    #expect(try fails(Array(text.utf8), in: world).failure == .notTLS)
                }
                // This is a packet of Tambour's own protocol without TLS.
                let packet: [UInt8] = [10, 0, 0, 0, 0, 6, 0, 0, 0, 1, 0x80]
                #expect(try fails(packet, in: world).failure == .notTLS)
                #expect(try world.peer(client).handshake().failure == nil)
            }
        }

        @Test("a peer that leaves in its handshake is counted")
        func abandoned() throws {
            try World.with { world in
                let hello = Self.hello(version: 3)
                for count in [1, 5, hello.count / 2, hello.count] {
                    #expect(
                        try fails(Array(hello.prefix(count)), in: world).failure == .abandoned
                    )
                }
                // A peer that sends nothing has not begun a handshake, so the server counts
                // nothing.
                let delegate = Echo()
                let events = delegate.events
                let wire = try world.connect(to: delegate)
                wire.endOutput()
                #expect(try wire.receiveAll().isEmpty)
                while try events.next() != .closed(.peerClosed) {}
                #expect(world.outcomes.waiting.isEmpty)
            }
        }

        @Test("random bytes and changed handshakes fail, and the next client is served")
        func garbage() throws {
            try World.with { world in
                var random = SeededGenerator(seed: 29)
                let client = try world.client()
                for round in 0..<300 {
                    var bytes = Self.hello(version: 3)
                    if round % 3 == 0 {
                        bytes = (0..<200).map { _ in UInt8.random(in: 0...255, using: &random) }
                        if round % 2 == 0 { bytes.replaceSubrange(0..<3, with: [22, 3, 1]) }
                    } else {
                        for _ in 0..<(1 + round % 5) {
                            let index = Int.random(in: 0..<bytes.count, using: &random)
                            bytes[index] = UInt8.random(in: 0...255, using: &random)
                        }
                    }
                    #expect(try fails(bytes, in: world).failure != nil)
                }
                #expect(try world.peer(client).handshake().failure == nil)
            }
        }

        @Test("a delegate that refuses a handshake spends no time on it")
        func refused() throws {
            try World.with { world in
                let delegate = Echo()
                delegate.refusesHandshakes = true
                let events = delegate.events
                let wire = try world.connect(to: delegate)
                try wire.send(Self.hello(version: 3))
                #expect(try wire.receiveAll().isEmpty)
                #expect(try events.next() == .closed(.local("refused")))
                #expect(world.outcomes.waiting.isEmpty)
            }
        }
    }
#endif
