import TambourClient
import TambourProtocol
import TerminalKit

/// Dispatches input to the part of the screen that has the focus.
extension ScreenController {
    func handle(_ event: InputEvent) {
        switch event {
        case .paste(let text):
            state.notice = nil
            paste(text)
        case .key(let press):
            state.notice = nil
            if case .connecting = state.connection { client.hurry() }
            if handleAlways(press) { return }
            if state.help != nil, handleHelp(press) { return }
            if state.frames != nil, press == KeyPress(.escape) {
                state.frames = nil
                return
            }
            switch state.focus {
            case .prompt: handlePrompt(press)
            case .panel: handlePanel(press)
            case .input: if !handleEverywhere(press) { handleInput(press) }
            case .messages: if !handleEverywhere(press) { handleMessages(press) }
            }
        case .mouse(let mouse):
            if mouse.action == .wheelUp { scroll(by: 3) }
            if mouse.action == .wheelDown { scroll(by: -3) }
            if mouse.isClick { click(at: mouse.position) }
        case .focusGained:
            isLookedAt = true
            lookAgain()
        case .focusLost: isLookedAt = false
        }
    }

    /// Opens the chat or selects the item under the mouse. If the item of a panel is already
    /// selected, the click acts like Enter.
    private func click(at position: TerminalKit.Position) {
        state.notice = nil
        switch seen.target(at: position) {
        case .chat(let chat)?: open(chat)
        case .message(let row)?:
            state.selected = row
            state.focus = .messages
        case .item(let index)?:
            if state.panel?.selected == index { return handlePanel(KeyPress(.enter)) }
            state.panel?.selected = index
        case .input?: state.focus = .input
        case .folders?: openFolders()
        case .pinned(let message)?: if let open = state.open { go(to: message, in: open) }
        case .nothing?, nil: break
        }
    }

    /// Inserts pasted text into the focused text field. Pasting never sends a message.
    private func paste(_ text: String) {
        switch state.focus {
        case .messages: break
        case .input:
            if state.input.paste(text) == .limitReached { tellLimit(of: state.input) }
            suggest()
            noteWriting()
        case .prompt:
            if state.prompt?.editor.paste(text.oneLine) == .limitReached {
                tellLimit(of: state.prompt?.editor ?? LineEditor())
            }
        case .panel:
            if state.panel?.query?.paste(text.oneLine) == .limitReached {
                tellLimit(of: state.panel?.query ?? LineEditor())
            }
            queryChanged()
        }
    }

    private func handleAlways(_ press: KeyPress) -> Bool {
        if press == .control("c") {
            tellHowToLeave()
            return true
        }
        switch state.keys.action(of: press, in: .always) {
        case .leave: end(0)
        case .suspend: display?.suspend()
        case .redraw: display?.repaint()
        case .help: state.help = state.help == nil ? 0 : nil
        default: return false
        }
        return true
    }

    private func handleEverywhere(_ press: KeyPress) -> Bool {
        switch state.keys.action(of: press, in: .chat) {
        case .goToChat: openGoTo()
        case .nextUnread: goToNextUnread()
        case .firstUnread: goToFirstUnread()
        case .back: goBack()
        case .forward: goForward()
        case .searchChat: if let open = state.open { openSearch(in: open) }
        case .search: openSearch(in: nil)
        case .mentions: openMentions()
        case .contacts: openContacts()
        case .queue: openQueue()
        case .folders: openFolders()
        case .mute: if let chat = state.openChat { toggleMute(chat) }
        case .pin: if let chat = state.openChat { togglePin(chat) }
        case .chatAbove: goToNeighbour(-1)
        case .chatBelow: goToNeighbour(1)
        case .scrollUp: scroll(by: max(1, seen.paneRows - 2))
        case .scrollDown: scroll(by: -max(1, seen.paneRows - 2))
        case .newest: follow()
        default: return false
        }
        return true
    }

    /// - Returns: Whether the key was handled. If the key is a letter, closes the help and returns
    ///   false, so that the letter is handled as usual.
    private func handleHelp(_ press: KeyPress) -> Bool {
        let page = max(1, (display?.size.rows ?? 24) - 4)
        let last = max(0, Help.lines(state.keys).count - page)
        let line = state.help ?? 0
        switch press.key {
        case .up: state.help = max(0, line - 1)
        case .down: state.help = min(last, line + 1)
        case .pageUp: state.help = max(0, line - page)
        case .pageDown, .character(" "): state.help = min(last, line + page)
        case .character:
            state.help = nil
            return false
        default: state.help = nil
        }
        return true
    }

    // MARK: - Questions

    /// Asks the user for a line of text.
    func ask(
        _ question: String,
        _ text: String = "",
        emptyMeans: String? = nil,
        isSecret: Bool = false,
        then answer: @escaping (ScreenController, String) -> Void
    ) {
        var prompt = Prompt(
            question: question,
            isSecret: isSecret,
            emptyMeans: emptyMeans,
            answer: answer
        )
        prompt.editor.setText(text)
        show(prompt)
    }

    /// Asks the user to confirm an action, and runs `answer` after a yes.
    func confirm(_ question: String, then answer: @escaping (ScreenController) -> Void) {
        show(
            Prompt(question: "\(question) (y/n)", isYesOrNo: true) { screen, _ in
                answer(screen)
            }
        )
    }

    private func show(_ prompt: Prompt) {
        var prompt = prompt
        if state.focus != .prompt { prompt.focusBefore = state.focus }
        state.prompt = prompt
        state.focus = .prompt
    }

    private func handlePrompt(_ press: KeyPress) {
        guard let prompt = state.prompt else {
            state.focus = .input
            return
        }
        if prompt.isYesOrNo {
            switch press.onLatinKeyboard.key {
            case .character("y"), .character("Y"):
                closePrompt()
                prompt.answer(self, "y")
            case .character("n"), .character("N"), .escape: closePrompt()
            // Ignores other keys, because the user may still be typing a text when the question
            // appears.
            default: break
            }
            return
        }
        switch press.key {
        case .escape: closePrompt()
        case .enter:
            // White space at the start and end of a password is part of the password.
            let text = prompt.isSecret ? prompt.editor.text : prompt.editor.text.trimmed
            guard !text.isEmpty || prompt.emptyMeans != nil else { return closePrompt() }
            closePrompt()
            prompt.answer(self, text.isEmpty ? prompt.emptyMeans ?? "" : text)
        default: _ = state.prompt?.editor.handle(press)
        }
    }

    private func closePrompt() {
        let before = state.prompt?.focusBefore ?? .input
        state.prompt = nil
        // The panel under the question may have been closed or replaced.
        state.focus = state.panel != nil ? .panel : before == .messages ? .messages : .input
    }
}

extension String {
    /// The text without line breaks at its start and end. A text that consists only of line breaks
    /// is unchanged.
    var trimmingNewlines: String {
        guard let last = lastIndex(where: { !$0.isNewline }) else { return self }
        return String(self[...last].drop { $0.isNewline })
    }

    /// The text without white space at its start and end.
    var trimmed: String {
        let start = drop { $0.isWhitespace }
        return String(
            start[
                ..<(start.lastIndex { !$0.isWhitespace }.map { start.index(after: $0) }
                    ?? start.startIndex)
            ]
        )
    }
}
