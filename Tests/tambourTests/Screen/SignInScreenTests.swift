import Foundation
import TambourClient
import TambourTesting
import Testing

@testable import tambour

@Suite("The first run", .serialized)
struct SignInScreenTests {
    @Test("asks for phone, code and name, says what is wrong, and ends signed in")
    func newcomer() async throws {
        let directory = try TestServer.temporaryDirectory()
        let server = try TestServer(dataDirectory: "\(directory)/server")
        let display = LookedAtDisplay()
        let screen = SignInScreen(server: "127.0.0.1:1", theme: .none) {
            try Client(store: "\(directory)/new.db", server: $0)
        }
        func press(_ keys: [KeyPress]) {
            screen.queue.sync { display.handlers.input(keys.map { .key($0) }) }
        }
        func type(_ text: String) {
            press(
                text.unicodeScalars.map {
                    $0 == "\n" ? KeyPress(.enter) : KeyPress(.character($0))
                }
            )
        }
        let outcome = Task { try await screen.run(on: display) }
        try await display.waits(for: "Welcome to Tambour")
        let phone = server.freshPhone()
        // The line begins with a plus; whoever writes one all the same means the same.
        type("+\(phone)\n")
        try await display.waits(for: "127.0.0.1:1 cannot be reached")

        press([KeyPress(.up), .control("u")])
        type("\(server.address)\n")
        try await display.waits(for: "Code of")
        let code = try server.receivedCode(of: phone)
        type(code == "000000" ? "111111\n" : String(repeating: "0", count: code.count) + "\n")
        try await display.wait(for: "why not") { display in
            !display.lines.contains { $0.contains("Checking") }
        }
        #expect(screen.queue.sync { screen.form.error } != nil)
        press([.control("u")])
        type("\(code)\n")
        try await display.waits(for: "what are you called?")
        type("Carol Newcomer\n")
        guard case .signedIn(let client) = try await outcome.value else {
            Issue.record("nobody is signed in")
            return
        }
        let me = try #require(try client.me())
        #expect(try client.person(me)?.name == "Carol Newcomer")
        await client.stop()
        server.stop()
        try? FileManager.default.removeItem(atPath: directory)
    }

    @Test("leaves without an account when it is asked to")
    func leaving() async throws {
        let display = LookedAtDisplay()
        let screen = SignInScreen(server: "", theme: .none) { _ in throw Failure("not asked") }
        let outcome = Task { try await screen.run(on: display) }
        try await display.waits(for: "Welcome")
        screen.queue.sync { display.handlers.input([.key(.control("q"))]) }
        guard case .left(0) = try await outcome.value else {
            Issue.record("it went on")
            return
        }
    }
}
