#if TLS
    import Foundation
    import TambourMessenger
    import TambourProtocol
    import TambourServer
    import TambourTLS
    import TambourTesting
    import Testing

    @testable import TambourClient

    /// Clients over real sockets, and servers with TLS.
    @Suite("A client with TLS")
    struct TLSConnectionTests {
        /// An authority, and a server with its certificates.
        final class Place {
            let authority: TestAuthority
            let directory: String
            private(set) var server: TestServer
            private let names: [String]
            private let requiresClients: Bool
            private var clients: [Client] = []

            init(
                _ names: [String] = ["DNS:localhost"],
                requiresClients: Bool = false,
                prepare: (TestAuthority) throws -> Void = { _ in }
            ) throws {
                authority = try TestAuthority()
                directory = try TestServer.temporaryDirectory()
                self.names = names
                self.requiresClients = requiresClients
                try authority.issue("server", names)
                try prepare(authority)
                server = try Self.serve(authority, directory, requiresClients, nil)
            }

            private static func serve(
                _ authority: TestAuthority,
                _ directory: String,
                _ requiresClients: Bool,
                _ port: String?
            ) throws -> TestServer {
                try TestServer(
                    dataDirectory: "\(directory)/server",
                    listen: ["tls://127.0.0.1:\(port ?? "0")", "127.0.0.1:0"],
                    tls: TLSFiles(
                        pairs: [authority.pair("server")],
                        clientAuthorities: requiresClients ? authority.certificate : nil
                    ),
                    logs: false
                )
            }

            var port: String { String(server.addresses[0].split(separator: ":")[1]) }
            var plainPort: String { String(server.addresses[1].split(separator: ":")[1]) }

            func restartServer() throws {
                let port = port
                server.stop()
                server = try Self.serve(authority, directory, requiresClients, port)
            }

            /// Returns the trust in the certificate of the test's authority.
            func trust() throws -> ServerTrust {
                .authorities(pem: try authority.pem())
            }

            func pin() throws -> ServerTrust {
                let file = authority.pair("server").certificate
                return .pinned(ServerKeyDigest(bytes: try TLSClient.publicKeyDigest(ofFile: file)))
            }

            func open(
                _ server: String?,
                trusting trust: ServerTrust?,
                device: String = "device",
                _ change: (inout ClientOptions) -> Void = { _ in }
            ) throws -> Client {
                var options = ClientOptions()
                options.link.backoffBaseMs = 20
                options.link.backoffCapMs = 200
                change(&options)
                let client = try Client(
                    store: "\(directory)/\(device).db",
                    server: server,
                    trust: trust,
                    options: options
                )
                clients.append(client)
                return client
            }

            /// Returns the number of handshakes of a kind that the server has completed.
            func handshakes(_ kind: String) throws -> Int {
                try Self.handshakes(kind, server.dataDirectory)
            }

            static func handshakes(_ kind: String, _ dataDirectory: String) throws -> Int {
                var lines: [String] = []
                let admin = AdminClient(dataDirectory: dataDirectory)
                _ = try admin.run(.metrics) { lines.append($0) }
                let start = "tambour_tls_handshakes_total{kind=\"\(kind)\"} "
                let line = lines.first { $0.hasPrefix(start) }
                return line.flatMap { Int($0.dropFirst(start.count)) } ?? 0
            }

            func close() async {
                for client in clients { await client.stop() }
                server.stop()
                try? FileManager.default.removeItem(atPath: directory)
            }
        }

        private func with(_ place: Place, _ body: (Place) async throws -> Void) async throws {
            do {
                try await body(place)
            } catch {
                await place.close()
                throw error
            }
            await place.close()
        }

        /// Returns why a client cannot connect.
        private func failure(_ client: Client) async throws -> ConnectionFailure? {
            client.start()
            let error = await #expect(throws: ClientError.self) {
                _ = try await client.registrationPolicy()
            }
            guard case .unreachable(let server, let failure)? = error else { return nil }
            // Every error text begins with the server and continues after it.
            #expect(failure.description(of: server).hasPrefix("\(server) "))
            await client.stop()
            return failure
        }

        private func failure(
            _ place: Place,
            host: String = "localhost",
            _ trust: ServerTrust?
        ) async throws -> ConnectionFailure? {
            try await failure(place.open("tls://\(host):\(place.port)", trusting: trust))
        }

        @Test("signs in, resumes its session after a cut, and comes back to a restarted server")
        func resumption() async throws {
            try await with(Place()) { place in
                let alice = try place.server.connectPlain("Alice")
                let client = try place.open(
                    "tls://localhost:\(place.port)",
                    trusting: place.trust()
                )
                try await client.signIn(token: alice.token)
                try await client.startAndSync()
                #expect(try place.handshakes("full") == 1)
                for cut in 1...2 {
                    try await client.cut()
                    try await client.until("online") { $0.state == .online }
                    #expect(try place.handshakes("resumed") == cut)
                }
                #expect(try place.handshakes("full") == 1)
                try place.restartServer()
                let data = place.server.dataDirectory
                try await client.until("online again, with a new session") { client in
                    // The restarted server has new ticket keys, so it cannot resume the old
                    // session.
                    let full = try Place.handshakes("full", data)
                    return client.state == .online && full == 1
                }
                #expect(try place.handshakes("resumed") == 0)
            }
        }

        @Test("remembers whom it trusts, and keeps it at the same address")
        func remembered() async throws {
            try await with(Place(["DNS:elsewhere.example.org"])) { place in
                let address = "tls://localhost:\(place.port)"
                for (server, trust) in [(address, try place.pin()), (nil, nil), (address, nil)] {
                    let client = try place.open(server, trusting: trust)
                    client.start()
                    _ = try await client.registrationPolicy()
                    #expect(try client.trust() == place.pin())
                    await client.stop()
                }
            }
        }

        @Test("trusts a server's own certificate that is not a root")
        func partialChain() async throws {
            try await with(Place()) { place in
                let file = place.authority.pair("server").certificate
                let pem = try String(contentsOfFile: file, encoding: .utf8)
                let address = "tls://localhost:\(place.port)"
                let client = try place.open(address, trusting: .authorities(pem: pem))
                client.start()
                _ = try await client.registrationPolicy()
            }
        }

        @Test("says that a server is not trusted, and shows its key")
        func untrusted() async throws {
            try await with(Place()) { place in
                guard case .untrusted(_, let key)? = try await failure(place, nil) else {
                    Issue.record("another failure")
                    return
                }
                #expect(try .pinned(key) == place.pin())
                let stranger = try TestAuthority()
                let other = try String(contentsOfFile: stranger.certificate, encoding: .utf8)
                let second = try await failure(place, .authorities(pem: other))
                guard case .untrusted? = second else {
                    Issue.record("\(String(describing: second))")
                    return
                }
            }
        }

        @Test("says that a server has another name, and which it has")
        func wrongName() async throws {
            let names = (1...9).map { "DNS:n\($0).example.org" }
            try await with(Place(names)) { place in
                let told = try await failure(place, try place.trust())
                let few = (1...4).map { "n\($0).example.org" }
                #expect(told == .wrongName(names: few))
                let address = try await failure(place, host: "127.0.0.1", try place.trust())
                #expect(address == .wrongName(names: few))
            }
        }

        @Test("says that a certificate has expired, or is not valid yet")
        func times() async throws {
            let expired = try Place { try $0.issue("server", ["DNS:localhost"], days: -1) }
            try await with(expired) { place in
                guard case .expired(let end)? = try await failure(place, place.trust()) else {
                    Issue.record("another failure")
                    return
                }
                #expect(end < Int64(Date().timeIntervalSince1970))
            }
            let future = try Place { try $0.issueForLater("server", "DNS:localhost") }
            try await with(future) { place in
                let told = try await failure(place, place.trust())
                // 1 January 2090.
                #expect(told == .notYetValid(until: 3_786_912_000))
                #expect(told?.description(of: "tls://x:1").contains("2090-01-01") == true)
            }
        }

        @Test("says that a server has another key than the pinned one, and shows it")
        func wrongKey() async throws {
            try await with(Place()) { place in
                let other = ServerKeyDigest(bytes: [UInt8](repeating: 1, count: 32))
                guard case .wrongKey(let key)? = try await failure(place, .pinned(other)) else {
                    Issue.record("another failure")
                    return
                }
                #expect(try .pinned(key) == place.pin())
            }
        }

        @Test("says that a server requires a certificate of the client")
        func certificateRequired() async throws {
            try await with(Place(requiresClients: true)) { place in
                let told = try await failure(place, place.trust())
                #expect(told == .certificateRequired)
            }
        }

        @Test(
            "tells apart what is no server with TLS",
            arguments: [
                (.answers(Array("HTTP/1.1 400 Bad Request\r\n\r\n".utf8)), .notTLS),
                (.answers(Array("SSH-2.0-OpenSSH_9.2p1\r\n".utf8)), .notTLS),
                (.closes, .closedDuringHandshake), (.stalls, .handshakeTimedOut),
                // Alerts: protocol_version, handshake_failure, unrecognized_name, internal_error.
                (.answers([21, 3, 1, 0, 2, 2, 70]), .nothingShared(reason: "")),
                (.answers([21, 3, 3, 0, 2, 2, 40]), .nothingShared(reason: "")),
                (.answers([21, 3, 3, 0, 2, 2, 112]), .wrongName(names: [])),
                (.answers([21, 3, 3, 0, 2, 2, 80]), .handshakeFailed(reason: "")),
            ] as [(RawListener.Manner, ConnectionFailure)]
        )
        func strangers(manner: RawListener.Manner, expected: ConnectionFailure) async throws {
            let directory = try TestServer.temporaryDirectory()
            defer { try? FileManager.default.removeItem(atPath: directory) }
            let listener = try RawListener(manner)
            defer { listener.stop() }
            var options = ClientOptions()
            options.link.handshakeTimeoutMs = 100
            options.link.backoffBaseMs = 20
            let client = try Client(
                store: "\(directory)/device.db",
                server: "tls://localhost:\(listener.port)",
                options: options
            )
            let told = try await failure(client)
            switch (told, expected) {
            case (.nothingShared?, .nothingShared), (.handshakeFailed?, .handshakeFailed): break
            default: #expect(told == expected)
            }
        }

        @Test("never falls back: a listener without TLS sees only handshakes, and waits between")
        func noFallback() async throws {
            let directory = try TestServer.temporaryDirectory()
            defer { try? FileManager.default.removeItem(atPath: directory) }
            let listener = try RawListener(.closes)
            defer { listener.stop() }
            var options = ClientOptions()
            options.link.backoffBaseMs = 20
            options.link.backoffCapMs = 40
            let client = try Client(
                store: "\(directory)/device.db",
                server: "tls://127.0.0.1:\(listener.port)",
                options: options
            )
            try await client.signIn(token: "a secret")
            client.start()
            for _ in 0..<5 {
                let bytes = try listener.heard.next()
                // A record of a handshake, with a ClientHello.
                #expect(bytes.count > 100 && bytes[0] == 22 && bytes[1] == 3 && bytes[5] == 1)
                #expect(!String(decoding: bytes, as: UTF8.self).contains("a secret"))
            }
            #expect(await client.connectionFailure() == .closedDuringHandshake)
            guard case .connecting = client.state else {
                Issue.record("\(client.state)")
                return
            }
            await client.stop()
        }

        @Test("and a listener without it do not understand each other, and both say so")
        func crossed() async throws {
            try await with(Place()) { place in
                let plain = try await failure(
                    place.open("tcp://localhost:\(place.port)", trusting: nil)
                )
                #expect(plain == .closed || plain == .otherProtocol)
                let words = plain?.description(of: "tcp://localhost:1") ?? ""
                #expect(words.contains("write tls:// before its name"))
                let secure = try await failure(
                    place.open("tls://localhost:\(place.plainPort)", trusting: place.trust())
                )
                #expect(secure == .closedDuringHandshake || secure == .notTLS)
            }
        }

        @Test("stores nothing of a server or a trust that cannot be used")
        func mistakes() async throws {
            try await with(Place()) { place in
                let pin = try place.pin()
                let address = "tls://localhost:\(place.port)"
                _ = try place.open(address, trusting: pin)
                let cases: [(String?, ServerTrust?)] = [
                    ("http://localhost", nil), ("localhost:0", nil), ("localhost:1", pin),
                    (nil, .authorities(pem: "")), ("tls://else", .authorities(pem: "nothing")),
                    (
                        nil,
                        .authorities(
                            pem: "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
                        )
                    ),
                ]
                for (server, trust) in cases {
                    #expect(throws: ClientError.self) {
                        try place.open(server, trusting: trust)
                    }
                }
                #expect(throws: ClientError.self) {
                    try place.open("http://localhost", trusting: nil, device: "new")
                }
                let made = FileManager.default.fileExists(atPath: "\(place.directory)/new.db")
                #expect(!made)
                let client = try place.open(nil, trusting: nil)
                #expect(try client.server()?.description == address)
                #expect(try client.trust() == pin)
            }
        }
    }

    extension TestServer {
        /// Registers a user over the second listener, which has no TLS.
        fileprivate func connectPlain(_ name: String) throws -> (token: String, phone: Int64) {
            let client = try connect(listener: 1)
            let phone = freshPhone()
            let asked = try client.call(
                AuthRequestRequest(phone: PhoneNumber.format(phone), type: "START_AUTH")
            )
            let code = try receivedCode(of: phone)
            let checked = try client.call(
                AuthCodeRequest(token: asked.token, verifyCode: code, authTokenType: "CHECK_CODE")
            )
            let registration = try #require(checked.tokenAttrs.register?.token)
            let confirmed = try client.call(
                AuthConfirmRequest(
                    firstName: Text(name),
                    token: registration,
                    tokenType: "REGISTER"
                )
            )
            client.close()
            return (confirmed.token, phone)
        }
    }

    extension Client {
        /// Cuts the connection, and reconnects at once.
        fileprivate func cut() async throws {
            try await call { (core: ClientCore) throws(ClientError) -> Void in
                core.host.disconnect()
                core.connectionClosed(.closed)
                core.networkChanged()
            }
        }
    }

    extension TestAuthority {
        /// Makes a certificate and its key. The certificate is valid only from the year 2090 on.
        fileprivate func issueForLater(_ file: String, _ name: String) throws {
            try run(
                """
                printf '[ca]\\ndefault_ca=d\\n[d]\\ndatabase=index\\nserial=serial\\n' > later.cnf
                printf 'new_certs_dir=.\\ndefault_md=sha256\\npolicy=p\\ncopy_extensions=copy\\n' >> later.cnf
                printf '[p]\\ncommonName=supplied\\n' >> later.cnf
                : > index
                echo 01 > serial
                openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout \(file).key \
                    -subj '/CN=\(file)' -addext 'subjectAltName=\(name)' -out later.csr
                openssl ca -batch -config later.cnf -cert ca.pem -keyfile ca.key -in later.csr \
                    -out \(file).pem -notext -startdate 20900101000000Z -enddate 20910101000000Z
                """
            )
        }
    }
#endif
