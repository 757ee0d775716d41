import TambourClient
import TambourProtocol

/// The input line.
extension ScreenController {
    func handleInput(_ press: KeyPress) {
        switch press {
        case KeyPress(.escape):
            if state.suggestions != nil {
                state.suggestions = nil
            } else if state.intent != .new {
                cancelIntent()
            } else {
                chooseMessage()
            }
            return
        case .alt("e"): return editOutside()
        case KeyPress(.tab): return complete()
        case KeyPress(.up) where state.suggestions?.isHint == false:
            state.suggestions?.move(by: -1)
            return
        case KeyPress(.down) where state.suggestions?.isHint == false:
            state.suggestions?.move(by: 1)
            return
        default: break
        }
        state.input.width = max(1, paneWidth - 1)
        switch state.input.handle(press) {
        case .submitted(let text):
            state.suggestions = nil
            submit(text)
        case .limitReached: tellLimit()
        case .handled:
            replaceEmojiName(press)
            suggest()
            noteTyping()
        case .ignored: break
        }
    }

    func tellLimit() {
        state.notice = ("a message has at most \(state.input.limit) characters", true)
    }

    private func chooseMessage() {
        guard let last = state.rows.last(where: { $0.event == nil }) else { return }
        let isShown = state.rows.contains { $0.id == state.selected && $0.event == nil }
        // Where somebody has gone to is where they go on.
        if anchor == nil || !isShown { state.selected = last.id }
        state.focus = .messages
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

    // MARK: - Completing

    func suggest() {
        state.suggestions = Suggestions(
            for: state.input,
            names: nameable.values.sorted()
        )
    }

    private func complete() {
        if state.suggestions == nil { suggest() }
        guard let suggestions = state.suggestions, !suggestions.isHint else { return }
        let entry = suggestions.entries[suggestions.selected]
        _ = state.input.complete(suggestions.token, with: entry.text)
        suggest()
    }

    /// A name between colons becomes its emoji with the second colon.
    private func replaceEmojiName(_ press: KeyPress) {
        guard press.key == .character(":"), let token = state.input.tokenBeforeCursor,
            token.text.count > 2, token.text.hasPrefix(":"),
            let emoji = Emoji.named(String(token.text.dropFirst().dropLast()))
        else { return }
        _ = state.input.complete(token, with: emoji)
    }

    /// Who can be named in a chat: those who wrote there, the partner, members as far as they are told.
    func learnNames(in chat: ChatID) {
        nameable = [:]
        guard let me else { return }
        if let partner = chat.isGroup ? nil : chat.partner(of: me), partner != me {
            nameable[partner] = (try? client.person(partner))?.name
        }
        guard chat.isGroup, !chat.isChannel else { return }
        fetch { client in
            let held = try client.history(of: chat, .newest, count: 200).rows
            let senders = held.compactMap { row in row.sender.map { ($0, row.senderName) } }
            // Offline those who wrote will do.
            let members = try? await client.roster(of: chat)
            return senders + (members ?? []).map { ($0.id, $0.person.name) }
        } then: { screen, people in
            guard screen.state.open == chat else { return }
            for (user, name) in people where user != screen.me { screen.nameable[user] = name }
        }
    }

    /// Who a text names, longer names first: `@Anna Lee` is not `@Anna`.
    static func mentions(in text: String, of people: [UserID: String]) -> [Client.Mention] {
        var found: [Client.Mention] = []
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
                    found.append(Client.Mention(user: user, range: range))
                    start = range.upperBound
                } else {
                    start += 1
                }
            }
        }
        return found.sorted { $0.range.lowerBound < $1.range.lowerBound }
    }

    // MARK: - Sending

    private func submit(_ text: String) {
        if text.hasPrefix("/"), !text.hasPrefix("//") { return command(String(text.dropFirst())) }
        let text = text.hasPrefix("//") ? String(text.dropFirst()) : text
        guard let open = state.open else {
            state.notice = ("no chat is open: Alt-g, or /find PHONE", true)
            return
        }
        let intent = state.intent
        state.intent = .new
        state.newAfterMs = nil
        follow()
        let mentions = Self.mentions(in: text, of: nameable)
        perform { client in
            switch intent {
            case .new: try await client.send(text, to: open, mentioning: mentions)
            case .reply(let message, _):
                try await client.send(text, to: open, replyingTo: message, mentioning: mentions)
            case .edit(let message): try await client.edit(message, in: open, text: text)
            }
            if intent == .new { try await client.saveDraft("", in: open) }
        }
    }

    private func editOutside() {
        display?.edit(state.input.text, maxBytes: 1 << 20) { [weak self] text in
            self?.later {
                if let text {
                    if !$0.state.input.setText(text) { $0.tellLimit() }
                } else {
                    $0.state.notice = ("the editor failed: the text is as it was", true)
                }
                $0.draw()
            }
        }
    }
}
