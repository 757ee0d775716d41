import TambourClient
import TambourProtocol
import TerminalKit

/// Opens and fills panels, and handles the keys that all panels have.
extension ScreenController {
    func show(_ panel: Panel) {
        state.panel = panel
        state.focus = .panel
        state.suggestions = nil
        panelGeneration += 1
        fillPanel()
    }

    func closePanel() {
        state.panel = nil
        state.focus = .input
        panelGeneration += 1
    }

    /// Fills the open panel with items. Does nothing if the open panel is no longer of the given
    /// kind.
    ///
    /// - Parameter remark: A text about the state of the list.
    func fill(_ kind: Panel.Kind, with items: [Panel.Item], remark: String = "") {
        guard state.panel?.kind == kind else { return }
        state.panel?.fill(items, remark: remark)
    }

    /// Shows the items that match the panel's current query.
    func fillPanel() {
        guard let panel = state.panel else { return }
        switch panel.kind {
        case .goTo, .forward: fillGoTo()
        case .search(let chat): fillSearch(in: chat)
        default: if panel.query != nil { state.panel?.filter() }
        }
    }

    /// Starts a new search after a change of the query. The best match is selected.
    func queryChanged() {
        // Search results stay until new ones arrive.
        if state.panel?.kind.isSearch == false { state.panel?.items = [] }
        state.panel?.selected = 0
        fillPanel()
    }

    func handlePanel(_ press: KeyPress) {
        guard let panel = state.panel else {
            state.focus = .input
            return
        }
        let page = max(1, seen.panelRows)
        switch press {
        case KeyPress(.escape): closePanel()
        case KeyPress(.up): state.panel?.move(by: -1)
        case KeyPress(.down): state.panel?.move(by: 1)
        case KeyPress(.pageUp): state.panel?.move(by: -page)
        case KeyPress(.pageDown): state.panel?.move(by: page)
        case KeyPress(.enter): choose(panel)
        default:
            if act(press, in: panel) || panel.query == nil { return }
            let before = panel.query?.text
            _ = state.panel?.query?.handle(press)
            if state.panel?.query?.text != before { queryChanged() }
        }
    }

    /// Handles Enter in a panel.
    private func choose(_ panel: Panel) {
        if case .search = panel.kind { return chooseHit(panel) }
        guard let item = panel.selectedItem else { return }
        switch (item.target, panel.kind) {
        case (.chat(let chat), .forward(let message, let source)):
            closePanel()
            perform { try await $0.forward(message, of: source, to: chat) }
            open(chat, name: item.title)
        case (.chat(let chat), _):
            closePanel()
            open(chat, name: item.title)
        case (.message(let message, let chat), _):
            closePanel()
            go(to: message, in: chat)
        case (.entry(let row, let message, let chat), _):
            closePanel()
            if let message { go(to: message, in: chat) } else { goToWaiting(row) }
        case (.person(let user), .blocked): change(user, .unblock, "unblocked \(item.title)")
        case (.person(let user), _), (.member(let user, _), _):
            guard let me else { return }
            closePanel()
            open(.dialog(me, user), name: item.title)
        case (.emoji(let emoji), .reactions(let message, let chat)):
            closePanel()
            perform { try await $0.react(emoji, to: message, in: chat) }
        case (.invitation(let link), _):
            closePanel()
            join(link)
        case (.option(let name, let isOn), .options(let chat)): set(name, !isOn, of: chat)
        case (.folder(let folder), _):
            closePanel()
            showFolder(folder)
        case (.scheduled(let id), _):
            if let message = state.scheduled.first(where: { $0.id == id }) {
                editScheduled(message)
            }
        case (.answer(let answer), .poll(let message, let chat)): vote(answer, message, chat)
        case (.link(let address), _):
            closePanel()
            browse(address)
        default: break
        }
    }

    /// Handles the keys of the actions that only this panel has. The keys are letters. In a panel
    /// with a search field, they are Alt and a letter.
    ///
    /// - Returns: Whether the panel has handled the key.
    private func act(_ press: KeyPress, in panel: Panel) -> Bool {
        if case .goTo = panel.kind { return actOnChat(press, panel) }
        let press = press.onLatinKeyboard
        guard case .character(let letter) = press.key else { return false }
        let wanted: KeyPress.Modifiers = panel.query == nil ? [] : .alt
        guard press.modifiers.subtracting(.shift) == wanted else { return false }
        switch panel.kind {
        case .contacts: return actOnContact(letter, panel)
        case .members(let chat): return actOnMember(letter, chat, panel)
        case .profile: return actOnProfile(letter)
        case .sessions: return actOnSessions(letter, panel)
        case .queue: return actOnQueue(letter, panel)
        case .folders: return actOnFolder(letter, panel)
        case .scheduled(let chat): return actOnScheduled(letter, chat, panel)
        case .links:
            guard letter == "y", case .link(let address)? = panel.selectedItem?.target else {
                return false
            }
            closePanel()
            _ = display?.copy(address)
            state.notice = ("copied", false)
            return true
        default: return false
        }
    }

    // MARK: - Chats

    func openGoTo() {
        show(
            Panel(
                kind: .goTo,
                title: "Go to",
                query: LineEditor(limit: 100),
                keys: state.keys.hint(.mute, "mute", after: "  ") + state.keys.hint(.pin, "pin")
            )
        )
    }

    func openForward(_ message: MessageID, from chat: ChatID) {
        show(
            Panel(
                kind: .forward(message, from: chat),
                title: "Forward to",
                query: LineEditor(limit: 100),
                keys: ""
            )
        )
    }

    private func fillGoTo() {
        guard let kind = state.panel?.kind else { return }
        // Users cannot forward messages to chats that they are no longer in.
        let chats = kind == .goTo ? state.chats : state.chats.filter { !$0.isGone }
        let items = chats.map { chat in
            let unread = chat.unread > 0 ? "\(chat.unread)" : ""
            return Panel.Item(
                title: chat.title,
                right: chat.isMuted ? "\(unread)m" : unread,
                target: .chat(chat.id)
            )
        }
        fill(kind, with: items)
    }

    private func actOnChat(_ press: KeyPress, _ panel: Panel) -> Bool {
        guard case .chat(let id)? = panel.selectedItem?.target,
            let chat = state.chats.first(where: { $0.id == id })
        else { return false }
        switch state.keys.action(of: press, in: .chat) {
        case .mute: toggleMute(chat)
        case .pin: togglePin(chat)
        default: return false
        }
        return true
    }

    func toggleMute(_ chat: ChatSummary) {
        perform { try await $0.mute(chat.id, !chat.isMuted) }
        state.notice = ("\(chat.title) \(chat.isMuted ? "alerts again" : "is muted")", false)
    }

    func togglePin(_ chat: ChatSummary) {
        perform { try await $0.pin(chat.id, !chat.isPinned) }
        let end = chat.isPinned ? "is not pinned any more" : "is pinned to the top"
        state.notice = ("\(chat.title) \(end)", false)
    }

    // MARK: - Messages

    func openMentions() {
        show(Panel(kind: .mentions, title: "Where you were named", keys: ""))
        state.panel?.load("looking…")
        fetch {
            try $0.mentions()
        } then: { screen, found in
            let remark = found.isEmpty ? "nobody has named you, in what is on this device" : ""
            screen.fill(.mentions, with: found.map { $0.item }, remark: remark)
        }
    }

    func openLinks() {
        let links = state.rows.reversed().flatMap { row in
            Links.addresses(of: row).map { address in
                Panel.Item(
                    title: address,
                    detail: "\(row.senderName), \(clock(row.timeMs))",
                    target: .link(address)
                )
            }
        }
        show(Panel(kind: .links, title: "Links", keys: "y copy"))
        fill(.links, with: links, remark: links.isEmpty ? "there are none in these messages" : "")
    }

    func openReactions(to message: MessageID, in chat: ChatID) {
        show(
            Panel(
                kind: .reactions(message, in: chat),
                title: "React",
                query: LineEditor(limit: 40),
                keys: ""
            )
        )
        let items = Emoji.all.map { entry in
            Panel.Item(title: entry.name, right: entry.emoji, target: .emoji(entry.emoji))
        }
        fill(.reactions(message, in: chat), with: items)
    }

    // MARK: - Sessions and the queue

    func openSessions() {
        show(Panel(kind: .sessions, title: "Signed in", keys: "x sign this one out  o all others"))
        state.panel?.load("asking the server…")
        fillSessions()
    }

    private func fillSessions() {
        let client = client
        Task { [weak self] in
            let result = try? await client.sessions()
            self?.later { screen in
                let items = (result ?? []).map { device in
                    Panel.Item(
                        title: device.client + (device.isCurrent ? "  (this one)" : ""),
                        detail: "\(device.device)  \(device.address)",
                        right: clock(device.seenMs),
                        target: .device(device.id, isCurrent: device.isCurrent)
                    )
                }
                let remark = result == nil ? "the server cannot be asked now" : ""
                screen.fill(.sessions, with: items, remark: remark)
                screen.draw()
            }
        }
    }

    private func actOnSessions(_ letter: Unicode.Scalar, _ panel: Panel) -> Bool {
        switch letter {
        case "x":
            guard let item = panel.selectedItem, case .device(let id, let isCurrent) = item.target
            else { return false }
            guard let id, !isCurrent else {
                state.notice = (
                    "this is the device that you use; `tambour logout` signs it out", true
                )
                return true
            }
            confirm("Sign out \(item.title)?") { screen in
                screen.closeSessions("signed out there") { try await $0.closeSession(id) }
            }
        case "o":
            confirm("Sign out everywhere but here?") { screen in
                screen.closeSessions("signed out everywhere else") {
                    try await $0.closeOtherSessions()
                }
            }
        default: return false
        }
        return true
    }

    private func closeSessions(
        _ notice: String,
        _ close: @escaping @Sendable (Client) async throws -> Void
    ) {
        fetch {
            try await close($0)
        } then: { screen, _ in
            screen.state.notice = (notice, false)
            screen.fillSessions()
        }
    }

    func openQueue() {
        show(Panel(kind: .queue, title: "Waiting to be done", keys: "x cancel  r try again"))
        fillQueue()
    }

    func fillQueue() {
        fetch {
            try $0.waiting()
        } then: { screen, waiting in
            let items = waiting.map { $0.item }
            screen.fill(.queue, with: items, remark: items.isEmpty ? "nothing waits" : "")
        }
    }

    private func actOnQueue(_ letter: Unicode.Scalar, _ panel: Panel) -> Bool {
        guard case .waiting(let id, let isRefused)? = panel.selectedItem?.target else {
            return false
        }
        switch letter {
        case "x":
            perform { try await $0.cancel(id) }
            state.panel?.remove(.waiting(id, isRefused: isRefused))
        case "r" where isRefused: perform { try await $0.retry(id) }
        case "r": state.notice = ("it is tried as soon as there is a connection", false)
        default: return false
        }
        return true
    }
}

extension Client.Found {
    /// The search result as a panel item.
    var item: Panel.Item {
        Panel.Item(
            title: row.senderName == chatTitle ? chatTitle : "\(row.senderName) · \(chatTitle)",
            detail: row.event ?? ([row.text] + row.attachments).joined(separator: " "),
            right: clock(row.timeMs),
            target: row.message.map { .message($0, in: chat) } ?? .none
        )
    }
}

extension Client.Waiting {
    /// The queued action as a panel item.
    var item: Panel.Item {
        let what =
            switch kind {
            case .message(let text): "message “\(text)”"
            case .scheduling(let text): "message for later “\(text)”"
            case .rescheduling: "change of a scheduled message"
            case .comment(let text): "comment “\(text)”"
            case .forward: "forwarded message"
            case .edit(let text): "edit “\(text)”"
            case .deletion: "deletion"
            case .readMark: "read mark"
            case .reaction: "reaction"
            case .vote: "vote"
            case .draft: "draft"
            case .newChat(let title): "new chat “\(title)”"
            case .chat: "change of the chat"
            case .contact: "change of a contact"
            case .profile: "change of the profile"
            case .folder: "change of a folder"
            case .other(let name): name
            }
        return Panel.Item(
            title: [what.oneLine, chatTitle.map { "in \($0)" } ?? ""].filter { !$0.isEmpty }
                .joined(separator: " "),
            detail: failure.map { "refused: \($0)" } ?? "waits for the server",
            right: clock(sinceMs),
            target: .waiting(id, isRefused: failure != nil),
            isError: failure != nil
        )
    }
}
