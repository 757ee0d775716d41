#if TLS
    import Foundation
    import TambourTLS
    import TambourTesting
    import Testing

    /// `tambour` and `tambourd` with TLS, as people use them.
    @Suite("tambour with TLS")
    struct ClientTLSProgramTests {
        /// A server with TLS, and the token of an account on it.
        private struct Door {
            let authority: TestAuthority
            let port: String
            let token: String
            let directory: URL

            var address: String { "tls://localhost:\(port)" }
        }

        private func serving(_ body: (Door) async throws -> Void) async throws {
            let authority = try TestAuthority()
            let pair = try authority.issue("server", ["DNS:localhost"])
            let directory = URL(filePath: try TestServer.temporaryDirectory())
            defer { try? FileManager.default.removeItem(at: directory) }
            let data = directory.appending(path: "data").path
            let options = ["--tls-certificate", pair.certificate, "--tls-key", pair.key]
            let child = try ChildProcess(
                TambourdProcess.program(),
                ["serve", "--data", data, "--listen", "tls://127.0.0.1:0"] + options
            )
            let address = try #require(
                await child.line(after: "listening tls "),
                "\(child.errors)"
            )
            let users = try ChildProcess.run(
                TambourdProcess.program(),
                ["admin", "users", "create", "--data", data, "--count", "1"]
                    + ["--first-phone", "+79990000001"]
            )
            let words = users.output.split(whereSeparator: \.isWhitespace)
            let door = Door(
                authority: authority,
                port: String(address.split(separator: ":")[1]),
                token: String(try #require(words.last)),
                directory: directory
            )
            try await body(door)
            child.signal(SIGTERM)
            #expect(try await child.exitStatus(within: .seconds(120)) == 0)
        }

        @Test("signs in with an own authority, remembers it, and goes on without the file")
        func ownAuthority() async throws {
            try await serving { door in
                let account = TambourAccount(directory: door.directory, name: "alice")
                let login = ["login", door.address, "--token"]
                let refused = try await account.run(login, saying: "\(door.token)\n")
                #expect(refused.status == 1)
                #expect(refused.errors.contains("\(door.address) is not trusted"))
                #expect(refused.errors.contains("--ca FILE"))
                let file = door.directory.appending(path: "ca.pem").path
                try FileManager.default.copyItem(atPath: door.authority.certificate, toPath: file)
                let entered = try await account.run(
                    login + ["--ca", file],
                    saying: "\(door.token)\n"
                )
                #expect(entered.status == 0, "\(entered.errors)")
                try FileManager.default.removeItem(atPath: file)
                let chats = try await account.run(["chats", "--sync"])
                #expect(chats.status == 0, "\(chats.errors)")
                let server = try await account.run(["server"])
                #expect(server.lines == ["\(door.address)\town authorities"])
                let system = try await account.run(["server", "--ca", "system"])
                #expect(system.lines == ["\(door.address)\tsystem"])
                // A command that waits prints the reason.
                let stuck = try account.start(["chats", "--sync"])
                #expect(await stuck.errors(contain: "is not trusted"), "\(stuck.errors)")
                stuck.signal(SIGKILL)
                _ = try await stuck.exitStatus(within: .seconds(120))
            }
        }

        @Test("pins a key, and changes neither host nor trust by mistake")
        func pin() async throws {
            try await serving { door in
                let account = TambourAccount(directory: door.directory, name: "alice")
                let certificate = door.authority.pair("server").certificate
                // Run the command that docs/terminal.md shows.
                let digest = try ChildProcess.run(
                    URL(filePath: "/bin/sh"),
                    [
                        "-c",
                        "openssl x509 -in \(certificate) -noout -pubkey | openssl pkey -pubin -outform der | openssl dgst -sha256 -r",
                    ]
                )
                let pin = String(digest.output.prefix { $0 != " " })
                let entered = try await account.run(
                    ["login", "tls://127.0.0.1:\(door.port)", "--token", "--pin", pin],
                    saying: "\(door.token)\n"
                )
                #expect(entered.status == 0, "\(entered.errors)")
                let server = try await account.run(["server"])
                #expect(server.lines == ["tls://127.0.0.1:\(door.port)\tsha256:\(pin)"])
                let moved = try await account.run(["server", "tls://elsewhere.example.org"])
                #expect(moved.status == 1)
                #expect(moved.errors.contains("must not get its token"), "\(moved.errors)")
                let wrong = try await account.run(
                    ["server", "--pin", String(repeating: "0", count: 64)]
                )
                #expect(wrong.status == 0, "\(wrong.errors)")
                let stuck = try account.start(["chats", "--sync"])
                #expect(await stuck.errors(contain: "sha256:\(pin)"), "\(stuck.errors)")
                stuck.signal(SIGKILL)
                _ = try await stuck.exitStatus(within: .seconds(120))
            }
        }

        @Test(
            "refuses a mistake in server or trust as wrong usage",
            arguments: [
                (["http://a", "--qr"], "tls://HOST or tcp://HOST:PORT"),
                (["a:70000", "--qr"], "1 to 65535"), (["a", "--qr", "--pin", "00"], "no SHA-256"),
                (
                    ["a", "--qr", "--ca", "b", "--pin", String(repeating: "0", count: 64)],
                    "not both"
                ),
            ]
        )
        func mistakes(words: [String], reason: String) async throws {
            let directory = URL(filePath: try TestServer.temporaryDirectory())
            defer { try? FileManager.default.removeItem(at: directory) }
            let account = TambourAccount(directory: directory, name: "alice")
            let result = try await account.run(["login"] + words)
            #expect(result.status == 64 && result.errors.contains(reason), "\(result.errors)")
            let files = try FileManager.default.contentsOfDirectory(atPath: directory.path)
            #expect(!files.contains("alice.db"))
        }
    }
#endif
