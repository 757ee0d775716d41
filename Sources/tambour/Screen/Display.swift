import TerminalKit

/// The device that the screen draws on and gets keys from: a terminal, or a substitute in tests.
///
/// All calls run on the owner's queue.
protocol Display: AnyObject, Sendable {
    var size: Size { get }
    var handlers: TerminalDevice.Handlers { get set }

    func start() throws(TerminalError)
    func stop()
    func show(_ surface: Surface)
    func repaint()
    func suspend()
    /// - Returns: Whether the text was sent to the terminal.
    func copy(_ text: String) -> Bool
    func notify(_ kind: TerminalMessage.Notification, title: String, body: String)
    /// - Parameter completion: Receives the edited text; nil if the editor failed.
    func edit(_ text: String, maxBytes: Int, completion: @escaping @Sendable (String?) -> Void)
    /// - Parameter completion: Receives true if a browser was started.
    func browse(_ address: String, completion: @escaping @Sendable (Bool) -> Void)
}

extension TerminalDevice: Display {}
