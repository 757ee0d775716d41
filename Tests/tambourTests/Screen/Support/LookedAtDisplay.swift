import Dispatch
import Synchronization

@testable import TerminalKit
@testable import tambour

/// A display that shows nothing. A test reads its contents and types on it.
///
/// `@unchecked Sendable`: only the screen's queue uses the handlers.
final class LookedAtDisplay: Display, @unchecked Sendable {
    struct State {
        var size: Size
        var surface: Surface?
        var copied: [String] = []
        var alerts: [String] = []
        var browsed: [String] = []
        var edited: [String] = []
    }

    struct NeverShown: Error, CustomStringConvertible {
        let description: String
    }

    var handlers = TerminalDevice.Handlers()
    /// Returns the editor's result for a text. If it is nil, the editor fails.
    let editor = Mutex<(@Sendable (String) -> String?)?>(nil)
    /// A key that the user pressed while the editor used the terminal.
    let typedAhead = Mutex<KeyPress?>(nil)
    let state: Mutex<State>
    private let changed = DispatchSemaphore(value: 0)

    init(size: Size = Size(columns: 90, rows: 24)) {
        state = Mutex(State(size: size))
    }

    var size: Size { state.withLock(\.size) }

    /// The lines on the screen.
    var lines: [String] {
        guard let surface = state.withLock(\.surface) else { return [] }
        return (0..<surface.size.rows).map { surface.text(ofRow: $0) }
    }

    /// Waits until the screen shows the expected state. Meanwhile, the test's own thread can do
    /// other work.
    ///
    /// - Throws: `NeverShown`, with the contents of the screen, if the state does not come in time.
    func wait(
        for what: String,
        seconds: Int = 120,
        until holds: (LookedAtDisplay) -> Bool
    ) async throws {
        let deadline = DispatchTime.now() + .seconds(seconds)
        while !holds(self) {
            let changed = changed
            let isInTime = await withCheckedContinuation { continuation in
                DispatchQueue.global().async {
                    continuation.resume(returning: changed.wait(timeout: deadline) == .success)
                }
            }
            guard isInTime else {
                throw NeverShown(description: "never: \(what)\n\(lines.joined(separator: "\n"))")
            }
        }
    }

    func waits(for text: String) async throws {
        try await wait(for: text) { $0.lines.contains { $0.contains(text) } }
    }

    func waitsForEnd(of text: String) async throws {
        try await wait(for: "no \(text)") { !$0.lines.contains { $0.contains(text) } }
    }

    private func change(_ body: (inout State) -> Void) {
        state.withLock { body(&$0) }
        changed.signal()
    }

    // MARK: - Display

    func start() throws(TerminalError) {}
    func stop() {}
    func show(_ surface: Surface) { change { $0.surface = surface } }
    func repaint() {}
    func suspend() {}

    func copy(_ text: String) -> Bool {
        change { $0.copied.append(text) }
        return true
    }

    func notify(_ kind: TerminalMessage.Notification, title: String, body: String) {
        change { $0.alerts.append("\(title): \(body)") }
    }

    func edit(_ text: String, maxBytes: Int, completion: @escaping @Sendable (String?) -> Void) {
        change { $0.edited.append(text) }
        completion(editor.withLock { $0?(text) })
        // The terminal first delivers the keys that the user typed while the editor was open.
        if let key = typedAhead.withLock({ $0.take() }) { handlers.input([.key(key)]) }
    }

    func browse(_ address: String, completion: @escaping @Sendable (Bool) -> Void) {
        change { $0.browsed.append(address) }
        completion(true)
    }
}
