/// What a screen is shown on and gets its keys from: a terminal, or what stands for one in tests.
///
/// Everything happens on the queue of whoever owns it.
protocol Display: AnyObject, Sendable {
    var size: Size { get }
    var handlers: TerminalDevice.Handlers { get set }

    func start() throws(TerminalError)
    func stop()
    func show(_ surface: Surface)
    func repaint()
    func suspend()
    /// - Returns: whether it was sent.
    func copy(_ text: String) -> Bool
    func notify(_ kind: TerminalMessage.Notification, title: String, body: String)
    /// - Parameter completion: gets the new text; nil if there is none.
    func edit(_ text: String, maxBytes: Int, completion: @escaping @Sendable (String?) -> Void)
    /// - Parameter completion: gets whether a browser was started.
    func browse(_ address: String, completion: @escaping @Sendable (Bool) -> Void)
}

extension TerminalDevice: Display {}
