import Foundation
import TambourProtocol
import TambourTesting
import Testing

/// The example programs that deliver login codes, against stubs of a mail server and an SMS
/// gateway.
@Suite("Examples of programs that deliver login codes")
struct CodeExampleTests {
    private static let root = URL(fileURLWithPath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

    /// A stub service, and settings that make an example use it.
    private final class Scene {
        let directory: URL
        private let stub: ChildProcess

        /// - Parameters:
        ///   - kind: `smtp` or `sms`.
        ///   - status: the stub's answer; nil for a success.
        init(_ kind: String, status: Int? = nil) async throws {
            directory = URL(fileURLWithPath: try TestServer.temporaryDirectory())
            stub = try ChildProcess(
                URL(fileURLWithPath: "/usr/bin/env"),
                [
                    "python3",
                    CodeExampleTests.root.appendingPathComponent(
                        "Tests/SystemTests/CodeExamples/stub.py"
                    ).path,
                    kind,
                ] + (status.map { ["\($0)"] } ?? [])
            )
            let address = await stub.line(after: "listening ")
            let port = try #require(address, "\(stub.errors)")
            let phones = directory.appendingPathComponent("phones")
            try Data("# people\n+79990000001 ann@example.org # Ann\n".utf8).write(to: phones)
            let settings = """
                [smtp]
                host = 127.0.0.1
                port = \(port)
                security = none
                from = Tambour <tambour@example.org>
                phones = \(phones.path)
                [sms]
                url = http://127.0.0.1:\(port)/send?key=1
                token = a-secret
                """
            try Data(settings.utf8).write(to: URL(fileURLWithPath: self.settings))
        }

        deinit {
            stub.signal(SIGKILL)
            try? FileManager.default.removeItem(at: directory)
        }

        var settings: String { directory.appendingPathComponent("codes.ini").path }

        /// Runs an example as the server does.
        func run(
            _ program: String,
            _ recipient: String,
            _ code: String
        ) throws -> ChildProcess.Outcome {
            let input = directory.appendingPathComponent("input")
            try Data("\(recipient)\n\(code)\n".utf8).write(to: input)
            return try ChildProcess.run(
                CodeExampleTests.root.appendingPathComponent("docs/examples/\(program)"),
                [],
                environment: ["TAMBOUR_CODES": settings],
                input: input.path
            )
        }

        /// Returns the next message that the stub received.
        func next() async throws -> String {
            try #require(await stub.line(after: ""), "\(stub.errors)")
        }
    }

    @Test("a phone's code goes to its address in the file, an address's code to the address")
    func mail() async throws {
        let scene = try await Scene("smtp")
        for (recipient, address) in [
            ("+79990000001", "ann@example.org"), ("bo@example.org", "bo@example.org"),
        ] {
            let result = try scene.run("code-by-smtp.py", recipient, "123456")
            #expect(result.status == 0 && result.errors.isEmpty, "\(result.errors)")
            let message = try await scene.next()
            #expect(message.contains("\"to\": \"\(address)\""))
            #expect(message.contains("\\n123456\\n"))
            #expect(message.contains("From: Tambour <tambour@example.org>"))
        }
    }

    @Test("a phone without an address is told to the operator once, without the phone")
    func unknownPhone() async throws {
        let scene = try await Scene("smtp")
        let result = try scene.run("code-by-smtp.py", "+79990000002", "123456")
        #expect(result.status == 0)
        #expect(result.errors.contains("a phone is not in"))
        #expect(!result.errors.contains("79990000002") && !result.errors.contains("123456"))
    }

    @Test("a refused address is final, a busy mail server is tried again")
    func mailRefusals() async throws {
        let refusing = try await Scene("smtp", status: 550)
        let refused = try refusing.run("code-by-smtp.py", "+79990000001", "123456")
        #expect(refused.status == 0 && refused.errors.contains("refuses the recipient"))
        let gone = try await Scene("smtp")
        try Data(
            "[smtp]\nhost = 127.0.0.1\nport = 1\nsecurity = none\nfrom = a@b.c\nphones = /dev/null\n"
                .utf8
        ).write(to: URL(fileURLWithPath: gone.settings))
        let later = try gone.run("code-by-smtp.py", "bo@example.org", "123456")
        #expect(later.status == 1 && later.errors.contains("it is tried again"))
        for mistake in ["security = tsl", "security = none\nuser = tambour\npassword = secret"] {
            try Data(
                "[smtp]\nhost = 127.0.0.1\n\(mistake)\nfrom = a@b.c\nphones = /dev/null\n".utf8
            ).write(to: URL(fileURLWithPath: gone.settings))
            let wrong = try gone.run("code-by-smtp.py", "bo@example.org", "123456")
            // With this status, the server logs a failed delivery.
            #expect(wrong.status == 1 && wrong.errors.contains("is missing or wrong"))
        }
    }

    @Test("a code is posted to the gateway with the token")
    func gateway() async throws {
        let scene = try await Scene("sms")
        let result = try scene.run("code-by-sms.py", "+79990000001", "123456")
        #expect(result.status == 0 && result.errors.isEmpty, "\(result.errors)")
        let request = try await scene.next()
        #expect(request.contains("\"path\": \"/send?key=1\""))
        #expect(request.contains("\"authorization\": \"Bearer a-secret\""))
        #expect(request.contains("\"to\": \"+79990000001\""))
        #expect(request.contains("\"text\": \"123456 is your login code\""))
    }

    @Test(
        "what the gateway refuses is final, what it cannot do now is tried again",
        arguments: [(400, 0), (401, 0), (302, 0), (429, 1), (503, 1)]
    )
    func gatewayRefusals(status: Int, exit: Int32) async throws {
        let scene = try await Scene("sms", status: status)
        let result = try scene.run("code-by-sms.py", "+79990000001", "123456")
        #expect(result.status == exit && result.errors.contains("\(status)"))
        #expect(!result.errors.contains("79990000001") && !result.errors.contains("a-secret"))
    }

    @Test("a server sends its codes with them")
    func server() async throws {
        let scene = try await Scene("sms")
        let program = Self.root.appendingPathComponent("docs/examples/code-by-sms.py").path
        let child = try ChildProcess(
            TambourdProcess.program(),
            [
                "serve", "--listen", "127.0.0.1:0",
                "--data", scene.directory.appendingPathComponent("data").path,
                "--login-codes", "exec:\(program)",
            ],
            environment: ["TAMBOUR_CODES": scene.settings]
        )
        let address = try #require(await child.line(after: "listening tcp "), "\(child.errors)")
        let client = try WireClient(address: address)
        _ = try client.call(SessionInitRequest(deviceID: "test"))
        let asked = try client.call(AuthRequestRequest(phone: "+79990000001"))
        let request = try await scene.next()
        let text = try #require(request.range(of: "\"text\": \""))
        let code = String(request[text.upperBound...].prefix(Int(asked.codeLength)))
        let reply = try client.call(AuthCodeRequest(token: asked.token, verifyCode: code))
        #expect(reply.tokenAttrs.register != nil)
        child.signal(SIGTERM)
        #expect(try await child.exitStatus(within: .seconds(60)) == 0, "\(child.errors)")
    }
}
