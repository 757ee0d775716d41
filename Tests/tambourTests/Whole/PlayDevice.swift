import Dispatch
import Foundation
import Synchronization
import TambourProtocol
import TambourTesting

@testable import TambourClient
@testable import TerminalKit
@testable import tambour

/// A person's device in a play: a client, its screen and a keyboard.
final class PlayDevice {
    /// An address at which no server listens.
    static let nowhere = "127.0.0.1:1"

    let name: String
    /// The index of the person who owns the device.
    let owner: Int
    private let path: String
    private let options: ClientOptions
    private var seat: Seat
    private(set) var isOffline = false
    /// The difference between the screen and its store, if the screen did not show the store in
    /// time.
    private(set) var lag: String?
    /// The number of bytes that the client had sent when the device last rested; nil if it has not
    /// rested yet.
    private var sentAtRest: Int?

    var client: Client { seat.client }
    var screen: ScreenController { seat.screen }
    var display: LookedAtDisplay { seat.display }

    /// A running client and its screen.
    private struct Seat {
        let client: Client
        let screen: ScreenController
        let display: LookedAtDisplay
        let pauses = Pauses()
        let left = DispatchSemaphore(value: 0)

        /// - Parameter token: The token for the first login of a client; nil if the client is
        ///   already signed in.
        init(
            _ path: String,
            _ server: String,
            _ options: ClientOptions,
            token: String?
        ) async throws {
            client = try Client(store: "\(path).db", server: server, options: options)
            client.start()
            if let token {
                try await client.signIn(token: token)
                try await client.becomeOnline()
            }
            display = LookedAtDisplay(size: Size(columns: 100, rows: 30))
            screen = ScreenController(
                client: client,
                preferences: PreferencesFile(path: "\(path).json"),
                theme: .dark,
                delay: { [pauses] _, _, body in pauses.add(body) }
            )
            screen.loading.interval = .zero
            let (screen, display, left) = (screen, display, left)
            try screen.queue.sync { try screen.begin(on: display) { _ in left.signal() } }
        }
    }

    /// The actions that the screen has delayed. This is a class, because closures cannot capture a
    /// `Mutex`.
    private final class Pauses: Sendable {
        private let bodies = Mutex<[@Sendable () -> Void]>([])

        func add(_ body: @escaping @Sendable () -> Void) { bodies.withLock { $0.append(body) } }

        func takeAll() -> [@Sendable () -> Void] {
            bodies.withLock { bodies in
                defer { bodies = [] }
                return bodies
            }
        }
    }

    init(
        _ name: String,
        owner: Int,
        path: String,
        server: String,
        token: String,
        options: ClientOptions
    ) async throws {
        self.name = name
        self.owner = owner
        self.path = path
        self.options = options
        seat = try await Seat(path, server, options, token: token)
    }

    // MARK: - Starting and ending

    /// Starts the program again. It uses the same store.
    ///
    /// - Parameter isKilled: Whether the program is killed. If it is false, a key has ended the
    ///   screen, and the function waits for this end.
    func restart(isKilled: Bool, server: String) async throws {
        if !isKilled { await waitForEnd() }
        await client.stop()
        seat = try await Seat(path, isOffline ? Self.nowhere : server, options, token: nil)
        sentAtRest = nil
    }

    func close() async {
        let screen = screen
        screen.queue.sync { screen.end(0) }
        await waitForEnd()
        await client.stop()
    }

    private func waitForEnd() async {
        let left = seat.left
        await withCheckedContinuation { continuation in
            DispatchQueue.global().async {
                _ = left.wait(timeout: .now() + 60)
                continuation.resume()
            }
        }
    }

    func goOffline() async throws {
        isOffline = true
        try await connect(to: Self.nowhere)
    }

    func goOnline(at server: String) async throws {
        isOffline = false
        try await connect(to: server)
    }

    /// Closes the connection. The client then connects to this address.
    func connect(to server: String) async throws {
        try await client.call { (core: ClientCore) throws(ClientError) -> Void in
            try core.attempt { tx in try tx.set(.server, server) }
            core.host.disconnect()
            core.connectionClosed(.closed)
            core.networkChanged()
        }
    }

    // MARK: - Keys

    func press(_ keys: KeyPress...) { press(keys) }

    func press(_ keys: [KeyPress]) { tell(keys.map { .key($0) }) }

    /// Types a text. A line break in the text stands for Enter.
    func type(_ text: String) {
        press(
            text.unicodeScalars.map { $0 == "\n" ? KeyPress(.enter) : KeyPress(.character($0)) }
        )
    }

    func tell(_ events: [InputEvent]) {
        let (screen, display) = (screen, display)
        screen.queue.sync { display.handlers.input(events) }
    }

    func resize(to size: Size) {
        let (screen, display) = (screen, display)
        display.state.withLock { $0.size = size }
        screen.queue.sync { display.handlers.resize(size) }
    }

    /// Runs all delayed actions.
    func passTime() {
        let pauses = seat.pauses
        screen.queue.sync { for body in pauses.takeAll() { body() } }
    }

    // MARK: - Looking

    func look<Value>(_ body: (ScreenState) -> Value) -> Value {
        let screen = screen
        return screen.queue.sync { body(screen.state) }
    }

    /// The screen as it is drawn last.
    var surface: Surface? {
        // An event queues its drawing, so an empty task on the same queue runs after this drawing.
        screen.queue.sync {}
        return display.state.withLock(\.surface)
    }

    var lines: [String] {
        guard let surface else { return [] }
        return (0..<surface.size.rows).map { surface.text(ofRow: $0) }
    }

    /// Waits until the screen is in the expected state.
    func until(_ what: String, _ holds: (ScreenState) -> Bool) async throws {
        try await display.wait(for: "\(name): \(what)", seconds: 30) { _ in look(holds) }
    }

    /// Waits until the screen has read all changes that it was told about.
    func waitForReading() async throws {
        let screen = screen
        try await display.wait(for: "\(name): the end of reading", seconds: 30) { _ in
            screen.queue.sync { screen.isIdle }
        }
    }

    /// Waits until the client has stored all earlier requests of the screen.
    func waitForWishes() async {
        let screen = screen
        await withCheckedContinuation { continuation in
            screen.perform { _ in continuation.resume() }
        }
        screen.queue.sync {}
    }

    // MARK: - Resting

    /// Waits until the client is online, and no request is queued or in flight.
    ///
    /// The server sends the reply to a PING after all earlier pushes, so these pushes have arrived,
    /// too.
    /// - Returns: Whether the client has sent nothing since the device last rested.
    func rest() async throws -> Bool {
        await waitForWishes()
        let wasResting = await client.traffic().sent == sentAtRest
        let deadline = ContinuousClock.now + .seconds(60)
        while true {
            guard ContinuousClock.now < deadline else {
                let waiting = (try? client.waiting().map { "\($0.kind)" }) ?? []
                throw LookedAtDisplay.NeverShown(
                    description: "\(name) never rests: \(client.state), \(waiting)"
                )
            }
            guard client.state != .signedOut else {
                let reason = client.signedOutReason ?? ""
                throw LookedAtDisplay.NeverShown(description: "\(name) is signed out: \(reason)")
            }
            guard try await waitUntilOnline() else { continue }
            _ = try? await client.ask(PingRequest())
            if await isIdle() { break }
        }
        sentAtRest = await client.traffic().sent
        return wasResting
    }

    private func waitUntilOnline() async throws -> Bool {
        let client = client
        return try await withThrowingTaskGroup(of: Bool.self) { group in
            group.addTask { await client.waitUntilOnline() }
            group.addTask {
                // This is a deadline. The other task usually ends earlier.
                try await Task.sleep(for: .seconds(60))
                return false
            }
            defer { group.cancelAll() }
            return try await group.next() ?? false
        }
    }

    private func isIdle() async -> Bool {
        let requests = try? await client.call { (core: ClientCore) throws(ClientError) -> Int in
            core.wire.requests.count
        }
        return requests == 0 && (try? client.queueLength()) == 0 && client.state == .online
    }

    /// Waits until the screen shows the contents of its store. If the screen does not show them in
    /// time, stores the difference in `lag`.
    func waitForScreen() async {
        let screen = screen
        let seconds = lag == nil ? 10 : 0
        do {
            try await display.wait(for: "", seconds: seconds) { _ in
                screen.queue.sync { screen.difference == nil }
            }
            lag = nil
        } catch {
            lag = screen.queue.sync { screen.difference }
        }
        screen.queue.sync {}
    }
}

extension ScreenController {
    /// Whether the screen is not reading and has nothing to read.
    fileprivate var isIdle: Bool {
        let stale = loading.stale
        return !loading.isRunning && !loading.isScheduled && !stale.allChats && stale.chats.isEmpty
            && !stale.history && !stale.thread
    }

    /// Describes how the screen differs from its store; nil if the screen shows everything in the
    /// store.
    fileprivate var difference: String? {
        guard isIdle else { return "it still reads" }
        guard state.connection == .online else { return "it shows \(state.connection)" }
        if let chats = try? client.chats(), chats != state.chats {
            let pairs = zip(chats, state.chats).filter { $0 != $1 }
            return "its list is old: \(chats.count) stored, \(state.chats.count) shown, \(pairs)"
        }
        return staleHistory ?? staleDrawing
    }

    private var staleHistory: String? {
        guard let open = state.open else { return nil }
        let page = try? client.history(
            of: open,
            anchor.map { .around($0) } ?? .newest,
            count: Loading.page
        )
        let pinned = try? client.pinnedMessage(in: open)
        if pinned != state.pinned {
            return "its pinned message is old: \(String(describing: pinned)) stored"
        }
        return page?.rows == state.rows && page?.isGapBefore == state.isGapBefore
            ? nil : "its messages are old"
    }

    /// Compares the screen with a fresh drawing that reuses no layout. Omits the status line.
    private var staleDrawing: String? {
        guard let display = display as? LookedAtDisplay else { return nil }
        let (surface, _) = ScreenView(layouts: MessageLayouts()).draw(state, display.size)
        let lines = (0..<surface.size.rows).map { surface.text(ofRow: $0) }
        let pairs = zip(display.lines, lines).dropLast().enumerated()
        guard let (row, (shown, drawn)) = pairs.first(where: { $0.element.0 != $0.element.1 })
        else { return nil }
        return "its line \(row) is drawn as “\(shown)” instead of “\(drawn)”"
    }
}
