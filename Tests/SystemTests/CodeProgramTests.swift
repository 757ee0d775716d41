import Foundation
import TambourFraming
import TambourMessenger
import TambourProtocol
import TambourServer
import TambourTesting
import Testing

/// Operators' programs that deliver login codes, and their failures.
@Suite("Programs that deliver login codes")
struct CodeProgramTests {
    private final class Scene {
        let directory: URL
        let child: ChildProcess
        let client: WireClient

        /// - Parameter body: The body of a shell script, run after the script has read `recipient`
        ///   and `code`.
        init(_ body: String, limits: [String: Int] = [:]) async throws {
            let directory = URL(fileURLWithPath: try TestServer.temporaryDirectory())
            let settings = directory.appendingPathComponent("limits.yaml").path
            try Unhurried.file(limits).write(toFile: settings, atomically: true, encoding: .utf8)
            let program = directory.appendingPathComponent("deliver").path
            try ChildProcess.makeProgram(
                at: program,
                "#!/bin/sh\ncd \"\(directory.path)\"\nread recipient\nread code\n\(body)\n"
            )
            let child = try ChildProcess(
                TambourdProcess.program(),
                [
                    "serve", "--listen", "127.0.0.1:0",
                    "--data", directory.appendingPathComponent("data").path,
                    "--login-codes", "exec:\(program)", "--limits", settings,
                ]
            )
            let address = await child.line(after: "listening tcp ")
            let client = try WireClient(address: try #require(address, "\(child.errors)"))
            _ = try client.call(SessionInitRequest(deviceID: "test"))
            self.directory = directory
            self.child = child
            self.client = client
        }

        deinit {
            // The server has already ended, unless the test failed.
            child.signal(SIGKILL)
            for number in numbers { kill(-number, SIGKILL) }
            try? FileManager.default.removeItem(at: directory)
        }

        /// The process ids that the programs have written to a file, one per line.
        var numbers: [pid_t] {
            let path = directory.appendingPathComponent("numbers").path
            let text = FileManager.default.contents(atPath: path) ?? Data()
            return String(decoding: text, as: UTF8.self).split(separator: "\n")
                .compactMap { pid_t($0) }
        }

        var metrics: String {
            let data = directory.appendingPathComponent("data").path
            var text = ""
            _ = try? AdminClient(dataDirectory: data).run(.metrics) { text += "\($0)\n" }
            return text
        }

        func ask(_ number: Int) throws -> UInt16 {
            try client.send(AuthRequestRequest(phone: "+79990\(1_000_000 + number)"))
        }

        /// Sends `count` requests for a code and returns their errors; "" means success.
        func errors(of count: Int) throws -> [Text] {
            try (0..<count).map { try ask($0) }.map { number in
                let packet = try client.reply(to: number)
                guard packet.header.command == PacketCommand.error.rawValue else { return "" }
                return try ErrorReply.decode(packet.payload, limits: .standard).error
            }
        }

        func wait(_ failure: String, until condition: () -> Bool) async throws {
            let deadline = ContinuousClock.now + .seconds(60)
            while !condition() {
                try #require(ContinuousClock.now < deadline, "\(failure): \(child.errors)")
                // The program is external and reports nothing, so the test must poll.
                try await Task.sleep(for: .milliseconds(5))
            }
        }

        static func isAlive(_ number: pid_t) -> Bool {
            let status = FileManager.default.contents(atPath: "/proc/\(number)/stat")
            let text = status.map { String(decoding: $0, as: UTF8.self) } ?? ""
            return !text.isEmpty && !text.drop { $0 != ")" }.hasPrefix(") Z")
        }
    }

    @Test("hang: few run at a time, and all of them end with the server")
    func hanging() async throws {
        let scene = try await Scene(
            "echo $$ >> numbers; sleep 1000 & echo $! >> numbers; wait",
            limits: ["maxCodeProgramsRunning": 3, "maxCodesWaiting": 100]
        )
        #expect(try scene.errors(of: 60).allSatisfy(\.isEmpty))
        try await scene.wait("three do not run") { scene.numbers.count >= 6 }
        // A later code waits: only the three programs and their children run.
        #expect(try scene.errors(of: 1) == [""])
        #expect(scene.numbers.filter(Scene.isAlive).count <= 6)
        scene.child.signal(SIGTERM)
        let status = try await scene.child.exitStatus(within: .seconds(60))
        #expect(status == 0, "\(scene.child.errors)")
        #expect(scene.numbers.filter(Scene.isAlive) == [])
        #expect(scene.child.errors.contains("login codes were not delivered"))
    }

    @Test("are behind: a request for a code is refused while too many wait")
    func behind() async throws {
        let scene = try await Scene(
            "echo $$ >> numbers; while [ ! -e go ]; do sleep 0.05; done; echo $recipient >> told",
            limits: ["maxCodeProgramsRunning": 1, "maxCodesWaiting": 4]
        )
        #expect(try scene.errors(of: 1) == [""])
        try await scene.wait("it does not run") { scene.numbers.count == 1 }
        var taken = 1
        var refusal: Text = ""
        // The server first answers a request and then hands the code to a program. So it may accept
        // a few more requests before it refuses one.
        while refusal.isEmpty, taken < 40 {
            refusal = try scene.errors(of: 1)[0]
            if refusal.isEmpty { taken += 1 }
        }
        #expect(refusal == "overloaded")
        #expect(taken >= 5)
        let go = scene.directory.appendingPathComponent("go").path
        #expect(FileManager.default.createFile(atPath: go, contents: nil))
        let told = scene.directory.appendingPathComponent("told").path
        try await scene.wait("what was taken is not delivered") {
            FileManager.default.contents(atPath: told)?.count { $0 == UInt8(ascii: "\n") } == taken
        }
        #expect(try scene.errors(of: 1) == [""])
        scene.child.signal(SIGTERM)
        #expect(try await scene.child.exitStatus(within: .seconds(60)) == 0)
    }

    @Test("fail: they are tried again, behind what waits")
    func failing() async throws {
        let scene = try await Scene(
            "echo $recipient >> told; [ -e failed ] || { touch failed; exit 1; }",
            limits: ["maxCodeProgramsRunning": 1]
        )
        #expect(try scene.errors(of: 2) == ["", ""])
        let told = scene.directory.appendingPathComponent("told").path
        func lines() -> [String] {
            let text = FileManager.default.contents(atPath: told) ?? Data()
            return String(decoding: text, as: UTF8.self).split(separator: "\n").map(String.init)
        }
        try await scene.wait("it is not tried again") { lines().count == 3 }
        #expect(lines() == ["+799901000000", "+799901000001", "+799901000000"])
        #expect(scene.child.errors.contains("status 1"))
        try await scene.wait("the runs are not counted") {
            ["sent\"} 2", "failed\"} 1", "dropped\"} 0"].allSatisfy {
                scene.metrics.contains("tambour_code_program_runs_total{outcome=\"\($0)")
            }
        }
        scene.child.signal(SIGTERM)
        #expect(try await scene.child.exitStatus(within: .seconds(60)) == 0)
    }
}
