#if TLS
    import Glibc
    import TambourMessenger
    import TambourNet
    import TambourProtocol
    import TambourTLS
    import TambourTesting
    import Testing

    @testable import TambourServer

    @Suite("Clients over TLS")
    struct TLSGatewayTests {
        /// A server with a TCP and a TLS listener, and clients that trust it.
        private struct World {
            let server: TestServer
            let authority: TestAuthority
            let client: TLSClient

            static func with(
                overrides: [String: Int] = [:],
                lanes: Int? = nil,
                _ body: (World) throws -> Void
            ) throws {
                let authority = try TestAuthority()
                let pair = try authority.issue("server", ["IP:127.0.0.1"])
                let server = try TestServer(
                    overrides: overrides,
                    lanes: lanes,
                    listen: ["127.0.0.1:0", "tls://127.0.0.1:0"],
                    tls: TLSFiles(pairs: [pair]),
                    logs: false
                )
                defer { server.remove() }
                let client = try TLSClient(.authorities(pem: authority.pem()))
                try body(World(server: server, authority: authority, client: client))
            }

            func connect() throws -> WireClient {
                let layer = try client.makeLayer(host: "127.0.0.1") { _ in }
                return try server.connect(layer: layer, listener: 1)
            }

            /// Logs an account in on a TLS connection.
            func reconnect(_ other: WireClient) throws -> WireClient {
                let client = try connect()
                client.token = other.token
                _ = try server.login(client)
                return client
            }

            /// Connects to the TLS listener without TLS.
            func connectPlain() throws -> WireClient {
                try WireClient(address: server.addresses[1])
            }

            func metrics() throws -> [Substring] {
                var lines: [Substring] = []
                let admin = AdminClient(dataDirectory: server.dataDirectory)
                _ = try admin.run(.metrics) { lines.append($0[...]) }
                return lines
            }
        }

        @Test("chat with clients over TCP")
        func chat() throws {
            try World.with { world in
                let ann = try world.server.signUp("Ann")
                let bob = try world.reconnect(world.server.signUp("Bob"))
                try ann.send("hello", to: ann.dialog(with: bob), cid: 1)
                let push = try bob.next(.notifMessage, as: NotifMessage.self)
                #expect(push.message.text == "hello")
                try bob.send("hello yourself", to: ann.dialog(with: bob), cid: 2)
                #expect(
                    try ann.next(.notifMessage, as: NotifMessage.self).message.text
                        == "hello yourself"
                )
                // Several texts of 8,000 bytes each.
                let long = String(repeating: "ä", count: 4000)
                for cid in Int64(3)..<20 { try bob.send(long, to: ann.dialog(with: bob), cid: cid) }
                let page = try bob.call(
                    ChatHistoryRequest(chatID: ann.dialog(with: bob), from: .max, backward: 50)
                )
                #expect((page.messages ?? []).filter { $0.text == Text(long) }.count > 10)
            }
        }

        @Test("the server ends its stream with close_notify when it stops")
        func stop() throws {
            let held = try {
                var held: WireClient?
                try World.with { world in
                    let client = try world.connect()
                    _ = try client.call(PingRequest())
                    held = client
                }
                return held
            }()
            let client = try #require(held)
            try client.waitForClose()
            #expect(client.hasLayerEnded)
        }

        @Test("a handshake has a deadline")
        func deadline() throws {
            try World.with(overrides: ["handshakeTimeoutMs": 1000]) { world in
                let silent = try world.connectPlain()
                let slow = try world.connectPlain()
                try slow.send(raw: [22, 3, 1, 1])
                try silent.waitForClose()
                try slow.waitForClose()
                #expect(
                    try world.metrics().contains(
                        "tambour_tls_handshakes_failed_total{reason=\"abandoned\"} 1"
                    )
                )
            }
        }

        @Test("an address pays for its handshakes")
        func rate() throws {
            try World.with(overrides: ["handshakeBurst": 2, "handshakesPerMinute": 1]) { world in
                for _ in 0..<2 { _ = try world.connect().call(PingRequest()) }
                #expect(throws: WireClient.Failure.self) { try world.connect() }
                #expect(world.server.server.metrics.failedHandshakeCounts == ["rate": 1])
                // Other addresses and listeners without TLS are not affected.
                let layer = try world.client.makeLayer(host: "127.0.0.1") { _ in }
                _ = try world.server.connect(source: "127.0.0.2", layer: layer, listener: 1)
                _ = try world.server.connect()
            }
        }

        @Test("metrics count handshakes by their end, and name the certificate's end")
        func metrics() throws {
            try World.with { world in
                for _ in 0..<3 { _ = try world.connect().call(PingRequest()) }
                let http = try world.connectPlain()
                try http.send(raw: Array("GET / HTTP/1.1\r\n\r\n".utf8))
                try http.waitForClose()
                let lines = try world.metrics()
                #expect(lines.contains("tambour_tls_handshakes_total{kind=\"full\"} 1"))
                #expect(lines.contains("tambour_tls_handshakes_total{kind=\"resumed\"} 2"))
                #expect(
                    lines.contains("tambour_tls_handshakes_failed_total{reason=\"notTLS\"} 1")
                )
                let end = try #require(
                    lines.first { $0.hasPrefix("tambour_tls_certificate_expiry_seconds{") }
                )
                let seconds = try #require(Int(end.split(separator: " ")[1]))
                #expect(abs(seconds - time(nil) - 30 * 86_400) < 3600)
            }
        }

        @Test("changed files are loaded once they have settled; broken files never")
        func watched() throws {
            // The interval is long, so the files are checked only when the test calls `check`.
            try World.with(overrides: ["certificateCheckIntervalMs": 3_600_000]) { world in
                let certificates = try #require(world.server.server.certificates)
                let client = try world.connect()
                let before = certificates.summary
                certificates.check()
                try world.authority.issue("server", ["IP:127.0.0.1"], days: 60)
                certificates.check()
                #expect(certificates.summary == before)
                certificates.check()
                let after = certificates.summary
                #expect(after != before)
                try world.authority.run("cp server.pem kept.pem; echo > server.pem")
                certificates.check()
                certificates.check()
                #expect(certificates.summary == after)
                _ = try client.call(PingRequest())
                _ = try world.connect()
                #expect(throws: TLSError.self) { try world.server.server.reload() }
                try world.authority.run("mv kept.pem server.pem")
                #expect(try world.server.server.reload().first == after.first)
            }
        }

        @Test("a TLS listener needs a certificate")
        func withoutCertificate() throws {
            let error = #expect(throws: Server.StartError.self) {
                try TestServer(listen: ["tls://127.0.0.1:0"])
            }
            #expect(error?.description.contains("needs a certificate: --tls-certificate") == true)
        }
    }
#endif
