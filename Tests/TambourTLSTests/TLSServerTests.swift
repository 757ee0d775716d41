#if TLS
    import Glibc
    import TambourNet
    import TambourTLS
    import TambourTesting
    import Testing

    @Suite("A TLS server")
    struct TLSServerTests {
        private static let names = [
            ["DNS:chat.example.org", "DNS:*.example.org"], ["DNS:other.example.net"],
            ["DNS:Special.Example.org"],
        ]

        @Test("prefers the exact name, in any case, to a wildcard")
        func exactName() throws {
            try World.with(Self.names) { world in
                let pair = world.authority.pair("pair2")
                let pin = try TLSClient.publicKeyDigest(ofFile: pair.certificate)
                let client = try TLSClient(.pinned(pin))
                for host in ["special.example.org", "SPECIAL.example.ORG"] {
                    #expect(try world.peer(client, host: host).handshake().failure == nil)
                }
                let other = try world.peer(client, host: "any.example.org").handshake()
                #expect(other.failure == .untrusted)
            }
        }

        @Test(
            "shows the certificate for the name that the client asks for",
            arguments: [
                "chat.example.org", "other.example.net", "OTHER.example.net", "any.example.org",
                "special.example.org",
            ]
        )
        func serverName(host: String) throws {
            try World.with(Self.names) { world in
                let client = try world.client()
                #expect(try world.peer(client, host: host).handshake().failure == nil)
            }
        }

        @Test(
            "shows the first certificate for other names",
            arguments: ["a.b.example.org", "example.org", "unknown.example.com", "127.0.0.1"]
        )
        func otherName(host: String) throws {
            try World.with(Self.names) { world in
                let outcome = try world.peer(world.client(), host: host).handshake()
                #expect(outcome.failure == .wrongName)
            }
        }

        @Test("resumes sessions while their key exists", arguments: [false, true])
        func resumption(isOld: Bool) throws {
            try World.with { world in
                let client = try world.client(isOld: isOld)
                func isResumed() throws -> Bool? {
                    let peer = try world.peer(client)
                    _ = try peer.handshake()
                    // With TLS 1.3, the server sends the ticket only after the handshake.
                    try peer.roundTrip([1])
                    return try world.outcomes.next().isResumed
                }
                #expect(try isResumed() == false)
                #expect(try isResumed() == true)
                // The previous key still decrypts tickets. The client then gets a ticket under the
                // new key.
                world.clock.advance(by: 1500)
                #expect(try isResumed() == true)
                world.clock.advance(by: 900)
                #expect(try isResumed() == true)
                // The current key has not been used for more than two lifetimes.
                world.clock.advance(by: 2100)
                #expect(try isResumed() == false)
                try world.tls.reload()
                #expect(try isResumed() == true)
            }
        }

        @Test("loads new certificates, and open connections stay")
        func reload() throws {
            try World.with { world in
                let client = try world.client()
                let old = try world.peer(client)
                #expect(try old.handshake().failure == nil)
                try old.roundTrip([1])
                try world.authority.issue("pair0", ["DNS:new.example.org"])
                try world.tls.reload()
                #expect(world.tls.certificates.map(\.names) == [["new.example.org"]])
                let new = try world.peer(client, host: "new.example.org")
                #expect(try new.handshake().failure == nil)
                try new.roundTrip([2])
                try old.roundTrip([3])
            }
        }

        @Test("refuses broken files and keeps the old certificates")
        func brokenReload() throws {
            try World.with { world in
                let client = try world.client()
                let authority = world.authority
                let other = try authority.issue("other", ["DNS:other.example.org"])
                try authority.run("cp pair0.key kept.key")
                let pair = authority.pair("pair0")
                let breaks = [
                    (
                        "cp other.key pair0.key",
                        "the key \(pair.key) does not fit \(pair.certificate)"
                    ),
                    ("rm pair0.key", "cannot read \(pair.key): No such file or directory"),
                    ("echo nonsense > pair0.key", "\(pair.key) is no private key in PEM"),
                    (
                        "openssl pkey -in kept.key -aes256 -passout pass:word -out pair0.key",
                        "the key \(pair.key) is encrypted"
                    ),
                ]
                for (script, reason) in breaks {
                    try authority.run(script)
                    let error = #expect(throws: TLSError.self) { try world.tls.reload() }
                    #expect(error?.description.hasPrefix(reason) == true, "\(error as Any)")
                    #expect(try world.peer(client).handshake().failure == nil)
                }
                #expect(throws: TLSError.self) {
                    _ = try TLSServer(
                        TLSFiles(pairs: [TLSPair(certificate: "/none", key: other.key)]),
                        ticketKeyLifetimeMs: 1,
                        nowMs: { 0 },
                        report: { _ in }
                    )
                }
                try authority.run("cp kept.key pair0.key")
                try world.tls.reload()
            }
        }

        @Test("serves an expired certificate, which clients refuse")
        func expired() throws {
            try World.with { world in
                try world.authority.issue("pair0", ["DNS:chat.example.org"], days: -1)
                try world.tls.reload()
                #expect(world.tls.certificates[0].expires < Int64(time(nil)))
                let outcome = try world.peer(world.client()).handshake()
                #expect(outcome.failure == .untrusted)
                guard case .failed(_, let reason) = outcome else { return }
                #expect(reason == "certificate: certificate has expired")
                guard case .failed(.alert, _) = try world.outcomes.next() else {
                    Issue.record("the server does not know of the alert")
                    return
                }
            }
        }

        @Test("requires clients' certificates", arguments: [false, true])
        func clients(isOld: Bool) throws {
            try World.with(requiresClients: true) { world in
                let foreign = try TestAuthority()
                let known = try world.authority.issue("client", ["DNS:client"])
                let unknown = try foreign.issue("client", ["DNS:client"])
                for identity in [known, known] {
                    let peer = try world.peer(world.client(isOld: isOld, identity: identity))
                    #expect(try peer.handshake().failure == nil)
                    #expect(try world.outcomes.next().failure == nil)
                    try peer.roundTrip([1])
                }
                for identity in [nil, unknown] {
                    let peer = try world.peer(world.client(isOld: isOld, identity: identity))
                    let outcome = try peer.handshake()
                    #expect(try world.outcomes.next().failure == .untrusted)
                    if isOld {
                        #expect(outcome.failure == .alert)
                    } else {
                        // With TLS 1.3, the handshake of the client ends before the server refuses
                        // its certificate.
                        #expect(throws: LayerError.self) { while try peer.take() {} }
                    }
                }
            }
        }

        @Test("checks a client's certificate at each connection", arguments: [false, true])
        func clientsAnew(isOld: Bool) throws {
            try World.with(requiresClients: true) { world in
                let known = try world.authority.issue("client", ["DNS:client"])
                let client = try world.client(isOld: isOld, identity: known)
                for _ in 0..<2 {
                    let peer = try world.peer(client)
                    #expect(try peer.handshake().isResumed == false)
                    try peer.roundTrip([1])
                    #expect(try world.outcomes.next().isResumed == false)
                }
                try world.authority.run(
                    """
                    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes \\
                        -keyout new.key -out ca.pem -subj '/CN=Another authority'
                    """
                )
                try world.tls.reload()
                let peer = try world.peer(client)
                _ = try peer.handshake()
                #expect(try world.outcomes.next().failure == .untrusted)
            }
        }

        @Test("has no cipher in common with a client that offers old ones alone")
        func ciphers() throws {
            try World.with { world in
                let peer = try world.peer(
                    world.client(isOld: true, ciphers: "AES128-SHA:AES256-SHA")
                )
                #expect(try peer.handshake().failure == .alert)
                #expect(try world.outcomes.next().failure == .cipher)
            }
        }
    }
#endif
