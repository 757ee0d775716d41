import TambourClient
import TambourProtocol
import TerminalKit

/// Drafts of messages. The screen stores a draft while the user types, and shows changes of the
/// draft from other devices.
extension ScreenController {
    /// The draft in the input line; nil if the line contains a command. During an edit, the draft
    /// that was put aside when the edit began.
    private var draft: Client.Draft? {
        if state.intent.isEdit {
            return Self.draft(writing.aside.line.text, writing.aside.intent)
        }
        return Self.draft(state.input.text, state.intent)
    }

    private static func draft(_ line: String, _ intent: ScreenState.Intent) -> Client.Draft? {
        guard !Writing.isCommand(line) else { return nil }
        var answered: MessageID?
        if case .reply(let message, _) = intent { answered = message }
        return Client.Draft(text: Writing.message(ofLine: line), replyTo: answered)
    }

    /// Whether the user has not changed the line since a draft was loaded into it.
    private var isUntouched: Bool {
        // A user who has just chosen a message to reply to is about to write, so the line counts as
        // changed.
        if case .reply = state.intent, state.input.isEmpty { return false }
        return draft == writing.shown
    }

    // MARK: - Storing

    /// Records that the user has changed the line. The draft is stored when the user pauses.
    func noteWriting() {
        writing.keys += 1
        let keys = writing.keys
        after(Writing.pause) { screen in
            if screen.writing.keys == keys { screen.keepDraft() }
        }
    }

    /// Stores the draft if the user has changed it.
    func keepDraft() {
        guard let chat = state.open, let draft else { return }
        guard draft != writing.shown else { return takeDraft() }
        let known = writing.stored
        store(draft, in: chat) { client in
            if draft == .empty {
                try await client.discardDraft(known, in: chat)
            } else {
                try await client.saveDraft(draft.text, in: chat, replyingTo: draft.replyTo)
            }
        }
    }

    /// Sends the line and discards the stored draft of the chat.
    ///
    /// - Parameter sent: The contents of the line. They are restored if the message cannot be
    ///   stored.
    func discardDraft(
        in chat: ChatID,
        bySending sent: Client.Draft,
        _ send: @escaping @Sendable (Client, Client.Draft) async throws -> Void
    ) {
        let known = writing.stored
        store(.empty, orElse: sent, in: chat) { client in try await send(client, known) }
    }

    /// Treats `draft` as the stored draft of the chat from now on, and runs `wish`, which stores
    /// it.
    ///
    /// - Parameter lost: The draft to put back into the line if storing fails and the line is still
    ///   empty.
    private func store(
        _ draft: Client.Draft,
        orElse lost: Client.Draft = .empty,
        in chat: ChatID,
        by wish: @escaping @Sendable (Client) async throws -> Void
    ) {
        let known = writing.stored
        writing.stored = draft
        writing.shown = draft
        writing.generation += 1
        let generation = writing.generation
        writing.unstored[chat] = (draft, generation)
        perform { [weak self] client in
            do {
                try await wish(client)
                self?.later { $0.stored(generation, in: chat) }
            } catch {
                self?.later { $0.notStored(generation, lost, instead: known, in: chat) }
                throw error
            }
        }
    }

    private func stored(_ generation: Int, in chat: ChatID) {
        if writing.unstored[chat]?.generation == generation { writing.unstored[chat] = nil }
        takeDraft()
    }

    /// Records that storing has failed. The line then counts as changed, and no older draft
    /// replaces it.
    private func notStored(
        _ generation: Int,
        _ lost: Client.Draft,
        instead known: Client.Draft,
        in chat: ChatID
    ) {
        guard writing.generation == generation, state.open == chat else { return }
        writing.unstored[chat] = nil
        if state.input.isEmpty, state.intent == .new { show(lost, of: chat) }
        writing.stored = known
        writing.shown = known
    }

    // MARK: - Showing

    /// Prepares the line for opening another chat: stores the draft of the open chat, and keeps an
    /// unfinished edit in memory.
    func leaveLine() {
        keepDraft()
        guard let chat = state.open else { return }
        if state.intent.isEdit {
            writing.edits[chat] = Writing.Edit(
                intent: state.intent,
                line: state.input.draft,
                aside: writing.aside
            )
        }
    }

    /// Shows the draft of a chat that opens, or resumes an unfinished edit.
    func arriveAtLine(of chat: ChatID) {
        writing.generation += 1
        writing.underCommand = nil
        let draft = writing.unstored[chat]?.draft ?? (try? client.draft(in: chat)) ?? .empty
        show(draft, of: chat)
        guard let edit = writing.edits.removeValue(forKey: chat) else { return }
        if Self.draft(edit.aside.line.text, edit.aside.intent) == draft {
            writing.aside = edit.aside
        } else {
            writing.aside = Writing.Aside(line: state.input.draft, intent: state.intent)
        }
        state.intent = edit.intent
        state.input.load(edit.line)
    }

    private func show(_ draft: Client.Draft, of chat: ChatID) {
        let text = Writing.line(ofMessage: draft.text)
        state.input.load(LineEditor.Draft(text: text, cursor: text.count))
        state.intent = intent(of: draft, in: chat)
        writing.stored = draft
        // The input line removes or replaces control characters. Its text may therefore differ from
        // the stored draft.
        writing.shown = Self.draft(state.input.text, state.intent) ?? .empty
    }

    private func intent(of draft: Client.Draft, in chat: ChatID) -> ScreenState.Intent {
        guard let message = draft.replyTo else { return .new }
        return .reply(message, quote: quote(of: message, in: chat))
    }

    /// Returns the quote of a message to show above the line; "…" if the message is unknown or
    /// deleted.
    private func quote(of message: MessageID, in chat: ChatID) -> String {
        let page = try? client.history(of: chat, .around(message), count: 1)
        let row = page?.rows.first { $0.message == message }
        return row.map { "\($0.senderName): \($0.text)" } ?? "…"
    }

    /// Updates the quote above the line after a change of messages.
    func updateQuote() {
        guard let chat = state.open, case .reply(let message, _) = state.intent else { return }
        state.intent = .reply(message, quote: quote(of: message, in: chat))
    }

    /// Shows a change of the draft from another device, if the user has not changed the line.
    func takeDraft() {
        guard let chat = state.open else { return }
        let generation = writing.generation
        // Runs after the pending writes to the store.
        perform { [weak self] client in
            let draft = try client.draft(in: chat)
            self?.later { $0.take(draft, of: chat, generation) }
        }
    }

    private func take(_ draft: Client.Draft, of chat: ChatID, _ generation: Int) {
        guard chat == state.open, generation == writing.generation, draft != writing.stored,
            isUntouched
        else { return }
        if state.intent.isEdit {
            let (line, intent) = (state.input, state.intent)
            show(draft, of: chat)
            writing.aside = Writing.Aside(line: state.input.draft, intent: state.intent)
            (state.input, state.intent) = (line, intent)
        } else {
            show(draft, of: chat)
            state.suggestions = nil
        }
        draw()
    }

    // MARK: - Commands beside a draft

    /// Puts a loaded draft aside, because the slash that the user types begins a command.
    func beginCommand() {
        guard state.open != nil, !state.input.isEmpty, !state.intent.isEdit, isUntouched,
            state.input.cursor == state.input.clusters.count
        else { return }
        writing.underCommand = Writing.Aside(line: state.input.draft, intent: state.intent)
        state.input.load(.empty)
        state.intent = .new
    }

    /// Restores the draft that a command replaced.
    ///
    /// - Returns: Whether a draft was restored.
    @discardableResult
    func endCommand() -> Bool {
        guard let aside = writing.underCommand else { return false }
        writing.underCommand = nil
        state.input.load(aside.line)
        state.intent = aside.intent
        state.suggestions = nil
        takeDraft()
        return true
    }

    /// Puts a refused command back into the line. If the line contains a draft that the user has
    /// not changed, puts the draft aside first. Does nothing if the user has begun to write
    /// something else.
    func returnCommand(_ line: String) {
        // The user is typing another command, which cannot be put aside as a draft.
        guard !Writing.isCommand(state.input.text) else { return }
        beginCommand()
        if state.input.isEmpty, state.intent == .new { state.input.setText(line) }
    }

    // MARK: - Editing a message

    /// Puts the text in the line aside, and loads a message into the line for editing.
    func beginEdit(_ intent: ScreenState.Intent, text: String) {
        if !state.intent.isEdit {
            writing.aside = Writing.Aside(line: state.input.draft, intent: state.intent)
        }
        state.intent = intent
        state.input.load(.empty)
        state.input.setText(Writing.line(ofMessage: text))
        state.suggestions = nil
        keepDraft()
    }

    /// Restores the text that was put aside when the edit began.
    func endEdit() {
        state.input.load(writing.aside.line)
        state.intent = writing.aside.intent
        writing.aside = Writing.Aside()
    }
}
