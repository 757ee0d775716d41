#if TLS
    import Foundation
    import TambourNet
    import TambourTLS
    import TambourTesting
    import Testing

    /// `tambourd` with certificates, as an operator uses it.
    @Suite("tambourd with TLS")
    struct TLSProgramTests {
        /// Starts a server with a TLS listener, and stops it at the end.
        private func serving(
            _ authority: TestAuthority,
            _ arguments: [String],
            _ body: (ChildProcess, String) async throws -> Void
        ) async throws {
            let data = try TestServer.temporaryDirectory()
            defer { TestServer.removeDirectory(data) }
            let child = try ChildProcess(
                TambourdProcess.program(),
                ["serve", "--data", data, "--listen", "tls://127.0.0.1:0"] + arguments
            )
            let address = try #require(
                await child.line(after: "listening tls "),
                "\(child.errors)"
            )
            try await body(child, address)
            child.signal(SIGTERM)
            #expect(try await child.exitStatus(within: .seconds(120)) == 0)
        }

        private func pair(_ pair: TLSPair) -> [String] {
            ["--tls-certificate", pair.certificate, "--tls-key", pair.key]
        }

        private func connect(_ address: String, _ host: String, _ client: TLSClient) throws {
            let layer = try client.makeLayer(host: host) { _ in }
            let wire = try WireClient(address: address, layer: layer)
            while layer.isOpening { try wire.waitForLayer() }
        }

        @Test("chooses by name among pairs, and loads them again on SIGHUP")
        func reload() async throws {
            let authority = try TestAuthority()
            let first = try authority.issue("first", ["DNS:first.example.org"])
            let second = try authority.issue("second", ["DNS:*.example.net"])
            try await serving(authority, pair(first) + pair(second)) { child, address in
                let client = try TLSClient(.authorities(pem: authority.pem()))
                try connect(address, "first.example.org", client)
                try connect(address, "second.example.net", client)
                try authority.issue("second", ["DNS:third.example.org"])
                child.signal(SIGHUP)
                let loaded = "certificate \(second.certificate) expires"
                try #require(await child.errors(contain: loaded), "\(child.errors)")
                try connect(address, "third.example.org", client)
                try connect(address, "first.example.org", client)
                try authority.run("echo > first.key")
                child.signal(SIGHUP)
                let refused = "a file is not reloaded"
                try #require(await child.errors(contain: refused), "\(child.errors)")
                #expect(child.errors.contains("\(first.key) is no private key in PEM"))
                try connect(address, "first.example.org", client)
            }
        }

        @Test("says what is wrong with the options")
        func mistakes() async throws {
            let authority = try TestAuthority()
            let good = try authority.issue("good", ["DNS:a"])
            let other = try authority.issue("other", ["DNS:a"])
            let tls = ["--listen", "tls://127.0.0.1:0"]
            let cases: [([String], String)] = [
                (
                    tls,
                    "tls://127.0.0.1:0 needs a certificate: --tls-certificate FILE --tls-key FILE"
                ),
                (
                    tls + ["--tls-certificate", good.certificate],
                    "1 certificates and 0 keys; each certificate needs its key"
                ),
                (
                    tls + pair(TLSPair(certificate: good.certificate, key: other.key)),
                    "the key \(other.key) does not fit \(good.certificate)"
                ),
                (
                    tls + pair(TLSPair(certificate: "/none.pem", key: other.key)),
                    "cannot read /none.pem: No such file or directory"
                ),
                (
                    tls + pair(good) + ["--tls-client-ca", good.key],
                    "\(good.key) has no certificates in PEM"
                ),
                (["--tls-client-ca", good.certificate], "a client CA needs a certificate"),
            ]
            for (arguments, reason) in cases {
                let data = try TestServer.temporaryDirectory()
                defer { TestServer.removeDirectory(data) }
                let child = try ChildProcess(
                    TambourdProcess.program(),
                    ["serve", "--data", data] + arguments
                )
                #expect(await child.exitStatus() != 0)
                #expect(child.errors.contains(reason), "\(child.errors)")
            }
        }
    }
#endif
