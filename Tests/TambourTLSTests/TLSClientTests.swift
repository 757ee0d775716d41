#if TLS
    import Glibc
    import TambourNet
    import TambourTLS
    import TambourTesting
    import Testing

    @Suite("A TLS client")
    struct TLSClientTests {
        @Test("accepts an address that the certificate contains")
        func address() throws {
            try World.with { world in
                let outcome = try world.peer(world.client(), host: "127.0.0.1").handshake()
                #expect(outcome.failure == nil)
            }
        }

        @Test("tells apart why it refuses a server")
        func failures() throws {
            try World.with { world in
                let stranger = try TestAuthority()
                let distrusting = try TLSClient(.authorities(pem: stranger.pem()))
                #expect(try world.peer(distrusting).handshake().failure == .untrusted)
                #expect(try world.peer(TLSClient(.system)).handshake().failure == .untrusted)
                let wrongName = try world.peer(world.client(), host: "chat.example.com")
                #expect(try wrongName.handshake().failure == .wrongName)
                let wrongAddress = try world.peer(world.client(), host: "127.0.0.2")
                #expect(try wrongAddress.handshake().failure == .wrongName)
            }
        }

        @Test("accepts no wildcard for a part of a label, and no common name")
        func lookalikes() throws {
            try World.with([["DNS:ch*.example.org", "DNS:Test"]]) { world in
                let peer = try world.peer(world.client(), host: "chat.example.org")
                #expect(try peer.handshake().failure == .wrongName)
            }
        }

        @Test("refuses what is no name", arguments: ["", "chat.example.org\0.example.com"])
        func noName(host: String) throws {
            let client = try TLSClient(.system)
            #expect(throws: TLSError.self) { try client.makeLayer(host: host) { _ in } }
        }

        @Test("knows a server that does not speak TLS")
        func notTLS() throws {
            try World.with { world in
                var ends: [Int32] = [0, 0]
                try #require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0)
                let server = Wire(descriptor: ends[0])
                let peer = try TLSPeer(
                    Wire(descriptor: ends[1]),
                    world.client(),
                    host: "chat.example.org"
                )
                _ = try server.receiveSome()
                try server.send(Array("HTTP/1.1 400 Bad Request\r\n\r\n".utf8))
                #expect(try peer.handshake().failure == .notTLS)
            }
        }

        @Test("trusts a pinned key, whatever the certificate's name and time")
        func pinned() throws {
            try World.with { world in
                let pair = try world.authority.issue("pair0", ["DNS:else"], days: -1)
                try world.tls.reload()
                let pin = try TLSClient.publicKeyDigest(ofFile: pair.certificate)
                let client = try TLSClient(.pinned(pin))
                #expect(try world.peer(client).handshake().failure == nil)
                var other = pin
                other[31] ^= 1
                let refusing = try TLSClient(.pinned(other))
                #expect(try world.peer(refusing).handshake().failure == .untrusted)
            }
        }

        @Test("keeps the session of a host through a close without close_notify")
        func session() throws {
            try World.with { world in
                let client = try world.client()
                for isResumed in [false, true, true] {
                    let peer = try world.peer(client)
                    #expect(try peer.handshake().isResumed == isResumed)
                    try peer.roundTrip([1])
                }
                let other = try world.peer(client, host: "127.0.0.1")
                #expect(try other.handshake().isResumed == false)
            }
        }
    }
#endif
