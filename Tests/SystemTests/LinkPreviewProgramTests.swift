import Foundation
import TambourProtocol
import TambourTesting
import Testing

/// Operators' programs that make previews, and their failures.
@Suite("Programs that make previews of links")
struct LinkPreviewProgramTests {
    /// A server with a preview program, and a client that requests previews.
    private final class Scene {
        let directory: URL
        let program: String
        let child: ChildProcess
        let client: WireClient

        /// - Parameter body: The body of a shell script whose standard input is a link.
        init(_ body: String, limits: [String: Int] = [:]) async throws {
            let directory = URL(fileURLWithPath: try TestServer.temporaryDirectory())
            let settings = directory.appendingPathComponent("limits.yaml").path
            try Unhurried.file(limits).write(toFile: settings, atomically: true, encoding: .utf8)
            let program = directory.appendingPathComponent("preview").path
            try ChildProcess.makeProgram(
                at: program,
                "#!/bin/sh\ncd \"\(directory.path)\"\nread link\n\(body)\n"
            )
            let child = try ChildProcess(
                TambourdProcess.program(),
                [
                    "serve", "--listen", "127.0.0.1:0",
                    "--data", directory.appendingPathComponent("data").path,
                    "--login-codes", "fixed:1234", "--link-previews", "exec:\(program)",
                    "--limits", settings,
                ]
            )
            var address: String?
            for await line in child.lines where line.hasPrefix("listening tcp ") {
                address = String(line.dropFirst("listening tcp ".count))
                break
            }
            let client = try WireClient(address: try #require(address, "\(child.errors)"))
            _ = try client.call(SessionInitRequest(deviceID: "test"))
            let asked = try client.call(AuthRequestRequest(phone: "+79990000001"))
            let checked = try client.call(
                AuthCodeRequest(
                    token: asked.token,
                    verifyCode: "1234",
                    authTokenType: "CHECK_CODE"
                )
            )
            let registration = try #require(checked.tokenAttrs.register?.token)
            let made = try client.call(
                AuthConfirmRequest(firstName: "Alice", token: registration, tokenType: "REGISTER")
            )
            _ = try client.call(LoginRequest(token: made.token))
            self.directory = directory
            self.program = program
            self.child = child
            self.client = client
        }

        deinit {
            // The server has already ended, unless the test failed.
            child.signal(SIGKILL)
            try? FileManager.default.removeItem(at: directory)
        }

        func preview(_ path: String = "") throws -> Attach? {
            let text = Text("https://example.org/\(path)")
            return try client.call(MsgSharePreviewRequest(text: text)).attachments.first
        }

        /// Waits for a file that the program writes, and returns its content.
        func read(_ name: String) async throws -> String {
            let path = directory.appendingPathComponent(name).path
            try await wait("\(name) is not written") {
                FileManager.default.contents(atPath: path)?.last == UInt8(ascii: "\n")
            }
            return try String(contentsOfFile: path, encoding: .utf8)
                .trimmingCharacters(in: .whitespacesAndNewlines)
        }

        func wait(_ failure: String, until condition: () -> Bool) async throws {
            let deadline = ContinuousClock.now + .seconds(120)
            while !condition() {
                try #require(ContinuousClock.now < deadline, "\(failure): \(child.errors)")
                // The program is external and reports neither its output nor its end, so the test
                // must poll.
                try await Task.sleep(for: .milliseconds(5))
            }
        }

        /// Waits until the process whose id a file contains has ended.
        func expectGone(_ name: String) async throws {
            let number = try #require(pid_t(try await read(name)))
            try await wait("\(name) lives") { kill(number, 0) != 0 || Self.isZombie(number) }
        }

        /// Returns whether the process has ended and only waits for its parent to collect its
        /// status.
        private static func isZombie(_ number: pid_t) -> Bool {
            let status = FileManager.default.contents(atPath: "/proc/\(number)/stat")
            let text = status.map { String(decoding: $0, as: UTF8.self) } ?? ""
            return text.drop { $0 != ")" }.hasPrefix(") Z")
        }

        func stop() async throws {
            child.signal(SIGTERM)
            let status = try await child.exitStatus(within: .seconds(120))
            #expect(status == 0, "\(child.errors)")
        }
    }

    @Test("a program gets the link alone, never through a shell, and its JSON is the preview")
    func page() async throws {
        let scene = try await Scene(
            """
            printf '%s %s\\n' "$#" "$link" > told
            echo '{"url": "https://example.org/final", "title": "A\\u00e9", "image": "https://example.org/i.png"}'
            """
        )
        let preview = try #require(try scene.preview("$(touch%20x)`touch"))
        #expect(preview.url == "https://example.org/final" && preview.title == "A\u{E9}")
        #expect(preview.image != nil && preview.host == "example.org")
        #expect(try await scene.read("told") == "0 https://example.org/$(touch%20x)")
        #expect(scene.child.errors.contains("example.org") == false)
        try await scene.stop()
    }

    @Test(
        "whatever a program does wrong, the client gets an empty list and the operator a reason",
        arguments: [
            ("exit 1", "status 1"), ("echo '{\"title\": \"A\"}'; exit 3", "status 3"),
            ("kill -9 $$", "signal 9"), ("echo '<html>'", "something else"),
            ("echo '{\"title\": 1}'", "something else"), ("echo '[]'", "something else"),
            ("printf '{\"title\": \"\\377\\376\"}'", "something else"),
            ("while :; do echo aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa; done", "too much"),
            ("head -c 65537 /dev/zero; sleep 1000", "too much"),
            ("sleep 1000", "longer than"), ("exec sleep 1000 >&-", "longer than"),
            ("trap '' TERM HUP INT; while :; do sleep 1000; done", "longer than"),
        ]
    )
    func failures(body: String, reason: String) async throws {
        let scene = try await Scene(
            "echo $$ > number\n\(body)",
            limits: reason == "longer than" ? ["linkPreviewTimeoutMs": 300] : [:]
        )
        #expect(try scene.preview() == nil)
        try await scene.expectGone("number")
        try await scene.wait("no reason") { scene.child.errors.contains(reason) }
        #expect(!scene.child.errors.contains("example.org"))
        try await scene.stop()
    }

    @Test(
        "a program that knows nothing is no failure",
        arguments: ["true", "echo", "echo null", "echo '{}'", "echo '{\"title\": null}'"]
    )
    func nothing(body: String) async throws {
        let scene = try await Scene(body)
        #expect(try scene.preview() == nil)
        #expect(!scene.child.errors.contains("failed"), "\(scene.child.errors)")
        try await scene.stop()
    }

    @Test("what a program has started and left goes with it, and nobody waits for it")
    func child() async throws {
        let scene = try await Scene(
            """
            sleep 1000 & echo $! > child
            echo '{"title": "A"}'
            """
        )
        #expect(try scene.preview()?.title == "A")
        try await scene.expectGone("child")
        try await scene.stop()
    }

    @Test("what a program has started goes when the program takes too long")
    func childOfSlowOne() async throws {
        let scene = try await Scene(
            "echo $$ > number; sleep 1000 & echo $! > child; wait",
            limits: ["linkPreviewTimeoutMs": 1000]
        )
        #expect(try scene.preview() == nil)
        try await scene.expectGone("number")
        try await scene.expectGone("child")
        try await scene.stop()
    }

    @Test("a program that is gone meanwhile is a failure like others")
    func missing() async throws {
        let scene = try await Scene("echo '{\"title\": \"A\"}'")
        try FileManager.default.removeItem(atPath: scene.program)
        #expect(try scene.preview() == nil)
        try await scene.wait("no reason") { scene.child.errors.contains("could not be run") }
        try await scene.stop()
    }

    @Test("a server that stops ends what runs")
    func stop() async throws {
        let scene = try await Scene(
            "echo $$ > number; sleep 1000 & echo $! > child; wait",
            limits: ["linkPreviewTimeoutMs": 3_600_000]
        )
        let text: Text = "https://example.org/"
        let asked = try scene.client.send(MsgSharePreviewRequest(text: text))
        _ = try await scene.read("child")
        try await scene.stop()
        try await scene.expectGone("number")
        try await scene.expectGone("child")
        let reply = try scene.client.reply(to: asked, as: MsgSharePreviewReply.self)
        #expect(reply.attachments.isEmpty)
    }

    @Test("many links at once are looked at a few at a time")
    func many() async throws {
        let scene = try await Scene(
            "echo x >> runs; echo \"{\\\"title\\\": \\\"$link\\\"}\"",
            limits: ["maxLinkPreviewsRunning": 3, "maxLinkPreviewsAsked": 40]
        )
        let asked = try (0..<40).map {
            try scene.client.send(MsgSharePreviewRequest(text: Text("https://example.org/\($0)")))
        }
        for (number, asked) in asked.enumerated() {
            let reply = try scene.client.reply(to: asked, as: MsgSharePreviewReply.self)
            #expect(reply.attachments.map(\.title) == [Text("https://example.org/\(number)")])
        }
        #expect(try await scene.read("runs").count == 40 * 2 - 1)
        try await scene.stop()
    }

    // MARK: - The example

    private static let example = URL(fileURLWithPath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        .appendingPathComponent("docs/examples/preview.py")

    @Test(
        "the example looks at nothing that is not public, and says so quietly",
        arguments: [
            "http://127.0.0.1/", "http://localhost/", "http://169.254.169.254/latest/meta-data",
            "http://10.0.0.1/", "http://192.168.1.1/", "http://0/", "http://2130706433/",
            "http://[::1]/", "http://[::ffff:127.0.0.1]/", "http://[64:ff9b::a00:1]/",
            "http://[64:ff9b:1::1]/", "http://[2002:7f00:1::]/", "http://[fe80::1]/",
            "http://100.64.0.1/", "http://224.0.0.1/", "http://a:b@192.0.2.1/",
            "http://192.0.2.1:22/", "http://",
        ]
    )
    func refused(link: String) throws {
        let input = FileManager.default.temporaryDirectory
            .appendingPathComponent("tambour-link-\(UUID().uuidString)")
        try Data("\(link)\n".utf8).write(to: input)
        defer { try? FileManager.default.removeItem(at: input) }
        let result = try ChildProcess.run(
            Self.example,
            [],
            input: input.path
        )
        #expect(result.status == 0)
        #expect(result.output == "{}\n" && result.errors.isEmpty, "\(result.errors)")
    }

    @Test("the example reads a page, follows redirects, and checks where each leads")
    func example() throws {
        let result = try ChildProcess.run(
            URL(fileURLWithPath: "/usr/bin/env"),
            ["python3", "-c", Self.exampleTest, Self.example.path]
        )
        #expect(result.status == 0, "\(result.errors)")
        #expect(result.output == "ok\n")
    }

    /// Serves pages on a loopback port, and resolves only one host name to it.
    private static let exampleTest = #"""
        import importlib.util, sys, threading
        from http.server import BaseHTTPRequestHandler, HTTPServer

        spec = importlib.util.spec_from_file_location("preview", sys.argv[1])
        preview = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(preview)
        asked = []

        class Pages(BaseHTTPRequestHandler):
            def log_message(self, *_): pass
            def do_GET(self):
                asked.append((self.headers["Host"], self.path))
                places = {"/moved": "/page?a=1", "/inside": "http://127.0.0.1/page", "/round": "/round",
                          "/file": "file:///etc/passwd"}
                if self.path in places:
                    self.send_response(302)
                    self.send_header("Location", places[self.path])
                    return self.end_headers()
                self.send_response(200)
                self.send_header("Content-Type", "text/html; charset=windows-1251")
                self.end_headers()
                page = ("<html><head><title>\u0401\u0436 &amp; co\n</title><meta name=description content=' A b '>"
                        "<meta property='og:image' content='/i.png'></head><title>x</title>")
                self.wfile.write(page.encode("cp1251"))
                if self.path == "/endless":
                    try:
                        while True: self.wfile.write(b"x" * 65536)
                    except OSError: pass

        server = HTTPServer(("127.0.0.1", 0), Pages)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        preview.PORTS = {"http": server.server_port}
        real = preview.public_addresses
        preview.public_addresses = lambda host, port: (
            ["127.0.0.1"] if host == "public.test" else real(host, port))

        page = {"title": "\u0401\u0436 & co", "description": "A b", "image": "http://public.test/i.png"}
        assert preview.preview("http://public.test/moved") == page
        assert asked == [("public.test", "/moved"), ("public.test", "/page?a=1")], asked
        assert preview.preview("http://public.test/endless")["title"] == page["title"]
        for path in ("inside", "round", "file"):
            try: preview.preview(f"http://public.test/{path}")
            except preview.Refused: continue
            raise AssertionError(path)
        print("ok")
        """#
}
