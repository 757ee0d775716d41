import Foundation
import TambourProtocol
import TambourTesting
import Testing

/// `tambourd` as an operator uses it.
@Suite("The command line")
struct CommandLineTests {
    /// A temporary directory of the test, removed at the end.
    private final class Place {
        let url: URL
        var data: String { url.appendingPathComponent("data").path }

        init() throws {
            url = FileManager.default.temporaryDirectory
                .appendingPathComponent("tambour-cli-\(UUID().uuidString)")
            try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
        }

        deinit { try? FileManager.default.removeItem(at: url) }

        func file(_ name: String, _ text: String) throws -> String {
            let path = url.appendingPathComponent(name).path
            try Data(text.utf8).write(to: URL(fileURLWithPath: path))
            try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
            return path
        }

        func program(_ name: String, _ text: String) throws -> String {
            let path = url.appendingPathComponent(name).path
            try ChildProcess.makeProgram(at: path, text)
            return path
        }
    }

    /// Runs a command until it ends.
    private func run(
        _ arguments: [String],
        environment: [String: String] = [:]
    ) async throws -> (status: Int32, lines: [String], errors: String) {
        let child = try ChildProcess(
            TambourdProcess.program(),
            arguments,
            environment: environment
        )
        var lines: [String] = []
        for await line in child.lines { lines.append(line) }
        return (await child.exitStatus(), lines, child.errors)
    }

    /// Starts a server and reads its first `listening` lines.
    private func serve(
        _ arguments: [String],
        listeners: Int = 1,
        environment: [String: String] = [:]
    ) async throws -> (child: ChildProcess, addresses: [String]) {
        let child = try ChildProcess(
            TambourdProcess.program(),
            ["serve"] + arguments,
            environment: environment
        )
        var addresses: [String] = []
        for await line in child.lines where line.hasPrefix("listening tcp ") {
            addresses.append(String(line.dropFirst("listening tcp ".count)))
            if addresses.count == listeners { break }
        }
        try #require(addresses.count == listeners, "\(child.errors)")
        return (child, addresses)
    }

    private func stop(_ child: ChildProcess) async throws {
        child.signal(SIGTERM)
        #expect(try await child.exitStatus(within: .seconds(120)) == 0)
    }

    @Test("a flag wins over the environment, the environment over the file")
    func precedence() async throws {
        let place = try Place()
        let config = try place.file(
            "config.yaml",
            "listen: [\"127.0.0.1:0\", \"127.0.0.1:0\"]\ndata: \(place.data)\nlanes: 1\n"
                + "loginCodes: \"fixed:1234\"\n"
        )
        let fromFile = try await serve(["--config", config], listeners: 2)
        try await stop(fromFile.child)

        let other = place.url.appendingPathComponent("other").path
        let environment = ["TAMBOUR_LISTEN": "127.0.0.1:0", "TAMBOUR_DATA": other]
        let fromEnvironment = try await serve(["--config", config], environment: environment)
        #expect(FileManager.default.fileExists(atPath: "\(other)/tambour.db"))
        try await stop(fromEnvironment.child)

        let flagged = place.url.appendingPathComponent("flagged").path
        let fromFlag = try await serve(
            ["--config", config, "--data", flagged],
            environment: environment
        )
        #expect(FileManager.default.fileExists(atPath: "\(flagged)/tambour.db"))
        try await stop(fromFlag.child)
    }

    @Test(
        "what cannot be is refused in one line",
        arguments: [
            (["--listen", "0.0.0.0:0", "--login-codes", "fixed:1234"], "not a loopback address"),
            (["--listen", "127.0.0.1"], "127.0.0.1"),
            (["--login-codes", "pigeon"], "pigeon"),
            (["--login-codes", "exec:/nowhere/at/all"], "is not a program"),
            (["--login-codes", "file:/nowhere/at/all"], "/nowhere/at/all cannot be written"),
            (["--login-codes", "fixed:12a4"], "fixed:DIGITS"),
            (["--link-previews", "/bin/true"], "is not exec:PROGRAM"),
            (["--link-previews", "exec:"], "is not exec:PROGRAM"),
            (["--link-previews", "exec:/nowhere/at/all"], "is not a program"),
            (["--registration", "maybe"], "is none of open, invite, closed"),
            (["--user-invitations", "1001"], "1001 is not 0 to 1000"),
            (["--lanes", "0"], "lanes"),
            (["--audit-days", "0"], "auditDays: 0 is not a number from 1 to 3650"),
            (["--limits", "/nowhere/at/all"], "cannot read"),
            (["--log-level", "loud"], "loud"),
        ]
    )
    func refusals(arguments: [String], says: String) async throws {
        let place = try Place()
        let result = try await run(
            ["serve", "--data", place.data] + arguments
                + (arguments.contains("--listen") ? [] : ["--listen", "127.0.0.1:0"])
        )
        #expect(result.status != 0)
        #expect(result.errors.contains(says), "\(result.errors)")
    }

    @Test(
        "no number ends a command by a signal",
        arguments: [
            ["admin", "users", "list", "--limit"], ["admin", "users", "list", "--idle-days"],
            ["admin", "chats", "list", "--limit"], ["admin", "chats", "list", "--min-members"],
            ["admin", "sessions", "list", "--idle-days"], ["admin", "stats", "--since-days"],
            ["admin", "invites", "create", "--days"], ["admin", "invites", "create", "--uses"],
            ["admin", "invites", "create", "--count"], ["admin", "invites", "list", "--limit"],
            ["admin", "users", "create", "--first-phone=+79990000009", "--count"],
            ["admin", "audit", "--limit"], ["admin", "audit", "--days"],
            ["serve", "--listen=127.0.0.1:0", "--lanes"],
            ["serve", "--listen=127.0.0.1:0", "--audit-days"],
        ]
    )
    func numbers(command: [String]) async throws {
        let place = try Place()
        let made = try await run([
            "admin", "users", "create", "--count", "2", "--first-phone", "+79990000001",
            "--data", place.data,
        ])
        #expect(made.status == 0, "\(made.errors)")
        for number in [
            "0", "-1", "200000000000000", "9223372036854775807", "-9223372036854775808",
            "9223372036854775808",
        ] {
            let words = Array(command.dropLast()) + ["\(command[command.count - 1])=\(number)"]
            let result = try await run(words + ["--data", place.data])
            // ArgumentParser exits with 64 when it cannot parse the arguments.
            #expect([0, 1, 64].contains(result.status), "\(words): \(result.errors)")
        }
    }

    @Test("an announcement, default chats and the audit log work without a server, too")
    func announcements() async throws {
        let place = try Place()
        func admin(_ words: String...) async throws -> [String] {
            let result = try await run(["admin"] + words + ["--data", place.data])
            try #require(result.status == 0, "\(words): \(result.errors)")
            return result.lines
        }
        _ = try await admin("users", "create", "--count", "2", "--first-phone", "+79990000001")
        let posted = try await admin("announce", "Hello,\n\tall", "--from=+79990000001")
        let words = try #require(posted.last).split(separator: " ").map(String.init)
        try #require(words.count == 8, "\(posted)")
        #expect(words[6...] == ["2", "members"])
        let chat = words[4]
        #expect(
            try await admin("default-chats", "list")
                == ["\(chat) channel 2 announcements \"Announcements\""]
        )
        #expect(try await admin("default-chats", "remove", chat).count == 1)
        #expect(try await admin("default-chats", "add", chat).count == 1)
        let again = try await run(["admin", "announce", "Hello,\n\tall", "--data", place.data])
        #expect(again.errors.contains("--again"))
        let actions = try await admin("audit", "--kind", "admin").map {
            String($0.split(separator: " ")[2])
        }
        #expect(
            actions == ["create-users", "announce", "remove-default-chat", "add-default-chat"]
        )
        let page = try await run(["admin", "audit", "--limit", "1", "--data", place.data])
        #expect(page.lines.count == 1 && page.errors == "more: --after=1\n")
    }

    @Test("limits that do not exist or make no sense are named")
    func limits() async throws {
        let place = try Place()
        for (text, says) in [
            ("maxTextUnit: 5", "maxTextUnit"), ("maxTextUnits: 0", "maxTextUnits"),
            ("maxTextUnits: many", "maxTextUnits"), ("- 1", "not a map"),
        ] {
            let file = try place.file("limits.yaml", text)
            let result = try await run([
                "serve", "--listen", "127.0.0.1:0", "--data", place.data, "--limits", file,
            ])
            #expect(result.status != 0 && result.errors.contains(says), "\(result.errors)")
        }
    }

    @Test(
        "a mistake in the rules of features is named with file, line, feature and rule",
        arguments: [
            ("- apple", ":1: the file: not a map"),
            ("apple: on", ":1: apple: not a map"),
            ("apple: {}", ":1: apple: has neither rules nor \"kill: true\""),
            ("", ": is empty"),
            ("# nothing yet\n", ": is empty"),
            ("a: {kill: true}\na: {kill: true}", ": stands there twice: a"),
            ("Apple:\n  kill: true", ":2: Apple: a name is"),
            ("apple:\n  kil: true", ":2: apple: unknown key \"kil\""),
            ("apple:\n  kill: maybe", ":2: apple: kill: neither true nor false"),
            ("apple:\n  rules: {}", ":2: apple: rules: not a list"),
            (
                "apple:\n  variations: {a: x}\n  kill: true",
                ":2: apple: variations: the weight of a"
            ),
            ("apple:\n  rules:\n    - {}\n    - {ios: yes}", ":4: apple, rule 2: unknown key"),
            (
                "apple:\n  rules:\n    - {percent: 12.345}",
                ":3: apple, rule 1: percent: \"12.345\" is not 0 to 100"
            ),
            ("apple:\n  rules:\n    - {percent: 100.01}", "is not 0 to 100"),
            ("apple:\n  rules:\n    - {percent: -1}", "is not 0 to 100"),
            ("apple:\n  rules:\n    - {os: []}", "apple, rule 1: os: is empty"),
            ("apple:\n  rules:\n    - {locale: \"\"}", "locale: is empty"),
            ("apple:\n  rules:\n    - {userIds: []}", "userIds: is empty"),
            ("apple:\n  rules:\n    - {userIds: [x]}", "userIds: not a user id"),
            ("apple:\n  rules:\n    - {appVersion: {}}", "has neither from nor below"),
            ("apple:\n  rules:\n    - {appVersion: {to: 1}}", "unknown key \"to\""),
            ("apple:\n  rules:\n    - {appVersion: {from: new}}", "\"new\" is no version"),
            (
                "apple:\n  rules:\n    - {percent: 1}\n    - {percent: 2, enabled: false}",
                ":4: apple, rule 2: percent goes with neither"
            ),
            ("apple: {rules: [}", ":1: did not find expected node content"),
            (
                "a: {kill: true} # " + String(repeating: "x", count: 300_000),
                "more than 262144 bytes"
            ),
        ]
    )
    func featureMistakes(text: String, says: String) async throws {
        let place = try Place()
        let file = try place.file("features.yaml", text)
        let result = try await run([
            "serve", "--listen", "127.0.0.1:0", "--data", place.data, "--features", file,
        ])
        #expect(result.status != 0)
        #expect(result.errors.contains(says), "\(result.errors)")
        #expect(result.errors.contains(file), "\(result.errors)")
    }

    @Test("a reload brings other features to those who are there; a bad file leaves them be")
    func reload() async throws {
        let place = try Place()
        let file = try place.file(
            "features.yaml",
            """
            apple:
              variations: {green: 1, red: 1}
              rules:
                - {os: DESKTOP, appVersion: {from: 2.10}, locale: [de], variation: red}
            """
        )
        let tokens = place.url.appendingPathComponent("tokens.txt").path
        let created = try await run([
            "admin", "users", "create", "--data", place.data, "--count", "1", "--first-phone",
            "+79990000001", "--tokens-out", tokens,
        ])
        #expect(created.status == 0, "\(created.errors)")
        let arguments = [
            "--listen", "127.0.0.1:0", "--data", place.data, "--login-codes", "console",
        ]
        let server = try await serve(arguments + ["--features", file])
        let client = try WireClient(address: server.addresses[0])
        let hello = try client.call(
            SessionInitRequest(
                userAgent: UserAgent(deviceType: "DESKTOP", appVersion: "2.10.1", locale: "de-AT"),
                deviceID: "test",
                features: ["apple"]
            )
        )
        let red = SessionFeature(type: "apple", enabled: true, variation: "red")
        #expect(hello.features == [red])
        let line = try String(contentsOfFile: tokens, encoding: .utf8).split(separator: "\n")[0]
        let token = try #require(line.split(separator: " ").last)
        let login = try client.call(LoginRequest(token: String(token)))
        #expect(login.config?.features == [red])

        _ = try place.file("features.yaml", "apple:\n  rules:\n    - {percent: lots}\n")
        let refused = try await run(["admin", "reload", "--data", place.data])
        #expect(refused.status != 0)
        #expect(refused.errors.contains("\(file):3: apple, rule 1: percent"), "\(refused.errors)")
        #expect(try client.takePushes().isEmpty)

        _ = try place.file("features.yaml", "apple: {kill: true}\nphone-lookup: {kill: true}\n")
        let done = try await run(["admin", "reload", "--data", place.data])
        #expect(done.lines == ["apple: killed", "phone-lookup: killed", "sessions told: 1"])
        let push = try client.next(.notifConfig, as: NotifConfig.self)
        #expect(push.config.features == [SessionFeature(type: "apple", enabled: false)])
        let lookup = ContactInfoByPhoneRequest(phone: "+79990000001")
        #expect(try client.refusal(of: lookup) == .protoOpcode)
        try await stop(server.child)

        let nobody = try await run(["admin", "reload", "--data", place.data])
        #expect(nobody.status != 0 && nobody.errors.contains("no server runs"))
        let without = try await serve(arguments)
        let nothing = try await run(["admin", "reload", "--data", place.data])
        #expect(nothing.status != 0 && nothing.errors.contains("--features"))
        try await stop(without.child)
    }

    @Test("rules of features that are no text, or no file, are refused")
    func featuresThatAreNoText() async throws {
        let place = try Place()
        let file = URL(filePath: try place.file("features.yaml", ""))
        try Data("apple: {rules: [{os: ".utf8 + [0xFF, 0xFE] + "}]}".utf8).write(to: file)
        let serve = ["serve", "--listen", "127.0.0.1:0", "--data", place.data, "--features"]
        let bytes = try await run(serve + [file.path])
        #expect(bytes.status != 0 && bytes.errors.contains("\(file.path): not UTF-8"))
        let folder = try await run(serve + [place.url.path])
        #expect(folder.status != 0 && folder.errors.contains("cannot read \(place.url.path)"))
    }

    @Test("more features than the limit are refused")
    func manyFeatures() async throws {
        let place = try Place()
        let lines = (1...65).map { "f\($0): {kill: true}\n" }
        let file = try place.file("features.yaml", lines.joined())
        let result = try await run(
            ["serve", "--listen", "127.0.0.1:0", "--data", place.data],
            environment: ["TAMBOUR_FEATURES": file]
        )
        #expect(result.status != 0 && result.errors.contains("65 features, limit 64"))
    }

    @Test("the example of the documentation is one")
    func exampleFeatures() async throws {
        let place = try Place()
        let example = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent()
            .appendingPathComponent("docs/examples/features.yaml").path
        let config = try place.file(
            "config.yaml",
            "listen: \"127.0.0.1:0\"\ndata: \(place.data)\nfeatures: \(example)\n"
        )
        let server = try await serve(["--config", config])
        let client = try WireClient(address: server.addresses[0])
        let names = ["phone-lookup", "new-composer"]
        let reply = try client.call(SessionInitRequest(features: names))
        // A client without a device id matches no percentage rule.
        #expect(
            reply.features == [
                SessionFeature(type: "new-composer", enabled: false),
                SessionFeature(type: "phone-lookup", enabled: false),
            ]
        )
        let done = try await run(["admin", "reload", "--data", place.data])
        #expect(
            done.lines == [
                "new-composer: 2 rules", "phone-lookup: 3 rules", "sessions told: 0",
            ]
        )
        try await stop(server.child)
    }

    @Test("one process serves a data directory, and others may not read it")
    func lock() async throws {
        let place = try Place()
        let arguments = [
            "--listen", "127.0.0.1:0", "--data", place.data, "--login-codes", "console",
        ]
        let first = try await serve(arguments)
        let second = try await run(["serve"] + arguments)
        #expect(second.status != 0 && second.errors.contains("another process"))
        for name in ["tambour.db", "admin.sock", "lock"] {
            let attributes = try FileManager.default.attributesOfItem(
                atPath: "\(place.data)/\(name)"
            )
            #expect((attributes[.posixPermissions] as? Int) == 0o600, "\(name)")
        }
        try await stop(first.child)
    }

    @Test("admin commands say the same with a server and without")
    func admin() async throws {
        let place = try Place()
        let tokens = place.url.appendingPathComponent("tokens.txt").path
        let created = try await run([
            "admin", "users", "create", "--data", place.data, "--count", "2", "--first-phone",
            "+79990000001", "--tokens-out", tokens,
        ])
        #expect(created.status == 0, "\(created.errors)")
        let lines = try String(contentsOfFile: tokens, encoding: .utf8).split(separator: "\n")
        #expect(lines.count == 2)
        #expect(lines.allSatisfy { $0.wholeMatch(of: /\+7999000000\d \d+ [0-9a-f]{64}/) != nil })
        let offline = try await run(["admin", "users", "list", "--data", place.data])

        let server = try await serve([
            "--listen", "127.0.0.1:0", "--data", place.data, "--login-codes", "console",
        ])
        let online = try await run(["admin", "users", "list", "--data", place.data])
        #expect(online.lines == offline.lines && online.lines.count == 2)
        let taken = try await run([
            "admin", "users", "create", "--data", place.data, "--count", "1", "--first-phone",
            "+79990000002",
        ])
        #expect(taken.status != 0 && taken.errors.contains("is taken"))

        let client = try WireClient(address: server.addresses[0])
        _ = try client.call(SessionInitRequest(deviceID: "test"))
        let token = try #require(lines.first?.split(separator: " ").last)
        _ = try client.call(LoginRequest(token: String(token)))
        let metrics = try await run(["admin", "metrics", "--data", place.data])
        #expect(metrics.lines.contains("tambour_sessions 1"))
        #expect(metrics.lines.contains { $0.hasPrefix("tambour_lane_delay_seconds{lane=\"0\"} ") })
        let blocked = try await run([
            "admin", "users", "block", "+79990000001", "--data", place.data,
        ])
        #expect(blocked.status == 0, "\(blocked.errors)")
        try client.waitForClose()
        let check = try await run(["admin", "check", "--data", place.data])
        #expect(check.lines == ["ok"])
        try await stop(server.child)

        let after = try await run(["admin", "users", "list", "--data", place.data])
        #expect(after.lines.contains { $0.contains("+79990000001") && $0.contains("blocked") })
        let dead = try await run(["admin", "metrics", "--data", place.data])
        #expect(dead.status != 0)
    }

    @Test("what operators ask is answered with a server and without, and in pages")
    func operators() async throws {
        let place = try Place()
        func admin(_ words: String...) async throws -> (
            status: Int32, lines: [String], errors: String
        ) {
            try await run(["admin"] + words + ["--data", place.data])
        }
        let arguments = [
            "--listen", "127.0.0.1:0", "--data", place.data, "--login-codes", "console",
        ]
        var server = try await serve(arguments)
        let created = try await admin(
            "users",
            "create",
            "--count",
            "3",
            "--first-phone",
            "+79990000001"
        )
        let words = try #require(created.lines.first?.split(separator: " "))
        let client = try WireClient(address: server.addresses[0])
        _ = try client.call(SessionInitRequest(deviceID: "test"))
        client.userID = try client.call(LoginRequest(token: String(words[2]))).profile.contact.id
        let group = try client.createGroup("Drummers", with: [], cid: 1)
        client.close()

        let user = "\(words[1])"
        let questions = [
            ["users", "list", "--name", "user"], ["users", "show", user], ["chats", "list"],
            ["chats", "show", "\(group)"], ["sessions", "list", "--user", "+79990000001"],
            ["sessions", "show", "1"], ["export", user], ["check"],
        ]
        func answers() async throws -> [[String]] {
            var answers: [[String]] = []
            for question in questions {
                let answer = try await run(["admin"] + question + ["--data", place.data])
                #expect(answer.status == 0, "\(question): \(answer.errors)")
                answers.append(answer.lines.filter(Self.isNoAudit))
            }
            return answers
        }
        // A running server may still store the time at which the client was last seen, so stop it
        // first.
        try await stop(server.child)
        let offline = try await answers()
        #expect(offline[3].contains("title \"Drummers\""))
        server = try await serve(arguments)
        #expect(try await answers() == offline)
        try await stop(server.child)

        let page = try await admin("users", "list", "--limit", "2")
        let last = page.lines.last?.split(separator: " ").dropFirst().first ?? ""
        #expect(page.lines.count == 2 && page.errors == "more: --after=\(last)\n")
        let rest = try await admin("users", "list", "--limit", "2", "--after=\(last)")
        #expect(rest.lines.count == 1 && rest.errors.isEmpty)
        let file = place.url.appendingPathComponent("theirs.jsonl").path
        #expect(try await admin("export", user, "--out", file).status == 0)
        let written = try String(contentsOfFile: file, encoding: .utf8).split(separator: "\n")
        #expect(written.map(String.init).filter(Self.isNoAudit) == offline[6])
        // The running server logs an export as an action of an administrator.
        #expect(written.contains { !Self.isNoAudit(String($0)) })
        let attributes = try FileManager.default.attributesOfItem(atPath: file)
        #expect((attributes[.posixPermissions] as? Int) == 0o600)
        #expect(try await admin("export", user, "--out", file).errors.contains("cannot create"))
        let nobody = try await admin("export", "77", "--out", file + "2")
        #expect(nobody.status != 0 && !FileManager.default.fileExists(atPath: file + "2"))

        let asked = try await admin("erase", user)
        #expect(asked.status != 0 && asked.lines.count == 1 && asked.errors.contains("--yes"))
        #expect(try await admin("erase", user, "--yes").lines.first == "\(user) erased")
        #expect(try await admin("vacuum").status == 0)
        #expect(try await admin("users", "show", user).lines.contains("state erased"))
        #expect(try await admin("sessions", "end").status != 0)
        #expect(try await admin("sessions", "end", "2").lines == ["2 ended"])
        #expect(try await admin("check").lines == ["ok"])
    }

    private static func isNoAudit(_ line: String) -> Bool {
        !line.hasPrefix(#"{"type":"audit""#)
    }

    @Test("a program that delivers codes gets phone and code, and is tried again when it fails")
    func codeProgram() async throws {
        let place = try Place()
        let path = place.url.appendingPathComponent("pipe").path
        #expect(mkfifo(path, 0o600) == 0)
        // Open the pipe for reading and writing. Then `open` does not wait for a writer, and the
        // pipe stays open when a writer ends.
        let pipe = open(path, O_RDWR | O_CLOEXEC)
        defer { close(pipe) }
        let program = try place.program(
            "deliver",
            """
            #!/bin/sh
            read phone; read code
            if [ ! -e "\(place.url.path)/failed" ]; then
                touch "\(place.url.path)/failed"; exit 1
            fi
            # It leaves the work to a child that outlives it.
            { while kill -0 $$; do sleep 0.01; done; echo "$phone $code" > "\(path)"; } 2> /dev/null &
            """
        )
        let limits = try place.file("limits.yaml", Unhurried.file())
        let server = try await serve([
            "--listen", "127.0.0.1:0", "--data", place.data, "--login-codes", "exec:\(program)",
            "--limits", limits,
        ])
        let client = try WireClient(address: server.addresses[0])
        _ = try client.call(SessionInitRequest(deviceID: "test"))
        let asked = try client.call(AuthRequestRequest(phone: "+7 (999) 000-00-01"))
        let line = try await blocking {
            var waiting = pollfd(fd: pipe, events: Int16(POLLIN), revents: 0)
            // The server abandons a hanging attempt after 20 s and starts the next one.
            try #require(poll(&waiting, 1, 100_000) == 1, "no code: \(server.child.errors)")
            var buffer = [UInt8](repeating: 0, count: 64)
            return String(decoding: buffer[..<read(pipe, &buffer, buffer.count)], as: UTF8.self)
        }
        let told = line.split { $0.isWhitespace }
        try #require(told.count == 2)
        #expect(told[0] == "+79990000001")
        let answer = try client.call(
            AuthCodeRequest(
                token: asked.token,
                verifyCode: String(told[1]),
                authTokenType: "CHECK_CODE"
            )
        )
        #expect(answer.tokenAttrs.register != nil)
        #expect(server.child.errors.contains("status 1"))
        try await stop(server.child)
    }

    @Test("it stops when it is asked to the moment it listens")
    func stopAtOnce() async throws {
        // Start many servers at once: this slows down each start, so that the signal arrives while
        // the server still sets itself up.
        try await withThrowingTaskGroup { group in
            for _ in 0..<24 {
                group.addTask {
                    let place = try Place()
                    let server = try await serve([
                        "--listen", "127.0.0.1:0", "--listen", "127.0.0.1:0",
                        "--data", place.data, "--login-codes", "fixed:1234",
                    ])
                    try await stop(server.child)
                }
            }
            try await group.waitForAll()
        }
    }

    @Test("logs hold no token, code, phone or text, whatever the level")
    func silence() async throws {
        let place = try Place()
        let server = try await serve([
            "--listen", "127.0.0.1:0", "--data", place.data, "--login-codes", "fixed:482915",
            "--log-level", "trace",
        ])
        let client = try WireClient(address: server.addresses[0])
        _ = try client.call(SessionInitRequest(deviceID: "test"))
        let asked = try client.call(AuthRequestRequest(phone: "+79991234567"))
        let answer = try client.call(
            AuthCodeRequest(token: asked.token, verifyCode: "482915", authTokenType: "CHECK_CODE")
        )
        let registration = try #require(answer.tokenAttrs.register?.token)
        let account = try client.call(
            AuthConfirmRequest(firstName: "Alice", token: registration, tokenType: "REGISTER")
        )
        _ = try client.call(LoginRequest(token: account.token))
        _ = try client.send("a secret rhythm", to: ChatID(0), cid: 1)
        // An unreadable payload that contains the secret.
        _ = try client.send(.msgSend, payload: Array("\u{81}a secret rhythm 482915".utf8))
        try client.send(raw: Array("garbage with a secret rhythm".utf8))
        try client.waitForClose()
        try await stop(server.child)
        let secrets = [
            "79991234567", "482915", asked.token, registration, account.token, "rhythm", "Alice",
        ]
        for secret in secrets { #expect(!server.child.errors.contains(secret)) }
        #expect(!server.child.errors.isEmpty)
    }
}
