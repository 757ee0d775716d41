import Foundation
import TambourClient
import TambourMessenger
import TambourProtocol
import TambourServer
import TambourTLS
import TambourTesting
import Testing

@testable import TerminalKit
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
        // The line already begins with a plus, so a typed plus changes nothing.
        type("+\(phone)\n")
        try await display.waits(for: "127.0.0.1:1 refuses the connection")

        press([KeyPress(.up), .control("u")])
        type("\(server.address)\n")
        try await display.waits(for: "Code of")
        let code = try server.receivedCode(of: phone)
        type(code == "000000" ? "111111\n" : String(repeating: "0", count: code.count) + "\n")
        try await display.wait(for: "why not") { display in
            !display.lines.contains { $0.contains("Checking") }
        }
        #expect(screen.queue.sync { screen.form.error } != nil)
        // The field is empty again; it does not contain the refused code.
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

    @Test("asks for an invitation where one is needed, and lets people go back to it")
    func invitedPerson() async throws {
        let directory = try TestServer.temporaryDirectory()
        let server = try TestServer(registration: .invite, dataDirectory: "\(directory)/server")
        let display = LookedAtDisplay()
        let address = server.address
        let screen = SignInScreen(server: address, theme: .none) {
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
        var code = ""
        let admin = AdminClient(dataDirectory: server.dataDirectory)
        _ = try admin.run(.createInvitation(uses: 1, days: 1)) {
            code = String($0.split(separator: " ")[1])
        }
        let outcome = Task { try await screen.run(on: display) }
        try await display.waits(for: "Welcome to Tambour")
        let phone = server.freshPhone()
        type("\(phone)\n")
        try await display.waits(for: "takes only invited people")
        // A person with an account leaves the field for the invitation empty. For a phone without
        // an account, no code ever arrives.
        type("\n")
        try await display.waits(for: "No code? Esc goes back")
        press([KeyPress(.escape)])
        try await display.waits(for: "Welcome to Tambour")
        type("\n")
        try await display.waits(for: "takes only invited people")
        type("K7QF\n")
        try await display.waits(for: "16 letters and digits")
        press([.control("u")])
        type("\(code)\n")
        try await display.waits(for: "Code of")
        type("\(try server.receivedCode(of: phone))\n")
        try await display.waits(for: "what are you called?")
        type("Dora Invited\n")
        guard case .signedIn(let client) = try await outcome.value else {
            Issue.record("nobody is signed in")
            return
        }
        let me = try #require(try client.me())
        #expect(try client.person(me)?.name == "Dora Invited")
        await client.stop()
        server.stop()
        try? FileManager.default.removeItem(atPath: directory)
    }

    @Test("shows a QR code until a device of the account approves it")
    func qrCode() async throws {
        let directory = try TestServer.temporaryDirectory()
        let server = try TestServer(
            overrides: ["qrPollingIntervalMs": 100],
            dataDirectory: "\(directory)/server"
        )
        let alice = try server.signUp("Alice")
        let display = LookedAtDisplay()
        let screen = SignInScreen(server: server.address, theme: .none) {
            try Client(store: "\(directory)/new.db", server: $0)
        }
        func press(_ keys: KeyPress...) {
            screen.queue.sync { display.handlers.input(keys.map { .key($0) }) }
        }
        /// Returns the link that the QR code on the screen contains.
        func link() async throws -> String {
            try await display.waits(for: "/approve ")
            return screen.queue.sync {
                if case .qrCode(let link) = screen.form.step { link } else { "" }
            }
        }
        let outcome = Task { try await screen.run(on: display) }
        try await display.waits(for: "Ctrl-R QR code")
        press(.control("r"))
        let abandoned = try await link()
        press(KeyPress(.escape))
        try await display.waits(for: "Welcome to Tambour")
        press(.control("r"))
        let shown = try await link()
        #expect(shown != abandoned)
        #expect(display.lines.contains { $0.contains("█▀▀▀▀▀█") || $0.contains("▄▄▄▄▄") })
        #expect(display.lines.contains { $0.contains(shown) }, "the link is whole")
        try alice.call(AuthQrApproveRequest(qrLink: shown))
        guard case .signedIn(let client) = try await outcome.value else {
            Issue.record("nobody is signed in")
            return
        }
        #expect(try client.me() == alice.userID)
        await client.stop()
        server.stop()
        try? FileManager.default.removeItem(atPath: directory)
    }

    @Test("shows no other server the token of one")
    func otherServer() async throws {
        let directory = try TestServer.temporaryDirectory()
        let before = try Client(store: "\(directory)/held.db", server: "127.0.0.1:1")
        try await before.signIn(token: "a secret")
        await before.stop()
        let display = LookedAtDisplay()
        let screen = SignInScreen(server: "127.0.0.1:1", theme: .none) {
            try Client(store: "\(directory)/held.db", server: $0)
        }
        func type(_ keys: [KeyPress]) {
            screen.queue.sync { display.handlers.input(keys.map { .key($0) }) }
        }
        let phone = "79990000001".unicodeScalars.map { KeyPress(.character($0)) }
        let outcome = Task { try await screen.run(on: display) }
        try await display.waits(for: "Welcome to Tambour")
        type(phone + [KeyPress(.enter)])
        try await display.waits(for: "127.0.0.1:1 refuses the connection")
        type([KeyPress(.up), KeyPress(.character("2")), KeyPress(.enter)])
        try await display.waits(for: "127.0.0.1:1 has let this account in")
        type([.control("q")])
        _ = try await outcome.value
        try? FileManager.default.removeItem(atPath: directory)
    }

    #if TLS
        @Test("says that a server is not trusted, and what is no address")
        func untrusted() async throws {
            let directory = try TestServer.temporaryDirectory()
            let authority = try TestAuthority()
            let server = try TestServer(
                dataDirectory: "\(directory)/server",
                listen: ["tls://127.0.0.1:0"],
                tls: TLSFiles(pairs: [authority.issue("server", ["DNS:localhost"])]),
                logs: false
            )
            let port = server.address.split(separator: ":")[1]
            let display = LookedAtDisplay()
            let screen = SignInScreen(server: "tls://localhost:\(port)", theme: .none) {
                try Client(store: "\(directory)/new.db", server: $0)
            }
            func type(_ text: String) {
                let keys = text.unicodeScalars.map {
                    $0 == "\n" ? KeyPress(.enter) : KeyPress(.character($0))
                }
                screen.queue.sync { display.handlers.input(keys.map { .key($0) }) }
            }
            let outcome = Task { try await screen.run(on: display) }
            try await display.waits(for: "Welcome to Tambour")
            type("79990000001\n")
            try await display.waits(for: "tls://localhost:\(port) is not trusted")
            try await display.waits(for: "`--ca FILE`")
            let toServer = [KeyPress(.up), KeyPress.control("u")]
            screen.queue.sync { display.handlers.input(toServer.map { .key($0) }) }
            type("http://localhost\n")
            try await display.waits(for: "is no server's address")
            screen.queue.sync { display.handlers.input([.key(.control("q"))]) }
            _ = try await outcome.value
            server.stop()
            try? FileManager.default.removeItem(atPath: directory)
        }
    #endif

    @Test("says all of an error, over as many lines as there is room for")
    func longError() {
        var form = SignInForm(server: "127.0.0.1:1")
        func rows(_ size: Size) -> String {
            let surface = ScreenView(layouts: MessageLayouts()).draw(form, .none, size)
            return (0..<size.rows).map { surface.text(ofRow: $0) }.joined(separator: "\n")
        }
        form.error = "not now"
        #expect(rows(Size(columns: 80, rows: 11)).contains("not now"))
        form.error = String(repeating: "for many reasons ", count: 8) + "at last"
        #expect(rows(Size(columns: 80, rows: 24)).contains("at last"))
        let small = rows(Size(columns: 80, rows: 11))
        #expect(small.contains("for many reasons") && small.contains("Ctrl-Q leaves"))
        #expect(small.contains("…") && !rows(Size(columns: 80, rows: 24)).contains("…"))
    }

    @Test("names an account that it creates beside others")
    func newAccount() {
        #expect(SignInForm(server: "").title == "Welcome to Tambour")
        let title = SignInForm(server: "", newAccount: "work").title
        #expect(title == "Welcome! “work” is a new account on this device")
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
