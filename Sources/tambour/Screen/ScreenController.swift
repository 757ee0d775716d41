import Dispatch
import Glibc
import TambourClient
import TambourProtocol
import TerminalKit

/// The full-screen client. Keys and changes from the library update the state. The controller draws
/// each new state.
///
/// Each extension covers one area. `@unchecked Sendable`: all mutable state is used on `queue`
/// only. The display checks that it is called on `queue`.
final class ScreenController: @unchecked Sendable {
    let client: Client
    let queue = DispatchQueue(label: "tambour.screen")
    let preferences: PreferencesFile
    var display: (any Display)?
    var state = ScreenState()
    let view = ScreenView(layouts: MessageLayouts())
    var seen = ScreenView.Seen()
    var loading = Loading()
    var places = Places()
    /// The message around which the open chat is loaded; nil for the newest messages.
    var anchor: MessageID?
    /// Whether the pane must still scroll until the anchor is in the middle.
    var isAnchorToBeShown = false
    /// Whether the user's last scroll was towards older messages.
    var isGoingBack = true
    /// The hits of the last search. The user can step through them.
    var hits: [Client.Found] = []
    var hitIndex = 0
    /// The number of requests that panels have made. It identifies outdated requests, whose replies
    /// are dropped.
    var panelGeneration = 0
    /// The names of the people whom the user can mention, by chat. A chat has no entry until a
    /// lookup finds somebody.
    var nameable: [ChatID: [UserID: String]] = [:]
    /// Groups whose members were requested from the server.
    var rosters: Set<ChatID> = []
    var writing = Writing()
    /// The command that is being handled. Requests that are made during this time belong to the
    /// command.
    var commandUnderWay: CommandUnderWay?
    /// The chat that was open when the screen last told the library which messages are visible.
    private var lookedAt: ChatID?
    /// Whether the terminal has the focus; always true if the terminal does not report focus.
    var isLookedAt = true
    var lastNotice = ContinuousClock.now - .seconds(60)
    var lastTyping = ContinuousClock.now - .seconds(60)
    var me: UserID?
    private let delay: Delay
    private let wishes = Wishes()
    /// The text width for which `state.scroll` is valid. Another width gives other lines.
    private var scrolledWidth = 0
    private var isDrawPosted = false
    private var isLeaving = false
    /// Whether the user leaves the screen to sign in again.
    var wantsSignIn = false
    private var listening: [Task<Void, Never>] = []
    private var onEnd: ((Int32) -> Void)?

    /// The line of a command, and the chat that was open when the user entered it.
    struct CommandUnderWay {
        let line: String
        let chat: ChatID?
    }

    /// Runs a function on a queue after a delay.
    typealias Delay =
        @Sendable (Duration, DispatchQueue, @escaping @Sendable () -> Void) -> Void

    /// The maximum time for which `end` waits until the user's last requests are stored.
    private static let patience = Duration.seconds(5)

    init(
        client: Client,
        preferences: PreferencesFile,
        theme: Theme,
        delay: @escaping Delay = { time, queue, body in
            let nanoseconds = Int(time / .nanoseconds(1))
            queue.asyncAfter(deadline: .now() + .nanoseconds(nanoseconds), execute: body)
        }
    ) {
        self.client = client
        self.preferences = preferences
        self.delay = delay
        state.theme = theme
        state.keys = preferences.keys
        if let mistake = preferences.mistakes.first {
            let others = preferences.mistakes.count - 1
            let rest = others == 0 ? "tells more" : "tells of \(others) more"
            state.notice = ("\(mistake) (`tambour keys` \(rest))", true)
        }
        me = try? client.me()
    }

    /// Uses the display until the user leaves.
    ///
    /// - Parameter isStarting: Whether the client should connect.
    /// - Returns: The exit code.
    func run(on display: any Display, isStarting: Bool = true) async throws -> Int32 {
        try await withCheckedThrowingContinuation { continuation in
            queue.async { [self] in
                do {
                    try begin(on: display) { continuation.resume(returning: $0) }
                } catch {
                    return continuation.resume(throwing: error)
                }
                if isStarting { client.start() }
            }
        }
    }

    /// Takes over the display. Must be called on the queue.
    func begin(on display: any Display, onEnd: @escaping (Int32) -> Void) throws {
        self.display = display
        display.handlers.input = { [weak self] events in
            guard let self else { return }
            for event in events { handle(event) }
            draw()
        }
        display.handlers.resize = { [weak self] _ in
            self?.resized()
            self?.draw()
        }
        display.handlers.signal = { [weak self] signal in
            guard let self else { return }
            if signal == SIGINT {
                tellHowToLeave()
            } else {
                end(128 + signal)
            }
            draw()
        }
        display.handlers.closed = { [weak self] in self?.end(1) }
        try display.start()
        self.onEnd = onEnd
        scrolledWidth = paneWidth
        loading.stale.allChats = true
        loading.stale.folders = true
        perform { try? await $0.syncFolders() }
        if let chat = try? client.openChat() { open(chat) }
        load()
        listen()
    }

    func end(_ code: Int32) {
        guard onEnd != nil, !isLeaving else { return }
        isLeaving = true
        for task in listening { task.cancel() }
        display?.stop()
        keepDraft()
        // The client stops when all requests are stored. If the store hangs, the client stops after
        // a time limit.
        wishes.finish { [self] in later { $0.conclude(code) } }
        after(Self.patience) { $0.conclude(code) }
    }

    private func conclude(_ code: Int32) {
        onEnd?(code)
        onEnd = nil
    }

    func tellHowToLeave() {
        state.notice = (state.keys.hint(.leave, "leaves"), false)
    }

    // MARK: - Changes

    private func listen() {
        let (changes, states, events) = (client.changes(), client.states(), client.events())
        listening = [
            Task { [weak self] in
                for await change in changes { self?.later { $0.noted(change) } }
            },
            Task { [weak self] in
                for await state in states {
                    self?.later {
                        $0.state.connection = state
                        $0.loading.stale.queue = true
                        $0.load()
                        $0.draw()
                    }
                }
            },
            Task { [weak self] in
                for await event in events { self?.later { $0.happened(event) } }
            },
        ]
    }

    private func happened(_ event: ClientEvent) {
        switch event {
        case .typing(let chat, let user):
            guard chat == state.open else { return }
            state.typing = try? client.person(user)?.name
            queue.asyncAfter(deadline: .now() + 5) { [weak self] in
                self?.state.typing = nil
                self?.draw()
            }
        case .refused(let reason): state.notice = (reason, true)
        case .sentLate(let chat, let plannedMs):
            state.notice = (Self.lateWords(plannedMs: plannedMs, title: title(of: chat)), false)
        case .scheduledFailed(let chat):
            let title = title(of: chat)
            state.notice = (
                "a scheduled message to \(title) could not be sent; /later there shows it", true
            )
        case .signedOut(let reason): state.notice = ("signed out, /login signs in: \(reason)", true)
        case .storeFailed(let reason): state.notice = (reason, true)
        case .frame(let frame):
            guard state.frames != nil else { return }
            state.frames?.append(frame)
            if let count = state.frames?.count, count > 200 { state.frames?.removeFirst(100) }
        }
        draw()
    }

    private func title(of chat: ChatID) -> String {
        let known = state.chats.first { $0.id == chat }?.title
        return known ?? (try? client.chat(chat)?.title) ?? "somebody"
    }

    // MARK: - Drawing

    func draw() {
        guard !isDrawPosted else { return }
        isDrawPosted = true
        queue.async { [self] in
            isDrawPosted = false
            guard let display, onEnd != nil, !isLeaving else { return }
            let (surface, seen) = view.draw(state, display.size)
            if seen.paneRows > 0 { state.scroll = seen.scroll }
            display.show(surface)
            // A chat that has just been opened may have no message on this device. Opening it is
            // therefore reported too.
            let isOther = seen.messages != self.seen.messages || state.open != lookedAt
            self.seen = seen
            if isOther { look() }
        }
    }

    /// Handles a resize, which wraps the lines differently. The text that the user reads stays in
    /// its place.
    private func resized() {
        let isFollowing = state.scroll == 0 && anchor == nil
        let bottom = isFollowing ? nil : view.bottomLine(of: state, scrolledWidth)
        scrolledWidth = paneWidth
        guard let bottom else { return }
        state.scroll = view.scroll(of: state, scrolledWidth, keeping: bottom) ?? state.scroll
    }

    /// Reports to the library which messages are on the screen. If these are the newest messages
    /// and the terminal has the focus, marks them as read.
    private func look() {
        lookedAt = state.open
        guard let open = state.open else { return }
        var position =
            state.scroll > 0 ? (isGoingBack ? seen.messages.first : seen.messages.last) : nil
        // The message to which the user jumps may be missing on this device. The page around it is
        // therefore requested.
        if isAnchorToBeShown || position == nil { position = anchor ?? position }
        client.look(
            at: open,
            position: position,
            isGoingBack: isGoingBack,
            rowsOnScreen: max(1, seen.rowsOnScreen),
            visible: seen.messages
        )
        let newest = seen.messages.last
        let unread = state.openChat?.unread ?? 0
        if unread > 0, state.scroll == 0, anchor == nil, isLookedAt, let newest {
            perform { try await $0.markRead(newest, in: open) }
        }
    }

    /// Marks visible messages as read when the user returns to the terminal.
    func lookAgain() { look() }

    // MARK: - Running work

    /// Runs `body` on the queue.
    func later(_ body: @escaping @Sendable (ScreenController) -> Void) {
        queue.async { [self] in body(self) }
    }

    /// Runs `body` on the queue after a delay.
    func after(_ time: Duration, _ body: @escaping @Sendable (ScreenController) -> Void) {
        delay(time, queue) { [weak self] in
            if let self { body(self) }
        }
    }

    /// Runs `body` after all earlier requests have ended. If `body` throws an error, shows it to
    /// the user.
    func perform(_ body: @escaping @Sendable (Client) async throws -> Void) {
        let (client, command) = (client, commandUnderWay)
        wishes.add { [weak self] in
            do {
                try await body(client)
            } catch {
                self?.later { $0.refuse("\(error)", command) }
            }
        }
    }

    /// Runs `read` in the background and passes the result to `then`, on the queue.
    func fetch<Value: Sendable>(
        _ read: @escaping @Sendable (Client) async throws -> Value,
        then: @escaping @Sendable (ScreenController, Value) -> Void
    ) {
        let (client, command) = (client, commandUnderWay)
        let panel = state.panel.flatMap { $0.isLoading ? $0.kind : nil }
        Task { [weak self] in
            do {
                let value = try await read(client)
                self?.later {
                    then($0, value)
                    $0.draw()
                }
            } catch {
                self?.later { $0.refuse("\(error)", command, for: panel) }
            }
        }
    }

    /// Shows why a request failed, also in the panel that waits for the result. If a command made
    /// the request, puts the command back into the line. Otherwise a user who expects that the
    /// command has opened another chat could send the next text to the wrong chat.
    private func refuse(
        _ reason: String,
        _ command: CommandUnderWay?,
        for panel: Panel.Kind? = nil
    ) {
        state.notice = (reason, true)
        if let panel, state.panel?.isLoading == true { fill(panel, with: [], remark: reason) }
        if let command, command.chat == state.open, state.focus == .input, !state.intent.isEdit {
            returnCommand(command.line)
        }
        draw()
    }

    func say(_ text: String, isError: Bool = false) {
        queue.async { [self] in
            state.notice = (text, isError)
            draw()
        }
    }
}
