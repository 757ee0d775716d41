import Dispatch
import Foundation
import TambourClient
import TambourProtocol
import TambourTesting
import Testing

@testable import tambour

/// Somebody at a screen, and a real server with others on it.
final class Desk {
    let server: TestServer
    let directory: String
    let alice: WireClient
    let bob: WireClient
    let client: Client
    let display = LookedAtDisplay()
    private let left = DispatchSemaphore(value: 0)
    private var isServerStopped = false
    let screen: ScreenController
    /// The dialog of the two.
    let chat: ChatID

    /// - Parameter before: what happened before the screen is opened.
    init(after before: Before) async throws {
        directory = try TestServer.temporaryDirectory()
        server = try TestServer(dataDirectory: "\(directory)/server")
        alice = try server.signUp("Alice")
        bob = try server.signUp("Bob")
        chat = alice.dialog(with: bob)
        try before.happen(World(server: server, alice: alice, bob: bob, chat: chat))
        let session = try server.signIn(phoneOf: alice, device: "screen")
        session.close()
        client = try Client(store: "\(directory)/alice.db", server: server.address)
        client.start()
        try await client.signIn(token: session.token)
        try await client.becomeOnline()
        screen = ScreenController(
            client: client,
            preferences: PreferencesFile(path: nil),
            theme: .none
        )
        let (screen, display) = (screen, display)
        try screen.queue.sync { try screen.begin(on: display) { [left] _ in left.signal() } }
        try await display.waits(for: "online")
    }

    struct World {
        let server: TestServer
        let alice: WireClient
        let bob: WireClient
        let chat: ChatID
    }

    func close() async {
        screen.queue.sync { screen.end(0) }
        // The draft is saved before the client may be stopped.
        let left = left
        await withCheckedContinuation { continuation in
            DispatchQueue.global().async {
                _ = left.wait(timeout: .now() + 60)
                continuation.resume()
            }
        }
        await client.stop()
        stopServer()
        try? FileManager.default.removeItem(atPath: directory)
    }

    /// The server goes away, once.
    func stopServer() {
        guard !isServerStopped else { return }
        isServerStopped = true
        server.stop()
    }

    // MARK: - Keys

    func press(_ keys: KeyPress...) {
        let events = keys.map { InputEvent.key($0) }
        screen.queue.sync { display.handlers.input(events) }
    }

    /// Types a text; a line break is Enter.
    func type(_ text: String) {
        let events = text.unicodeScalars.map { scalar in
            InputEvent.key(scalar == "\n" ? KeyPress(.enter) : KeyPress(.character(scalar)))
        }
        screen.queue.sync { display.handlers.input(events) }
    }

    func tell(_ event: InputEvent) {
        screen.queue.sync { display.handlers.input([event]) }
    }

    /// Something of the screen's state.
    func look<Value: Sendable>(_ body: (ScreenState) -> Value) -> Value {
        screen.queue.sync { body(screen.state) }
    }

    /// Opens the dialog with Bob.
    func openBob() async throws {
        press(.alt("g"))
        type("bob")
        try await display.waits(for: "▌Bob")
        press(KeyPress(.enter))
        try await display.wait(for: "Bob is open") { _ in
            look { $0.open == chat && !$0.rows.isEmpty }
        }
    }
}

/// What happened before the screen is opened.
struct Before {
    let happen: (Desk.World) throws -> Void

    init(_ happen: @escaping (Desk.World) throws -> Void) { self.happen = happen }

    static var nothing: Before { Before { _ in } }
}

/// Runs `body` at a desk of its own.
func atDesk(
    after before: Before = .nothing,
    _ body: (Desk) async throws -> Void
) async throws {
    let desk = try await Desk(after: before)
    do {
        try await body(desk)
    } catch {
        await desk.close()
        throw error
    }
    await desk.close()
}
