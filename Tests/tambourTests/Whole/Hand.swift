import TambourClient
import TambourProtocol
import TambourTesting

@testable import TerminalKit
@testable import tambour

/// A person's hand at a device. The hand looks at the screen to decide which key to press next.
struct Hand {
    let play: ScreenPlay
    let device: PlayDevice

    var isOffline: Bool { device.isOffline || play.isServerDown }

    // MARK: - Chance

    func chance(_ percent: Int) -> Bool { play.random.chance(percent) }

    func below(_ bound: Int) -> Int { play.random.below(bound) }

    func pick<Value>(_ values: [Value]) -> Value { play.random.pick(values) }

    /// Returns a person who is not the owner of the device.
    func other() -> ScreenPlay.Person {
        pick(play.people.indices.filter { $0 != device.owner }.map { play.people[$0] })
    }

    /// Returns a text that no other message contains.
    func text() -> String { "\(device.name)#\(play.nextNumber()) \(pick(Self.texts))" }

    private static let texts = [
        "hello",
        "a longer text that needs more than one line of the pane, because it has many words",
        "see https://example.org/a?b=c now", "**bold** and _italic_ with `code`", "> quoted words",
        "שלום, what is new?", "👩‍👩‍👧 family 👍", "日本語 text", "# title", "@Bob look", "@Alice look",
        "[a link](https://example.com)", "~~gone~~ __under__",
    ]

    // MARK: - Keys

    func press(_ keys: KeyPress...) { device.press(keys) }

    func type(_ text: String) { device.type(text) }

    func look<Value>(_ body: (ScreenState) -> Value) -> Value { device.look(body) }

    func until(_ what: String, _ holds: (ScreenState) -> Bool) async throws {
        try await device.until(what, holds)
    }

    /// Closes everything that covers the chat, and returns to the input line.
    func goToLine() {
        while true {
            let (isCovered, focus) = look { ($0.help != nil || $0.frames != nil, $0.focus) }
            if isCovered || focus == .panel || focus == .prompt {
                press(KeyPress(.escape))
            } else if focus == .messages {
                press(KeyPress(.enter))
            } else {
                return
            }
        }
    }

    /// Goes to the input line. If the user edits a message, ends the edit.
    func endEdit() {
        goToLine()
        for _ in 0..<4 where look(\.intent.isEdit) { press(KeyPress(.escape)) }
        goToLine()
    }

    /// Deletes the text in the input line.
    func clearLine() {
        endEdit()
        for _ in 0..<400 where !look(\.input.isEmpty) {
            press(.alt(">"), .control("u"), KeyPress(.backspace))
        }
    }

    /// Enters a command. Sometimes the input line contains a draft at this time.
    func command(_ line: String) async {
        endEdit()
        if chance(50) {
            device.passTime()
            await device.waitForWishes()
        } else {
            clearLine()
        }
        type("/")
        if look(\.input.text) != "/" {
            clearLine()
            type("/")
        }
        type("\(line)\n")
    }

    /// Writes a text and sends it. Sometimes the line still contains a draft. The hand then sends
    /// draft and text together.
    func say(_ text: String) async {
        endEdit()
        if chance(70) { clearLine() }
        if chance(20) {
            device.tell([.paste(text)])
        } else {
            type(text)
        }
        press(KeyPress(.enter))
    }

    // MARK: - Chats

    /// Opens one of the chats in the list for which `fits` returns true.
    ///
    /// - Returns: The chat; nil if no chat fits, or if the chat has left the list.
    @discardableResult
    func open(where fits: (ChatSummary) -> Bool = { !$0.isGone }) async throws -> ChatSummary? {
        goToLine()
        let chats = look(\.chats).filter(fits)
        guard !chats.isEmpty else { return nil }
        let chat = pick(chats)
        try await open(chat)
        return look(\.open) == chat.id ? chat : nil
    }

    func open(_ chat: ChatSummary) async throws {
        guard look(\.open) != chat.id else { return }
        press(.alt("g"))
        // The user can only paste some characters of a title, and cannot type them.
        device.tell([.paste(chat.title)])
        choose { $0 == .chat(chat.id) }
        if look({ $0.panel != nil }) { press(KeyPress(.escape)) }
        guard look(\.open) == chat.id else { return }
        try await device.waitForReading()
    }

    /// Opens a chat if no chat is open. Sometimes opens another chat.
    func openSome() async throws {
        if look(\.open) == nil || look(\.isOpenGone) || chance(40) { try await open() }
    }

    /// Opens a group or channel that the account belongs to.
    ///
    /// - Returns: Whether there is such a chat.
    func openShared() async throws -> Bool {
        if let open = look(\.openChat), open.id.isGroup, !open.isGone, chance(60) { return true }
        return try await open { $0.id.isGroup && !$0.isGone } != nil
    }

    /// Opens the saved messages. A test can then see when another chat opens.
    func openSaved() async throws {
        await command("saved")
        try await device.waitForReading()
    }

    /// Waits until the screen shows a question, a notice, or a chat other than the saved messages.
    func waitForChat() async throws {
        try await until("a chat") { state in
            state.prompt != nil || state.notice != nil || state.openTitle != Self.saved
        }
    }

    private static let saved = "Saved messages"

    // MARK: - Messages

    /// Selects one of the newest messages of the open chat for which `fits` returns true.
    ///
    /// - Returns: The message; nil if no message fits, or if the message disappeared.
    func select(where fits: (HistoryRow) -> Bool = { _ in true }) -> HistoryRow? {
        endEdit()
        let rows = look(\.rows).filter { $0.event == nil }.suffix(12).filter(fits)
        guard !rows.isEmpty else { return nil }
        let row = pick(rows)
        for _ in 0..<5 where look(\.focus) == .input { press(KeyPress(.escape)) }
        guard look(\.focus) == .messages else { return nil }
        for _ in 0..<30 {
            let (rows, selected) = look { ($0.rows, $0.selected) }
            guard let wanted = rows.firstIndex(where: { $0.id == row.id }) else { return nil }
            let index = rows.firstIndex { $0.id == selected } ?? rows.count
            if index == wanted { return row }
            press(KeyPress(index > wanted ? .up : .down))
        }
        return nil
    }

    // MARK: - Panels and questions

    /// The last key may open a panel. Waits until the panel has its contents.
    ///
    /// - Returns: Whether a panel is open and `fits` returns true for its kind.
    func waitForPanel(_ fits: (Panel.Kind) -> Bool) async throws -> Bool {
        try await until("a filled panel") { state in
            state.panel?.isFilled != false
        }
        let panel = look(\.panel)
        if let panel { play.note(panel) }
        return panel.map { fits($0.kind) } ?? false
    }

    /// Presses Enter on an item of the panel for which `fits` returns true.
    ///
    /// - Returns: Whether there is such an item.
    @discardableResult
    func choose(where fits: (Panel.Target) -> Bool) -> Bool {
        guard mark(where: fits) else { return false }
        press(KeyPress(.enter))
        return true
    }

    /// Selects an item of the panel for which `fits` returns true.
    ///
    /// - Returns: Whether there is such an item.
    func mark(where fits: (Panel.Target) -> Bool) -> Bool {
        for _ in 0..<300 {
            guard let panel = look(\.panel),
                let wanted = panel.items.firstIndex(where: { fits($0.target) })
            else { return false }
            if panel.selected == wanted { return true }
            press(KeyPress(panel.selected < wanted ? .down : .up))
        }
        return false
    }

    /// Waits for the question that the last command causes, and types an answer.
    ///
    /// - Returns: Whether the screen showed a question.
    @discardableResult
    func answer(_ text: String) async throws -> Bool {
        try await until("a question") { $0.prompt != nil || $0.notice != nil }
        guard look({ $0.prompt != nil }) else { return false }
        press(.control("u"))
        type("\(text)\n")
        return true
    }

    /// Answers a yes-or-no question. The answer is yes with this probability in percent.
    ///
    /// - Returns: Whether the screen showed a question and the answer was yes.
    @discardableResult
    func confirm(_ percent: Int = 85) async throws -> Bool {
        try await until("a question") { $0.prompt != nil || $0.notice != nil }
        guard look({ $0.prompt != nil }) else { return false }
        let isYes = chance(percent)
        type(isYes ? "y" : "n")
        return isYes
    }

    /// Waits until the status line shows a result.
    func waitForNotice() async throws {
        try await until("a notice") { $0.notice != nil }
    }
}

extension Panel {
    /// Whether the panel has got its first contents.
    fileprivate var isFilled: Bool {
        switch kind {
        case .goTo, .forward, .reactions, .links, .poll: true
        case .search: !remark.isEmpty
        default:
            !(items.isEmpty && remark.isEmpty) && !isLoading
        }
    }
}
