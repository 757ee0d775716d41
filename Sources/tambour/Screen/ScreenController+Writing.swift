import TambourClient
import TambourProtocol
import TerminalKit

/// The input line.
extension ScreenController {
    func handleInput(_ press: KeyPress) {
        if state.keys.action(of: press, in: .line) == .editor { return editOutside() }
        if state.open == nil, state.input.isEmpty, chooseChat(press) { return }
        switch press {
        case KeyPress(.escape):
            if endCommand() { return }
            if state.suggestions != nil {
                state.suggestions = nil
            } else if state.intent != .new {
                cancelIntent()
            } else {
                chooseMessage()
            }
            return
        case KeyPress(.tab): return complete()
        case KeyPress(.up) where state.suggestions?.isHint == false:
            state.suggestions?.move(by: -1)
            return
        case KeyPress(.down) where state.suggestions?.isHint == false:
            state.suggestions?.move(by: 1)
            return
        default: break
        }
        state.input.width = ScreenView.inputWidth(of: display?.size.columns ?? 80)
        if press == KeyPress(.character("/")) { beginCommand() }
        let before = state.input
        switch state.input.handle(press) {
        case .submitted(let text):
            state.suggestions = nil
            // If the line cannot be sent, it stays in the input line, so that the user can change
            // it.
            if !submit(text) { state.input = before } else { endCommand() }
        case .limitReached: tellLimit(of: state.input)
        case .handled:
            // The user has erased the command, or has typed a second slash, so that the line is no
            // longer a command. The draft is restored, and a typed slash is inserted into it.
            if state.input.isEmpty || state.input.text == "//", endCommand() {
                if press == KeyPress(.character("/")) { _ = state.input.handle(press) }
            }
            replaceEmojiName(press)
            suggest()
            noteTyping()
            noteWriting()
        case .ignored: break
        }
    }

    /// Opens a chat on Up, Down or Enter. Called while no chat is open.
    private func chooseChat(_ press: KeyPress) -> Bool {
        let chats = state.shownChats
        guard let newest = chats.first else { return false }
        switch press.key {
        case .down, .up: open(newest.id)
        case .enter: open((chats.first { $0.unread > 0 && !$0.isMuted } ?? newest).id)
        default: return false
        }
        return true
    }

    /// Tells the user that the text does not fit into the line.
    func tellLimit(of line: LineEditor) {
        state.notice = (
            "there is room for \(line.limit) characters here, so nothing was inserted", true
        )
    }

    private func chooseMessage() {
        guard let row = rowToChoose else { return }
        state.selected = row.id
        state.focus = .messages
    }

    /// The message that Esc selects: the message that the user went to, or else the newest.
    var rowToChoose: HistoryRow? {
        let messages = state.rows.filter { $0.event == nil }
        let chosen = anchor == nil ? nil : messages.first { $0.id == state.selected }
        return chosen ?? messages.last
    }

    private func noteTyping() {
        guard let open = state.open, !state.input.isEmpty, !state.input.text.hasPrefix("/"),
            ContinuousClock.now - lastTyping > .seconds(4)
        else { return }
        lastTyping = .now
        client.typing(in: open)
    }

    private func cancelIntent() {
        if state.intent.isEdit { return endEdit() }
        state.intent = .new
        noteWriting()
    }

    // MARK: - Completing

    func suggest() {
        if let open = state.open, state.input.tokenBeforeCursor?.text.first == "@" {
            learnMembers(of: open)
        }
        state.suggestions = Suggestions(
            for: state.input,
            names: namesHere.values.sorted(),
            folders: state.folders.map(\.title)
        )
    }

    /// The people of the open chat whom the user can mention, as far as the screen knows them.
    var namesHere: [UserID: String] {
        state.open.flatMap { nameable[$0] } ?? [:]
    }

    private func complete() {
        if state.suggestions == nil { suggest() }
        guard let suggestions = state.suggestions, !suggestions.isHint else { return }
        let entry = suggestions.entries[suggestions.selected]
        _ = state.input.complete(suggestions.token, with: entry.text)
        suggest()
        noteWriting()
    }

    /// Replaces `:name:` with its emoji when the second colon is typed.
    private func replaceEmojiName(_ press: KeyPress) {
        guard press.key == .character(":"), let token = state.input.tokenBeforeCursor,
            token.text.count > 2, token.text.hasPrefix(":"),
            let emoji = Emoji.named(String(token.text.dropFirst().dropLast()))
        else { return }
        _ = state.input.complete(token, with: emoji)
    }

    /// Looks up in the data on this device whom the user can mention in a chat. In a dialog, this
    /// is the partner; in a group and in comments, the recent senders; in a channel, nobody.
    func learnWhoWrote(in chat: ChatID) {
        guard let me else { return }
        let areComments = state.comments?.id == chat
        if let partner = chat.isGroup || areComments ? nil : chat.partner(of: me), partner != me {
            learn([(partner, (try? client.person(partner))?.name ?? "")], in: chat)
        }
        guard areComments || chat.isGroup && !chat.isChannel else { return }
        fetch { client in
            let held = try client.history(of: chat, .newest, count: 200).rows
            return held.compactMap { row in row.sender.map { ($0, row.senderName) } }
        } then: { screen, people in
            screen.learn(people, in: chat)
        }
    }

    /// Asks the server for the members of a group, once for each group. Until the server answers,
    /// the screen offers only the recent senders.
    private func learnMembers(of chat: ChatID) {
        guard chat.isGroup, !chat.isChannel, state.connection == .online,
            rosters.insert(chat).inserted
        else { return }
        let client = client
        Task { [weak self] in
            let members = try? await client.roster(of: chat)
            self?.later { screen in
                guard let members else {
                    screen.rosters.remove(chat)
                    return
                }
                screen.learn(members.map { ($0.id, $0.person.name) }, in: chat)
                if screen.state.open == chat, screen.state.focus == .input { screen.suggest() }
                screen.draw()
            }
        }
    }

    /// Records the names of people in a chat.
    func learn(_ people: [(UserID, String)], in chat: ChatID) {
        for (user, name) in people where user != me && !name.isEmpty {
            nameable[chat, default: [:]][user] = name
        }
    }

    /// Returns the mentions in a text. Longer names match first, so `@Anna Lee` does not count as
    /// `@Anna`.
    static func mentions(in text: String, of people: [UserID: String]) -> [MessageSpan] {
        var found: [MessageSpan] = []
        let units = Array(text.utf16)
        let names = people.sorted {
            ($0.value.utf16.count, $0.key) > ($1.value.utf16.count, $1.key)
        }
        for (user, name) in names where !name.isEmpty {
            let wanted = Array("@\(name)".utf16)
            var start = 0
            while start + wanted.count <= units.count {
                let range = start..<start + wanted.count
                if units[range].elementsEqual(wanted),
                    !found.contains(where: { $0.range.overlaps(range) })
                {
                    found.append(MessageSpan(.mention(user), range))
                    start = range.upperBound
                } else {
                    start += 1
                }
            }
        }
        return found.sorted { $0.range.lowerBound < $1.range.lowerBound }
    }

    // MARK: - Sending

    /// - Returns: False if the line cannot be sent as it is.
    private func submit(_ text: String) -> Bool {
        if Writing.isCommand(text) {
            commandUnderWay = CommandUnderWay(line: text, chat: state.open)
            command(String(text.dropFirst()))
            commandUnderWay = nil
            return state.notice?.isError != true
        }
        let text = Writing.message(ofLine: text).trimmingNewlines
        guard let open = state.open else {
            let hint = state.keys.hint(.goToChat, "goes to one", before: ", ")
            state.notice = ("no chat is open: /find PHONE begins a chat\(hint)", true)
            return false
        }
        if state.isOpenGone {
            state.notice = ("you are no longer in \(state.openTitle), so nothing can be sent", true)
            return false
        }
        let written = Markdown(text)
        if state.intent.isEdit, !Client.fitsMessage(written.text) {
            let most = Client.maxMessageUnits
            let length = written.text.utf16.count
            state.notice = ("one message has room for \(most) characters, this has \(length)", true)
            return false
        }
        let spans = written.spans + Self.mentions(in: written.text, of: namesHere)
        state.newAfterMs = nil
        follow()
        if case .editScheduled(let message) = state.intent {
            changeScheduled(message, in: open, to: written.text, spans, source: text)
            return true
        }
        if case .edit(let row) = state.intent {
            endEdit()
            perform { try await $0.edit(row, in: open, text: written.text, formatted: spans) }
            return true
        }
        var answered: MessageID?
        if case .reply(let message, _) = state.intent { answered = message }
        state.intent = .new
        let sent = Client.Draft(text: text, replyTo: answered)
        discardDraft(in: open, bySending: sent) { [answered] client, draft in
            try await client.sendInParts(
                written.text,
                to: open,
                replyingTo: answered,
                formatted: spans,
                insteadOf: draft
            )
        }
        return true
    }

    private func editOutside() {
        // The completion runs on the queue before later keys are handled. Such keys therefore apply
        // to the edited text.
        display?.edit(state.input.text, maxBytes: 1 << 20) { [weak self] text in
            guard let self else { return }
            if let text {
                if !state.input.setText(text) { tellLimit(of: state.input) }
                suggest()
                noteWriting()
            } else {
                state.notice = ("the editor failed; the text is unchanged", true)
            }
            draw()
        }
    }
}
