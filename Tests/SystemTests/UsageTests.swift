import Foundation
import Glibc
import TambourTesting
import Testing

/// The messages of `tambour` after mistyped commands and for wrong server addresses.
@Suite("Mistakes on the command line")
struct UsageTests {
    private func withAccount(_ body: (TambourAccount) async throws -> Void) async throws {
        let directory = URL(filePath: try TestServer.temporaryDirectory())
        defer { try? FileManager.default.removeItem(at: directory) }
        try await body(TambourAccount(directory: directory, name: "alice"))
    }

    @Test("both programs have the same version, and the server names its schema")
    func version() async throws {
        let programs = try TambourdProcess.program().deletingLastPathComponent()
        let versions = try ["tambour", "tambourd"].map { name in
            let program = programs.appendingPathComponent(name)
            let outcome = try ChildProcess.run(program, ["--version"])
            #expect(outcome.status == 0, "\(outcome.errors)")
            return outcome.output
        }
        let client = try #require(versions[0].wholeMatch(of: #/([0-9]+\.[0-9]+\.[0-9]+)\n/#))
        let server = try #require(versions[1].wholeMatch(of: #/(.+), store schema [0-9]+\n/#))
        #expect(client.1 == server.1)
    }

    @Test(
        "a command that there is not is named, with those that were perhaps meant",
        arguments: [
            (["frobnicate"], "no command “tambour frobnicate”", []),
            (["histroy", "Bob"], "no command “tambour histroy”", ["history"]),
            (["chat"], "no command “tambour chat”", ["chats"]),
            (["sendd", "Bob"], "no command “tambour sendd”", ["send"]),
            (["entities", "lst"], "no command “tambour entities lst”", ["list"]),
        ] as [([String], String, [String])]
    )
    func unknownCommand(words: [String], complaint: String, meant: [String]) async throws {
        try await withAccount { account in
            let result = try await account.run(words)
            #expect(result.status == 64)
            #expect(result.errors.contains(complaint), "\(result.errors)")
            #expect(result.errors.contains("--help` lists the commands"), "\(result.errors)")
            #expect(result.errors.contains("Did you mean") == !meant.isEmpty)
            for name in meant { #expect(result.errors.contains("“\(name)”"), "\(result.errors)") }
            #expect(!result.errors.contains("tambour open"), "\(result.errors)")
        }
    }

    @Test("a command without an account creates no folder, and says how to sign in")
    func noAccount() async throws {
        let home = try TestServer.temporaryDirectory()
        defer { try? FileManager.default.removeItem(atPath: home) }
        let environment = [
            "HOME": home, "TAMBOUR_HOME": "", "XDG_DATA_HOME": "", "XDG_CONFIG_HOME": "",
        ]
        for words in [["chats"], ["keys"], ["history", "Bob"], ["queue"]] {
            let outcome = try ChildProcess.run(
                TambourAccount.program(),
                words,
                environment: environment
            )
            #expect(outcome.status == (words == ["keys"] ? 0 : 1), "\(words)")
            if words != ["keys"] { #expect(outcome.errors.contains("tambour login SERVER")) }
        }
        #expect(try FileManager.default.contentsOfDirectory(atPath: home).isEmpty)
    }

    @Test(
        "a limit that makes no sense is refused as wrong usage",
        arguments: [
            ["send", "Bob", "x", "--wait=-1"], ["history", "Bob", "--wait=99999999999999999999"],
            ["history", "Bob", "--wait=100000"], ["entities", "list", "--wait=x"],
            ["history", "Bob", "-n", "0"], ["search", "x", "--count=9223372036854775807"],
            ["react", "Bob", "1"], ["react", "Bob", "1", "👍", "--remove"], ["queue", "cancel"],
            ["queue", "retry", "1", "--all"], ["edit", "Bob", "first", "x"], ["delete", "Bob"],
        ]
    )
    func wrongUsage(words: [String]) async throws {
        try await withAccount { account in
            let result = try await account.run(words)
            #expect(result.status == 64, "\(result.errors)")
        }
    }

    @Test("completions are made for three shells", arguments: ["bash", "zsh", "fish"])
    func completions(shell: String) throws {
        for name in ["tambour", "tambourd"] {
            let program = try TambourAccount.program().deletingLastPathComponent()
                .appending(path: name)
            let script = try ChildProcess.run(program, ["--generate-completion-script", shell])
            #expect(script.status == 0, "\(script.errors)")
            #expect(script.output.contains(name))
            guard shell == "bash" else { continue }
            let check = try ChildProcess.run(
                URL(filePath: "/bin/bash"),
                ["-n", "-c", script.output]
            )
            #expect(check.status == 0, "\(check.errors)")
        }
    }

    /// The behavior of a program that is not a Tambour server.
    enum Stranger: CaseIterable {
        /// No program listens at the address.
        case none
        case closesAtOnce
        case saysTLSAlert
        case speaksHTTP
        case speaksSSH
    }

    @Test(
        "why a server cannot be reached is told apart",
        arguments: [
            (.none, "refuses the connection"), (.closesAtOnce, "before it answered"),
            (.saysTLSAlert, "does not speak this protocol"),
            (.speaksHTTP, "does not speak this protocol"),
            (.speaksSSH, "does not speak this protocol"),
        ] as [(Stranger, String)]
    )
    func strangers(stranger: Stranger, words: String) async throws {
        try await withAccount { account in
            let manner: RawListener.Manner =
                switch stranger {
                case .none, .closesAtOnce: .closes
                case .saysTLSAlert: .answers([0x15, 3, 1, 0, 2, 2, 70])
                case .speaksHTTP:
                    .answers(Array("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n".utf8))
                case .speaksSSH: .answers(Array("SSH-2.0-OpenSSH_9.2p1\r\n".utf8))
                }
            let door = try RawListener(manner)
            defer { door.stop() }
            if stranger == .none { door.stop() }
            let login = ["login", door.address, "+79990000001"]
            let result = try await account.run(login)
            #expect(result.status == 1)
            #expect(result.errors.contains("\(door.address) "), "\(result.errors)")
            #expect(result.errors.contains(words), "\(result.errors)")
        }
    }

    @Test("a server that never answers, and a name without an address, are told apart")
    func nobody() async throws {
        try await withAccount { account in
            let name = try await account.run(["login", "nowhere.invalid:7770", "+79990000001"])
            #expect(name.status == 1)
            #expect(name.errors.contains("no address is known for its name"), "\(name.errors)")
            // While the listener's queue is full, the kernel leaves further connections unanswered.
            let door = try RawListener(.ignores, backlog: 0)
            defer { door.stop() }
            let callers = (0..<3).map { _ in door.call() }
            defer { for caller in callers { close(caller) } }
            let result = try await account.run(["login", door.address, "+79990000001"])
            #expect(result.status == 1)
            #expect(result.errors.contains("does not answer"), "\(result.errors)")
        }
    }
}

extension RawListener {
    /// Starts to connect without waiting.
    fileprivate func call() -> Int32 {
        let type = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_NONBLOCK.rawValue)
        let caller = socket(AF_INET, type | Int32(SOCK_CLOEXEC.rawValue), 0)
        var place = Loopback.address(port: port)
        withUnsafePointer(to: &place) { place in
            place.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                _ = connect(caller, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        return caller
    }
}
