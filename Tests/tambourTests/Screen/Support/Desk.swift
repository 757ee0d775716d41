import Dispatch
import Foundation
import Synchronization
import TambourClient
import TambourProtocol
import TambourTesting
import Testing

@testable import TerminalKit
@testable import tambour

/// A user at a screen, and a real server with another user, Bob.
final class Desk {
    let server: TestServer
    let directory: String
    let alice: WireClient
    let bob: WireClient
    let client: Client
    let display = LookedAtDisplay()
    private let left = DispatchSemaphore(value: 0)
    /// The actions that the screen has delayed. They run when the test calls `passTime`.
    private let passing = Passing()
    private var isServerStopped = false
    let screen: ScreenController
    /// The dialog between Alice and Bob.
    let chat: ChatID

    /// - Parameters:
    ///   - before: What happens on the server before the screen opens.
    ///   - keys: The user's own key bindings.
    init(after before: Before, keys: [String: String]) async throws {
        directory = try TestServer.temporaryDirectory()
        server = try TestServer(dataDirectory: "\(directory)/server")
        alice = try server.signUp("Alice")
        bob = try server.signUp("Bob")
        chat = alice.dialog(with: bob)
        try before.happen(World(server: server, alice: alice, bob: bob, chat: chat))
        let session = try server.signIn(phoneOf: alice, device: "screen")
        session.close()
        var options = ClientOptions()
        options.tapsFrames = true
        client = try Client(
            store: "\(directory)/alice.db",
            server: server.address,
            options: options
        )
        client.start()
        try await client.signIn(token: session.token)
        try await client.becomeOnline()
        let preferences = "\(directory)/preferences.json"
        try JSONEncoder().encode(["keys": keys]).write(to: URL(filePath: preferences))
        screen = ScreenController(
            client: client,
            preferences: PreferencesFile(path: preferences),
            theme: .none,
            delay: { [passing] _, _, body in passing.add(body) }
        )
        let (screen, display) = (screen, display)
        try screen.queue.sync { try screen.begin(on: display) { [left] _ in left.signal() } }
        try await display.waits(for: "online")
    }

    /// The delayed actions. This is a class, because closures cannot capture a `Mutex`.
    private final class Passing: Sendable {
        private let bodies = Mutex<[@Sendable () -> Void]>([])

        func add(_ body: @escaping @Sendable () -> Void) { bodies.withLock { $0.append(body) } }

        func takeAll() -> [@Sendable () -> Void] {
            bodies.withLock { bodies in
                defer { bodies = [] }
                return bodies
            }
        }
    }

    struct World {
        let server: TestServer
        let alice: WireClient
        let bob: WireClient
        let chat: ChatID
    }

    /// Waits until the screen has ended.
    func waitForEnd() async {
        let left = left
        await withCheckedContinuation { continuation in
            DispatchQueue.global().async {
                _ = left.wait(timeout: .now() + 60)
                left.signal()
                continuation.resume()
            }
        }
    }

    func close() async {
        screen.queue.sync { screen.end(0) }
        // The screen must save the draft before the client stops.
        await waitForEnd()
        await client.stop()
        stopServer()
        try? FileManager.default.removeItem(atPath: directory)
    }

    /// Stops the server; a second call has no effect.
    func stopServer() {
        guard !isServerStopped else { return }
        isServerStopped = true
        server.stop()
    }

    /// Stops the server and waits until the screen shows that it is offline.
    func loseServer() async throws {
        stopServer()
        try await display.wait(for: "offline") { _ in look { $0.connection != .online } }
    }

    // MARK: - Keys

    func press(_ keys: KeyPress...) {
        let events = keys.map { InputEvent.key($0) }
        screen.queue.sync { display.handlers.input(events) }
    }

    /// Types a text. A line break in the text stands for Enter.
    func type(_ text: String) {
        let events = text.unicodeScalars.map { scalar in
            InputEvent.key(scalar == "\n" ? KeyPress(.enter) : KeyPress(.character(scalar)))
        }
        screen.queue.sync { display.handlers.input(events) }
    }

    /// Presses several keys at once, like a user who types faster than the store works.
    func press(_ keys: [KeyPress]) {
        screen.queue.sync { display.handlers.input(keys.map { InputEvent.key($0) }) }
    }

    /// Changes the size of the terminal and draws the screen again.
    func resize(to size: Size) async throws {
        display.state.withLock { $0.size = size }
        screen.queue.sync { display.handlers.resize(size) }
        try await display.wait(for: "the new size") {
            $0.state.withLock(\.surface)?.size == size
        }
    }

    func tell(_ event: InputEvent) {
        screen.queue.sync { display.handlers.input([event]) }
    }

    /// Returns a part of the screen's state.
    func look<Value: Sendable>(_ body: (ScreenState) -> Value) -> Value {
        screen.queue.sync { body(screen.state) }
    }

    func change(_ body: (inout ScreenState) -> Void) {
        screen.queue.sync { body(&screen.state) }
    }

    /// The text of the lowest message in the pane.
    var lastSeen: String? {
        screen.queue.sync {
            let message = screen.seen.messages.last
            return screen.state.rows.first { $0.message == message }?.text
        }
    }

    /// Waits until the screen has done all pending drawing.
    func waitForDrawing() {
        // An event queues its drawing, so an empty task on the same queue runs after this drawing.
        screen.queue.sync {}
    }

    /// Runs all delayed actions.
    func passTime() {
        screen.queue.sync { for body in passing.takeAll() { body() } }
    }

    /// Waits until the client has stored all earlier requests of the screen.
    func waitForWishes() async {
        await withCheckedContinuation { continuation in
            screen.perform { _ in continuation.resume() }
        }
    }

    /// Opens the dialog with Bob.
    func openBob() async throws { try await open("Bob") }

    /// Opens a chat. The chat must contain messages.
    func open(_ title: String) async throws {
        press(.alt("g"))
        type(title.lowercased())
        try await display.waits(for: "▌\(title)")
        press(KeyPress(.enter))
        try await display.wait(for: "\(title) is open") { _ in
            look { $0.openTitle == title && !$0.rows.isEmpty }
        }
    }
}

/// What happens on the server before the screen opens.
struct Before {
    let happen: (Desk.World) throws -> Void

    init(_ happen: @escaping (Desk.World) throws -> Void) { self.happen = happen }

    static var nothing: Before { Before { _ in } }
}

/// Runs `body` at a new desk.
func atDesk(
    after before: Before = .nothing,
    keys: [String: String] = [:],
    _ body: (Desk) async throws -> Void
) async throws {
    let desk = try await Desk(after: before, keys: keys)
    do {
        try await body(desk)
    } catch {
        await desk.close()
        throw error
    }
    await desk.close()
}
