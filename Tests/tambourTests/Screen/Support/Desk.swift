import Dispatch
import Foundation
import Synchronization
import TambourClient
import TambourProtocol
import TambourTesting
import Testing

@testable import TerminalKit
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
    /// What is to be done after a while.
    private let passing = Passing()
    private var isServerStopped = false
    let screen: ScreenController
    /// The dialog of the two.
    let chat: ChatID

    /// - Parameters:
    ///   - before: what happened before the screen is opened.
    ///   - keys: those that the person has chosen.
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

    /// `Mutex` cannot be captured.
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

    /// Waits until the screen has let its owner go on.
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
        // The draft is saved before the client may be stopped.
        await waitForEnd()
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

    /// The server goes away, and the screen knows.
    func loseServer() async throws {
        stopServer()
        try await display.wait(for: "offline") { _ in look { $0.connection != .online } }
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

    /// Several keys at once, as from somebody who is faster than the store.
    func press(_ keys: [KeyPress]) {
        screen.queue.sync { display.handlers.input(keys.map { InputEvent.key($0) }) }
    }

    /// The terminal has another size, and what is there is drawn in it.
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

    /// Something of the screen's state.
    func look<Value: Sendable>(_ body: (ScreenState) -> Value) -> Value {
        screen.queue.sync { body(screen.state) }
    }

    func change(_ body: (inout ScreenState) -> Void) {
        screen.queue.sync { body(&screen.state) }
    }

    /// The text of the message at the bottom of the pane.
    var lastSeen: String? {
        screen.queue.sync {
            let message = screen.seen.messages.last
            return screen.state.rows.first { $0.message == message }?.text
        }
    }

    /// What was to be drawn is.
    func waitForDrawing() {
        // Drawing is put behind what made it necessary.
        screen.queue.sync {}
    }

    /// As long passes as anybody waits for.
    func passTime() {
        screen.queue.sync { for body in passing.takeAll() { body() } }
    }

    /// All that was asked of the library until now is stored.
    func waitForWishes() async {
        await withCheckedContinuation { continuation in
            screen.perform { _ in continuation.resume() }
        }
    }

    /// Opens the dialog with Bob.
    func openBob() async throws { try await open("Bob") }

    /// Opens a chat in which something was said.
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

/// What happened before the screen is opened.
struct Before {
    let happen: (Desk.World) throws -> Void

    init(_ happen: @escaping (Desk.World) throws -> Void) { self.happen = happen }

    static var nothing: Before { Before { _ in } }
}

/// Runs `body` at a desk of its own.
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
