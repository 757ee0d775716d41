package import Dispatch
import Glibc

/// A terminal of a full-screen program. It delivers keys and shows surfaces.
///
/// Between `start` and `stop`, the line is raw and the alternate screen is shown. Output never
/// blocks on a slow terminal; frames are skipped instead (`FrameQueue`). Only calls that give up
/// the terminal block until it has accepted the last bytes. They stop waiting when the terminal
/// accepts no byte for a second. The terminal's settings are restored in `stop`, before the process
/// is suspended, and while another program runs. `TerminalRescue` restores them when the process
/// ends unexpectedly.
///
/// `@unchecked Sendable`: all mutable state is used on `queue` only. The methods that start, stop,
/// show or send check that they run on `queue`.
package final class TerminalDevice: @unchecked Sendable {
    package struct Options: Sendable {
        package var renderer = Renderer.Options()
        package var hasMouse = false
        /// The time to wait after ESC for the rest of a sequence. If the rest does not arrive in
        /// this time, ESC counts as a key.
        var escapeTimeout = DispatchTimeInterval.milliseconds(40)
        /// The additional time to wait for a late rest. If it arrives in this time, it does not
        /// count as text.
        var lateTimeout = DispatchTimeInterval.seconds(1)
        /// Whether control-C is an ordinary key. If false, control-C raises SIGINT.
        var interruptIsKey = true
        /// The environment variables for child programs. Some of them name the editor and the
        /// browser.
        package var environment: [String: String] = [:]

        package init() {}
    }

    /// The device's events, delivered on the queue.
    package struct Handlers {
        package var input: ([InputEvent]) -> Void = { _ in }
        /// The terminal has been resized. The owner should then show a surface of the new size.
        package var resize: (Size) -> Void = { _ in }
        /// A signal asks the program to end. SIGINT is reported at once, SIGTERM and SIGHUP after
        /// the terminal is restored.
        package var signal: (Int32) -> Void = { _ in }
        /// Reading or writing failed, because the terminal no longer exists.
        package var closed: () -> Void = {}
    }

    private enum Phase {
        case stopped
        case active
        /// Another program uses the terminal.
        case lent
    }

    package let queue: DispatchQueue
    package let options: Options
    package var handlers = Handlers()

    private let input: TerminalLine
    private let output: Int32
    private let modes: TerminalModes
    private let ownsDescriptor: Bool

    private var phase = Phase.stopped
    private var frames: FrameQueue
    private var parser = KeyParser()
    private var keyGeneration = 0

    private var reader: (any DispatchSourceRead)?
    private var isReaderPaused = false
    private var writer: (any DispatchSourceWrite)?
    private var isWriterWaiting = false
    private var signalSources: [any DispatchSourceSignal] = []

    private static let signals = [SIGWINCH, SIGINT, SIGTERM, SIGHUP, SIGTSTP, SIGCONT]

    /// Opens the terminal of the process: `/dev/tty`, or else standard input and output.
    ///
    /// - Throws: `TerminalError.dumb`, `.notATerminal`, `.system`.
    package static func open(
        options: Options,
        queue: DispatchQueue
    ) throws(TerminalError) -> TerminalDevice {
        if options.environment["TERM"] == "dumb" { throw .dumb }
        // Opening `/dev/tty` creates a separate file description. O_NONBLOCK then affects no other
        // process on this terminal.
        let descriptor = Glibc.open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC)
        if descriptor >= 0 {
            return try TerminalDevice(
                input: descriptor,
                output: descriptor,
                options: options,
                queue: queue,
                ownsDescriptor: true
            )
        }
        guard isatty(STDIN_FILENO) == 1, isatty(STDOUT_FILENO) == 1 else { throw .notATerminal }
        return try TerminalDevice(
            input: STDIN_FILENO,
            output: STDOUT_FILENO,
            options: options,
            queue: queue
        )
    }

    /// - Parameters:
    ///   - input: A terminal to read from.
    ///   - output: The same terminal, to write to.
    ///   - queue: A serial queue for all work of this device.
    ///   - ownsDescriptor: Whether this object closes `input`.
    package init(
        input: Int32,
        output: Int32,
        options: Options,
        queue: DispatchQueue,
        ownsDescriptor: Bool = false
    ) throws(TerminalError) {
        self.input = try TerminalLine(input)
        self.output = output
        self.options = options
        self.queue = queue
        self.ownsDescriptor = ownsDescriptor
        modes = TerminalModes(hasMouse: options.hasMouse)
        frames = FrameQueue(renderer: Renderer(options: options.renderer))
    }

    deinit {
        precondition(writer == nil, "stop() was not called")
        if ownsDescriptor { close(input.descriptor) }
    }

    /// The size of the terminal in columns and rows.
    package var size: Size { input.size }

    /// The number of frames that were never shown, because the terminal was slow and a newer frame
    /// replaced them.
    var skippedFrames: Int { frames.skippedFrames }
    /// The number of bytes written so far.
    var writtenBytes: Int { frames.totalBytes }

    // MARK: Lifecycle

    /// Takes over the terminal. The owner should show a surface immediately afterwards.
    package func start() throws(TerminalError) {
        preconditionOnQueue()
        guard phase == .stopped else { return }
        makeSources()
        try enter()
    }

    /// Restores the terminal. Frames not yet shown are dropped.
    package func stop() {
        preconditionOnQueue()
        if phase == .active { leave() }
        phase = .stopped
        // A source must not be released while it is suspended.
        reader?.cancel()
        pauseReader(false)
        reader = nil
        writer?.cancel()
        awaitWriter(true)
        writer = nil
        isWriterWaiting = false
        for source in signalSources { source.cancel() }
        signalSources = []
    }

    /// Restores the terminal and suspends the process until the shell continues it.
    package func suspend() {
        preconditionOnQueue()
        guard phase == .active else { return }
        leave()
        stopProcess()
        resume()
    }

    private func enter() throws(TerminalError) {
        try input.makeRaw(keepsSignals: !options.interruptIsKey)
        TerminalRescue.arm(
            descriptor: output,
            settings: input.originalSettings,
            bytes: modes.leave
        )
        phase = .active
        _ = frames.send(modes.enter)
        frames.repaint()
        flush()
    }

    private func leave() {
        phase = .stopped
        let isCutOff = frames.isCutOff
        frames.discard()
        // The control character CAN ends a sequence that the terminal has received only partly.
        writeOut((isCutOff ? [0x18] : []) + modes.leave)
        TerminalRescue.disarm()
        input.restore()
        parser = KeyParser()
    }

    /// Takes over the terminal again after another program or the shell has used it.
    private func resume() {
        do {
            try enter()
            handlers.resize(size)
        } catch {
            handlers.closed()
        }
    }

    /// Performs the default action of SIGTSTP, for the whole job.
    private func stopProcess() {
        var standard = sigaction()
        standard.__sigaction_handler.sa_handler = SIG_IGN
        var ours = sigaction()
        sigaction(SIGTSTP, &standard, &ours)
        // Stops the other processes of the job first. Otherwise the shell would wait for a wrapper
        // program that keeps running.
        kill(0, SIGTSTP)
        standard.__sigaction_handler.sa_handler = SIG_DFL
        sigaction(SIGTSTP, &standard, nil)
        var stopSignal = sigset_t()
        var mask = sigset_t()
        sigemptyset(&stopSignal)
        sigaddset(&stopSignal, SIGTSTP)
        pthread_sigmask(SIG_UNBLOCK, &stopSignal, &mask)
        // `raise` returns when another process continues this one, or at once if no process can do
        // so.
        raise(SIGTSTP)
        pthread_sigmask(SIG_SETMASK, &mask, nil)
        sigaction(SIGTSTP, &ours, nil)
    }

    // MARK: Output

    /// Shows a surface when the terminal is ready. A newer surface replaces a waiting one.
    package func show(_ surface: Surface) {
        preconditionOnQueue()
        frames.show(surface)
        flush()
    }

    /// Repaints the whole screen after other output has changed it.
    package func repaint() {
        preconditionOnQueue()
        frames.repaint()
        flush()
    }

    /// Copies text to the clipboard of the machine that displays the terminal.
    ///
    /// - Returns: Whether the text was sent. False if the text is too long, the device is not
    ///   started, or too many bytes are queued. No terminal reports whether it accepted the text.
    package func copy(_ text: String) -> Bool { send(TerminalMessage.copy(text)) }

    package func notify(_ kind: TerminalMessage.Notification, title: String, body: String) {
        _ = send(TerminalMessage.notify(kind, title: title, body: body))
    }

    func setTitle(_ title: String) { _ = send(TerminalMessage.setTitle(title)) }

    private func send(_ bytes: [UInt8]?) -> Bool {
        preconditionOnQueue()
        guard let bytes, phase == .active, frames.send(bytes) else { return false }
        flush()
        return true
    }

    private func flush() {
        guard phase == .active, !isWriterWaiting else { return }
        let output = output
        var failure: Int32 = 0
        let isDrained = frames.drain { bytes in
            while true {
                let count = write(output, bytes.baseAddress, bytes.count)
                if count >= 0 { return count }
                if errno == EINTR { continue }
                failure = errno
                return 0
            }
        }
        if isDrained { return }
        if failure == EAGAIN || failure == 0 {
            awaitWriter(true)
        } else {
            fail()
        }
    }

    private func outputIsReady() {
        awaitWriter(false)
        flush()
    }

    private func awaitWriter(_ isWaiting: Bool) {
        guard isWaiting != isWriterWaiting else { return }
        isWriterWaiting = isWaiting
        if isWaiting { writer?.resume() } else { writer?.suspend() }
    }

    /// Writes the last bytes before the terminal is restored. Gives up when the terminal accepts no
    /// byte for a second.
    private func writeOut(_ bytes: [UInt8]) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { write(output, $0.baseAddress, $0.count) }
            if count > 0 {
                rest = rest.dropFirst(count)
            } else if count < 0, errno == EAGAIN {
                var polled = pollfd(fd: output, events: Int16(POLLOUT), revents: 0)
                if poll(&polled, 1, 1000) <= 0 { return }
            } else if errno != EINTR {
                return
            }
        }
    }

    private func fail() {
        guard phase == .active else { return }
        stop()
        handlers.closed()
    }

    // MARK: Input

    private func makeSources() {
        let reader = DispatchSource.makeReadSource(
            fileDescriptor: input.descriptor,
            queue: queue
        )
        reader.setEventHandler { [weak self] in self?.inputIsReady() }
        reader.activate()
        self.reader = reader

        let writer = DispatchSource.makeWriteSource(fileDescriptor: output, queue: queue)
        writer.setEventHandler { [weak self] in self?.outputIsReady() }
        self.writer = writer

        for number in Self.signals {
            let source = DispatchSource.makeSignalSource(signal: number, queue: queue)
            source.setEventHandler { [weak self] in self?.signalCame(number) }
            source.activate()
            signalSources.append(source)
        }
    }

    private func inputIsReady() {
        guard phase == .active else { return }
        var buffer = [UInt8](repeating: 0, count: 4096)
        let count = read(input.descriptor, &buffer, buffer.count)
        if count > 0 {
            deliver(parser.parse(buffer[..<count]))
            waitForRestOfKey()
        } else if count == 0 || (errno != EAGAIN && errno != EINTR) {
            fail()
        }
    }

    private func pauseReader(_ isPaused: Bool) {
        guard isPaused != isReaderPaused else { return }
        isReaderPaused = isPaused
        if isPaused { reader?.suspend() } else { reader?.resume() }
    }

    private func deliver(_ events: [InputEvent]) {
        if !events.isEmpty { handlers.input(events) }
    }

    private func waitForRestOfKey() {
        keyGeneration += 1
        guard parser.isWaiting else { return }
        let generation = keyGeneration
        let patience = parser.isLate ? options.lateTimeout : options.escapeTimeout
        queue.asyncAfter(deadline: .now() + patience) { [weak self] in
            guard let self, generation == keyGeneration, phase == .active else { return }
            // If the queue was busy, bytes may have arrived in time without being read. They do not
            // count as late.
            if input.hasBytes { return inputIsReady() }
            deliver(parser.flush())
            waitForRestOfKey()
        }
    }

    // MARK: Signals

    private func signalCame(_ number: Int32) {
        switch number {
        case SIGWINCH:
            guard phase == .active else { return }
            // Even if the final size is unchanged, the terminal may have moved lines.
            frames.forget()
            handlers.resize(size)
        case SIGTSTP: suspend()
        // While this process was stopped, the shell has used the terminal.
        case SIGCONT: if phase == .active { resume() }
        case SIGINT: if phase == .active { handlers.signal(number) }
        default:
            stop()
            handlers.signal(number)
        }
    }

    // MARK: Other programs

    /// Lends the terminal to a program, and takes it back when the program exits.
    ///
    /// - Parameters:
    ///   - arguments: The program's name first.
    ///   - completion: Called on the queue with the exit status, after the terminal is taken back.
    ///     If the program did not start, called with the reason.
    package func run(
        _ arguments: [String],
        completion: @escaping @Sendable (Result<Int32, TerminalError>) -> Void
    ) {
        preconditionOnQueue()
        guard phase == .active else { return completion(.failure(.notOwned)) }
        pauseReader(true)
        leave()
        phase = .lent
        let program: ChildProgram
        do {
            program = try ChildProgram(
                arguments,
                environment: options.environment,
                terminal: input.descriptor
            )
        } catch {
            takeBack()
            return completion(.failure(error))
        }
        DispatchQueue.global().async {
            let status = program.wait()
            self.queue.async {
                self.takeBack()
                completion(.success(status))
            }
        }
    }

    private func takeBack() {
        pauseReader(false)
        // The device may have been stopped while the program ran.
        if phase == .lent { resume() }
    }

    private func preconditionOnQueue() { dispatchPrecondition(condition: .onQueue(queue)) }
}
