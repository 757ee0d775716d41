import Dispatch
import Foundation
import TambourClient
import TambourProtocol

/// The full-screen client: keys and news come in, state changes, frames go out.
///
/// `@unchecked Sendable`: everything but the client is touched on the queue only, which the device
/// checks.
final class ScreenController: @unchecked Sendable {
    let client: Client
    let queue = DispatchQueue(label: "tambour.screen")
    private var device: TerminalDevice?
    private var state = ScreenState()
    private let view = ScreenView(layouts: MessageLayouts())
    private var seen = ScreenView.Seen()
    /// Where the reading of the open chat begins; nil follows the newest.
    private var anchor: MessageID?
    private var isDrawPosted = false
    private var reading: Task<Void, Never>?
    private var isStale = false
    private var listening: [Task<Void, Never>] = []
    private var onEnd: ((Int32) -> Void)?
    private var lastTyping = ContinuousClock.now - .seconds(60)

    private static let page = 100

    static let help = [
        "Enter send   Alt-Enter new line   Alt-e $EDITOR   Tab complete",
        "Alt-g go to a chat   Alt-n next unread   Alt-Up Alt-Down neighbours",
        "PgUp PgDn scroll   Alt-End newest   Alt-u first unread",
        "Esc choose a message, with Up and Down, then: r reply, e edit,",
        "  d delete for all, D for me, + react, - take back, f forward,",
        "  q to the quoted one, y copy, R try again, Esc back",
        "/find PHONE   /new TITLE, PHONE, ...   /new-channel TITLE",
        "/members   /add PHONE   /remove PHONE   /title TEXT",
        "/leave   /hide   /mute   /pin   /search WORDS",
        "/date 2026-11-23   /name FIRST LAST   /contacts   /sessions",
        "/theme dark|light|mono|none   /debug   /quit, or Ctrl-Q",
        "",
        "Offline everything works: what waits is in the status line.",
        "Any key closes this.",
    ]

    init(client: Client, theme: Theme) {
        self.client = client
        state.theme = theme
    }

    /// Takes the terminal until the person leaves.
    ///
    /// - Returns: the exit code.
    func run(_ options: TerminalDevice.Options) async throws -> Int32 {
        let device = try TerminalDevice.open(options: options, queue: queue)
        return try await withCheckedThrowingContinuation { continuation in
            queue.async { [self] in
                self.device = device
                onEnd = { continuation.resume(returning: $0) }
                device.handlers.input = { [unowned self] events in
                    for event in events { handle(event) }
                    draw()
                }
                device.handlers.resize = { [unowned self] _ in draw() }
                device.handlers.signal = { [unowned self] signal in
                    if signal == SIGINT {
                        state.notice = ("Ctrl-Q leaves", false)
                    } else {
                        end(128 + signal)
                    }
                    draw()
                }
                device.handlers.closed = { [unowned self] in end(1) }
                do {
                    try device.start()
                } catch {
                    onEnd = nil
                    return continuation.resume(throwing: error)
                }
                load()
                listen()
                client.start()
            }
        }
    }

    private func end(_ code: Int32) {
        guard let onEnd else { return }
        self.onEnd = nil
        saveDraft()
        for task in listening { task.cancel() }
        device?.stop()
        onEnd(code)
    }

    // MARK: - News

    private func listen() {
        let (changes, states, events) = (client.changes(), client.states(), client.events())
        listening = [
            Task { [weak self] in
                for await _ in changes { self?.later { $0.load() } }
            },
            Task { [weak self] in
                for await state in states {
                    self?.later {
                        $0.state.connection = state
                        $0.load()
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
        case .signedOut(let reason): state.notice = ("signed out: \(reason)", true)
        case .storeFailed(let reason): state.notice = (reason, true)
        case .frame(let frame):
            if state.frames != nil {
                state.frames?.append(frame)
                if let count = state.frames?.count, count > 200 { state.frames?.removeFirst(100) }
            }
        }
        draw()
    }

    /// Reads what is shown from the store, away from the keys; once more if something changes meanwhile.
    private func load() {
        guard reading == nil else {
            isStale = true
            return
        }
        let (open, anchor, client) = (state.open, anchor, client)
        reading = Task { [weak self] in
            let chats = try? client.chats()
            let page = open.flatMap {
                try? client.history(
                    of: $0,
                    anchor.map { .around($0) } ?? .newest,
                    count: Self.page
                )
            }
            let waiting = (try? client.queueLength()) ?? 0
            let traffic = await client.traffic()
            self?.later {
                $0.reading = nil
                $0.state.chats = chats ?? $0.state.chats
                $0.state.queueLength = waiting
                $0.state.traffic = traffic
                if open == $0.state.open, anchor == $0.anchor, let page { $0.show(page) }
                if $0.isStale {
                    $0.isStale = false
                    $0.load()
                }
                $0.draw()
            }
        }
    }

    private func show(_ page: HistoryPage) {
        if state.scroll > 0, let last = state.rows.last?.id, page.isEnd,
            let index = page.rows.lastIndex(where: { $0.id == last })
        {
            // What is read stays where it is when something new comes below.
            let width = paneWidth
            for row in page.rows[(index + 1)...] {
                state.scroll += view.layouts.block(of: row, width: width, hasHeader: true).height
            }
        }
        state.rows = page.rows
        state.isGapBefore = page.isGapBefore
        state.isStart = page.isStart
        state.isEnd = page.isEnd
    }

    private var paneWidth: Int {
        let columns = device?.size.columns ?? 80
        return columns >= 70 ? columns - 30 : columns - 1
    }

    // MARK: - Drawing

    private func draw() {
        guard !isDrawPosted else { return }
        isDrawPosted = true
        queue.async { [self] in
            isDrawPosted = false
            guard let device, onEnd != nil else { return }
            let (surface, seen) = view.draw(state, device.size)
            device.show(surface)
            let isOther = seen.messages != self.seen.messages
            self.seen = seen
            if isOther { look() }
        }
    }

    /// Tells the library what is on the screen, and the server what was read.
    private func look() {
        guard let open = state.open else { return }
        client.look(
            at: open,
            position: state.scroll > 0 ? seen.messages.first : nil,
            rowsOnScreen: max(1, seen.rowsOnScreen),
            visible: seen.messages
        )
        let newest = seen.messages.last
        let unread = state.openChat?.unread ?? 0
        if unread > 0, state.scroll == 0, anchor == nil, let newest {
            perform { try await $0.markRead(newest, in: open) }
        }
    }

    /// Runs `body` on the queue.
    private func later(_ body: @escaping @Sendable (ScreenController) -> Void) {
        queue.async { [self] in body(self) }
    }

    private func perform(_ body: @escaping @Sendable (Client) async throws -> Void) {
        let client = client
        Task { [weak self] in
            do {
                try await body(client)
            } catch {
                self?.say("\(error)", isError: true)
            }
        }
    }

    private func say(_ text: String, isError: Bool = false) {
        queue.async { [self] in
            state.notice = (text, isError)
            draw()
        }
    }

    // MARK: - Keys

    private func handle(_ event: InputEvent) {
        switch event {
        case .paste(let text):
            if state.focus == .input { _ = state.input.paste(text) }
        case .key(let press):
            state.notice = nil
            if state.isHelpShown {
                state.isHelpShown = false
                return
            }
            if handleEverywhere(press) { return }
            switch state.focus {
            case .input: handleInput(press)
            case .messages: handleMessages(press)
            case .switcher: handleSwitcher(press)
            }
        case .mouse(let mouse):
            if mouse.action == .wheelUp { scroll(by: 3) }
            if mouse.action == .wheelDown { scroll(by: -3) }
        case .focusGained, .focusLost: break
        }
    }

    private func handleEverywhere(_ press: KeyPress) -> Bool {
        switch press {
        case .control("q"): end(0)
        case .control("z"): device?.suspend()
        case .control("l"): device?.repaint()
        case KeyPress(.function(1)): state.isHelpShown = true
        case .alt("g"): openSwitcher()
        case .alt("n"): goToNextUnread()
        case KeyPress(.up, .alt): goToNeighbour(-1)
        case KeyPress(.down, .alt): goToNeighbour(1)
        case KeyPress(.pageUp): scroll(by: max(1, seen.paneRows - 2))
        case KeyPress(.pageDown): scroll(by: -max(1, seen.paneRows - 2))
        case KeyPress(.end, .alt): follow()
        case .alt("u"): goToFirstUnread()
        default: return false
        }
        return true
    }

    private func handleInput(_ press: KeyPress) {
        switch press {
        case KeyPress(.escape):
            if state.intent != .new {
                cancelIntent()
            } else if let last = state.rows.last(where: { $0.event == nil }) {
                state.focus = .messages
                state.selected = last.id
            }
        case .alt("e"): editOutside()
        case KeyPress(.tab): complete()
        default:
            state.input.width = max(1, paneWidth - 2)
            switch state.input.handle(press) {
            case .submitted(let text): submit(text)
            case .limitReached:
                state.notice = ("a message has at most \(state.input.limit) characters", true)
            case .handled: noteTyping()
            case .ignored: break
            }
        }
    }

    private func noteTyping() {
        guard let open = state.open, !state.input.isEmpty, !state.input.text.hasPrefix("/"),
            ContinuousClock.now - lastTyping > .seconds(4)
        else { return }
        lastTyping = .now
        client.typing(in: open)
    }

    private func cancelIntent() {
        if case .edit = state.intent { state.input.setText("") }
        state.intent = .new
    }

    private func handleMessages(_ press: KeyPress) {
        guard let open = state.open, let row = state.selectedRow else {
            state.focus = .input
            return
        }
        switch press.key {
        case .escape, .enter: state.focus = .input
        case .up: select(by: -1)
        case .down: select(by: 1)
        case .character("r"):
            guard let message = row.message else { return }
            state.intent = .reply(message, quote: "\(row.senderName): \(row.text)")
            state.focus = .input
        case .character("e"):
            guard row.isOwn, let message = row.message else {
                state.notice = ("only own messages can be changed", true)
                return
            }
            state.intent = .edit(message)
            state.input.setText(row.text)
            state.focus = .input
        case .character("d"), .character("D"):
            let isForMe = press.key == .character("D")
            if let outgoing = row.outgoing {
                perform { try await $0.cancel(outgoing) }
            } else if let message = row.message {
                perform { try await $0.delete([message], in: open, onlyForMe: isForMe) }
            }
            state.focus = .input
        case .character("R"):
            if let outgoing = row.outgoing { perform { try await $0.retry(outgoing) } }
            state.focus = .input
        case .character("+"), .character("-"):
            guard let message = row.message else { return }
            let emoji = press.key == .character("-") ? nil : "👍"
            perform { try await $0.react(emoji, to: message, in: open) }
            state.focus = .input
        case .character("f"):
            guard let message = row.message else { return }
            forwarding = (open, message)
            openSwitcher()
        case .character("q"):
            if let quote = row.quote { go(to: quote.message) }
        case .character("y"):
            let isSent = device?.copy(row.text) == true
            state.notice = isSent ? ("copied", false) : ("too long to be copied", true)
            state.focus = .input
        default: break
        }
    }

    private var forwarding: (chat: ChatID, message: MessageID)?

    private func select(by step: Int) {
        let rows = state.rows.filter { $0.event == nil }
        guard let index = rows.firstIndex(where: { $0.id == state.selected }) else { return }
        let next = min(max(0, index + step), rows.count - 1)
        state.selected = rows[next].id
        guard let message = rows[next].message else { return }
        if let first = seen.messages.first, message < first { scroll(by: 3) }
        if let last = seen.messages.last, message > last { scroll(by: -3) }
    }

    // MARK: - Going places

    private func open(_ chat: ChatID) {
        guard chat != state.open else { return }
        saveDraft()
        if let old = state.open { client.lookAway(from: old) }
        state.open = chat
        state.rows = []
        state.intent = .new
        state.typing = nil
        follow()
        let draft = state.chats.first { $0.id == chat }?.draft ?? ""
        state.input.load(LineEditor.Draft(text: draft, cursor: draft.count))
        seen = ScreenView.Seen()
        load()
    }

    private func saveDraft() {
        guard let open = state.open, case .new = state.intent else { return }
        let text = state.input.text.hasPrefix("/") ? "" : state.input.text
        let client = client
        Task { try? await client.saveDraft(text, in: open) }
    }

    private func follow() {
        state.scroll = 0
        if anchor != nil {
            anchor = nil
            load()
        }
    }

    private func go(to message: MessageID) {
        anchor = message
        state.scroll = 0
        state.selected = .message(message)
        load()
    }

    private func scroll(by lines: Int) {
        let most = max(0, seen.lines - seen.paneRows)
        let wanted = state.scroll + lines
        if wanted > most, !state.isStart, let oldest = state.rows.first?.message {
            // Older rows than are read: reading begins further up.
            anchor = oldest
            load()
        }
        if wanted < 0, anchor != nil, state.isEnd { anchor = nil }
        state.scroll = min(max(0, wanted), most)
    }

    private func goToNeighbour(_ step: Int) {
        guard !state.chats.isEmpty else { return }
        let index = state.chats.firstIndex { $0.id == state.open }
        let next = index.map { min(max(0, $0 + step), state.chats.count - 1) } ?? 0
        open(state.chats[next].id)
    }

    private func goToNextUnread() {
        let unread = state.chats.filter { $0.unread > 0 && $0.id != state.open }
        guard let next = unread.first(where: { !$0.isMuted }) ?? unread.first else {
            state.notice = ("nothing is unread", false)
            return
        }
        open(next.id)
    }

    private func goToFirstUnread() {
        guard let open = state.open else { return }
        let page = try? client.history(of: open, .firstUnread, count: 2)
        if let message = page?.rows.last?.message { go(to: message) }
    }

    // MARK: - The switcher

    private func openSwitcher() {
        state.focus = .switcher
        state.switcher = ScreenState.Switcher()
        fillSwitcher()
    }

    private func fillSwitcher() {
        let names = state.chats.map { FoldedText($0.title) }
        let ranked = FuzzyMatch.rank(state.switcher.query.text, names)
        state.switcher.entries = ranked.map { found in
            let chat = state.chats[found.index]
            return ScreenState.Switcher.Entry(
                chat: chat.id,
                title: chat.title,
                unread: chat.unread,
                ranges: found.match.ranges
            )
        }
        let count = state.switcher.entries.count
        state.switcher.selected = min(state.switcher.selected, max(0, count - 1))
    }

    private func handleSwitcher(_ press: KeyPress) {
        switch press.key {
        case .escape:
            forwarding = nil
            state.focus = .input
        case .up: state.switcher.selected = max(0, state.switcher.selected - 1)
        case .down:
            let last = max(0, state.switcher.entries.count - 1)
            state.switcher.selected = min(last, state.switcher.selected + 1)
        case .enter:
            state.focus = .input
            guard state.switcher.entries.indices.contains(state.switcher.selected) else { return }
            let chat = state.switcher.entries[state.switcher.selected].chat
            if let forwarding {
                self.forwarding = nil
                perform {
                    try await $0.forward(forwarding.message, of: forwarding.chat, to: chat)
                }
            }
            open(chat)
        default:
            _ = state.switcher.query.handle(press)
            fillSwitcher()
        }
    }

    // MARK: - Writing

    private func submit(_ text: String) {
        if text.hasPrefix("/"), !text.hasPrefix("//") { return command(String(text.dropFirst())) }
        let text = text.hasPrefix("//") ? String(text.dropFirst()) : text
        guard let open = state.open else {
            state.notice = ("no chat is open: Alt-g, or /find PHONE", true)
            return
        }
        guard !text.isEmpty else { return }
        let intent = state.intent
        state.intent = .new
        follow()
        perform { client in
            switch intent {
            case .new: try await client.send(text, to: open)
            case .reply(let message, _): try await client.send(text, to: open, replyingTo: message)
            case .edit(let message): try await client.edit(message, in: open, text: text)
            }
            if intent == .new { try await client.saveDraft("", in: open) }
        }
    }

    private func editOutside() {
        device?.edit(state.input.text) { [weak self] text in
            self?.later {
                if let text { $0.state.input.setText(text) }
                $0.draw()
            }
        }
    }

    private func complete() {
        guard let token = state.input.tokenBeforeCursor else { return }
        let candidates: [String]
        if token.isFirst, token.text.hasPrefix("/") {
            candidates = Self.commands.map { "/\($0)" }
        } else {
            candidates = state.chats.map(\.title)
        }
        let matching = candidates.filter { $0.lowercased().hasPrefix(token.text.lowercased()) }
        guard let first = matching.first else { return }
        if matching.count == 1 {
            _ = state.input.complete(token, with: first + " ")
        } else {
            state.notice = (matching.prefix(8).joined(separator: "  "), false)
        }
    }

    // MARK: - Commands

    private static let commands = [
        "add", "contacts", "date", "debug", "find", "help", "hide", "leave", "members", "mute",
        "name",
        "new", "new-channel", "pin", "quit", "remove", "search", "sessions", "theme", "title",
    ]

    private func command(_ line: String) {
        let parts = line.split(separator: " ", maxSplits: 1).map(String.init)
        let rest = parts.count > 1 ? parts[1].trimmingCharacters(in: .whitespaces) : ""
        switch parts.first {
        case "quit", "q": end(0)
        case "help": state.isHelpShown = true
        case "debug": state.frames = state.frames == nil ? [] : nil
        case "theme":
            state.theme = Theme.all.first { $0.name == rest } ?? state.theme
            device?.repaint()
        case "find": find(rest)
        case "new", "new-channel": create(rest, isChannel: parts.first == "new-channel")
        case "name":
            let names = rest.split(separator: " ", maxSplits: 1).map(String.init)
            guard let first = names.first else { return usage("/name FIRST LAST") }
            perform {
                try await $0.updateProfile(
                    firstName: first,
                    lastName: names.count > 1 ? names[1] : ""
                )
            }
        case "contacts":
            let names = (try? client.people().map(\.name)) ?? []
            state.notice = (
                names.isEmpty ? "no contacts yet" : names.joined(separator: ", "), false
            )
        case "sessions":
            perform { [weak self] client in
                let list = try await client.sessions().map { "\($0.client) (\($0.address))" }
                self?.say(list.joined(separator: " · "))
            }
        case "search": search(rest)
        case "date": goToDate(rest)
        default: chatCommand(parts.first ?? "", rest)
        }
    }

    private func chatCommand(_ name: String, _ rest: String) {
        guard let chat = state.openChat else {
            state.notice = ("no chat is open, or no such command: /help", true)
            return
        }
        let id = chat.id
        switch name {
        case "mute": perform { try await $0.mute(id, !chat.isMuted) }
        case "pin": perform { try await $0.pin(id, !chat.isPinned) }
        case "hide": perform { try await $0.hide(id) }
        case "leave": perform { try await $0.leave(id) }
        case "title": perform { try await $0.update(id, title: rest) }
        case "add", "remove":
            perform { client in
                let person = try await client.find(phone: rest)
                if name == "add" {
                    try await client.add([person.id], to: id)
                } else {
                    try await client.remove([person.id], from: id)
                }
            }
        case "members":
            perform { [weak self] client in
                let names = try await client.members(of: id).map(\.name)
                self?.say(names.joined(separator: ", "))
            }
        default: state.notice = ("no such command: /\(name)", true)
        }
    }

    private func usage(_ text: String) {
        state.notice = ("as in \(text)", true)
    }

    private func find(_ phone: String) {
        guard !phone.isEmpty else { return usage("/find +79990000002") }
        perform { [weak self] client in
            let person = try await client.find(phone: phone)
            guard let me = try client.me() else { return }
            self?.later {
                $0.open(.dialog(me, person.id))
                $0.say("\(person.name): write something to begin")
            }
        }
    }

    private func create(_ rest: String, isChannel: Bool) {
        let parts = rest.split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) }
        guard let title = parts.first, !title.isEmpty else {
            return usage("/new Friends, +79990000002, +79990000003")
        }
        perform { client in
            var members: [UserID] = []
            for phone in parts.dropFirst() {
                members.append(try await client.find(phone: phone).id)
            }
            try await client.createChat(title: title, members: members, isChannel: isChannel)
        }
    }

    private func search(_ words: String) {
        guard !words.isEmpty else { return usage("/search words") }
        let found = (try? client.search(words, in: state.open, count: 1)) ?? []
        let all = found.isEmpty ? (try? client.search(words, count: 1)) ?? [] : found
        guard let first = all.first, let message = first.row.message else {
            state.notice = ("nothing found on this device", false)
            return
        }
        if first.chat != state.open { open(first.chat) }
        state.focus = .messages
        go(to: message)
    }

    private func goToDate(_ text: String) {
        let formatter = DateFormatter()
        formatter.dateFormat = "yyyy-MM-dd"
        guard let date = formatter.date(from: text), let open = state.open else {
            return usage("/date 2026-11-23")
        }
        let time = Int64(date.timeIntervalSince1970 * 1000)
        let page = try? client.history(of: open, .time(time), count: 2)
        if let message = page?.rows.last?.message { go(to: message) }
    }
}
