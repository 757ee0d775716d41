import Dispatch
import Glibc
import Testing

@testable import TerminalKit

/// Tests that the device restores the terminal completely, and never blocks the program.
@Suite(.serialized)
struct TerminalDeviceTests {
    /// A started device on a pseudo-terminal, and the events that the device reports.
    private final class Session {
        let terminal: PseudoTerminal
        let device: TerminalDevice
        let events = Arrivals<[InputEvent]>()
        let sizes = Arrivals<Size>()
        let closed = Arrivals<Bool>()

        init(_ options: TerminalDevice.Options = .init()) throws {
            let terminal = try PseudoTerminal()
            let device = try TerminalDevice(
                input: terminal.slave,
                output: terminal.slave,
                options: options,
                queue: DispatchQueue(label: "terminal")
            )
            self.terminal = terminal
            self.device = device
            let (events, sizes, closed) = (events, sizes, closed)
            device.queue.sync {
                device.handlers.input = { events.add($0) }
                device.handlers.resize = { sizes.add($0) }
                device.handlers.closed = { closed.add(true) }
            }
            try device.queue.sync { try device.start() }
        }

        deinit { device.queue.sync { device.stop() } }

        func on<Value>(_ body: (TerminalDevice) throws -> Value) rethrows -> Value {
            try device.queue.sync { try body(device) }
        }
    }

    private static func surface(_ text: String, _ size: Size) -> Surface {
        var surface = Surface(size: size)
        for row in 0..<size.rows {
            surface.draw("\(text) \(row) 漢字", at: Position(column: 0, row: row))
        }
        return surface
    }

    @Test("the line is raw in between, and as it was afterwards")
    func rawMode() throws {
        let terminal = try PseudoTerminal()
        let before = terminal.localFlags
        let flagsBefore = fcntl(terminal.slave, F_GETFL)
        let device = try TerminalDevice(
            input: terminal.slave,
            output: terminal.slave,
            options: .init(),
            queue: DispatchQueue(label: "terminal")
        )
        try device.queue.sync { try device.start() }
        #expect(terminal.localFlags & tcflag_t(ICANON | ECHO | ISIG) == 0)
        #expect(fcntl(terminal.slave, F_GETFL) & O_NONBLOCK != 0)
        device.queue.sync { device.stop() }
        #expect(terminal.localFlags == before)
        #expect(fcntl(terminal.slave, F_GETFL) == flagsBefore)
        let modes = TerminalModes()
        try terminal.read { $0.count >= modes.enter.count + modes.leave.count }
        #expect(terminal.received == modes.enter + modes.leave)
    }

    @Test("every mode that is set is taken back, in the opposite order")
    func modes() {
        let modes = TerminalModes(hasMouse: true)
        func numbers(_ bytes: [UInt8], _ final: Character) -> [String] {
            let sequences = String(decoding: bytes, as: UTF8.self).split(separator: "\u{1B}[")
            return sequences.filter { $0.last == final && $0.first == "?" }.map {
                String($0.dropLast())
            }
        }
        let set = numbers(modes.enter, "h")
        #expect(set == ["?1049", "?2004", "?1004", "?1002", "?1006"])
        #expect(numbers(modes.enter, "l") == ["?7"])
        #expect(numbers(modes.leave, "l") == ["?2026"] + set.reversed())
        #expect(numbers(modes.leave, "h") == ["?25", "?7"])
    }

    @Test("control-C is a key, or a signal if the program wants that")
    func interrupts() throws {
        var options = TerminalDevice.Options()
        options.interruptIsKey = false
        let session = try Session(options)
        #expect(session.terminal.localFlags & tcflag_t(ISIG) != 0)
        let other = try Session()
        other.terminal.type("\u{3}")
        #expect(try other.events.next() == [.key(.control("c"))])
    }

    @Test("keys arrive; a lone ESC does when nothing follows it")
    func keys() throws {
        let session = try Session()
        session.terminal.type("\u{1B}[Aé")
        var events: [InputEvent] = []
        while events.count < 2 { events += try session.events.next() }
        #expect(events == [.key(KeyPress(.up)), .key(KeyPress(.character("é")))])
        session.terminal.type("\u{1B}")
        #expect(try session.events.next() == [.key(KeyPress(.escape))])
    }

    @Test("what is there is read before a sequence counts as late")
    func busyQueue() throws {
        var options = TerminalDevice.Options()
        options.escapeTimeout = .nanoseconds(0)
        let session = try Session(options)
        let (master, slave) = (session.terminal.master, session.terminal.slave)
        let events = session.events
        session.on { device in
            device.handlers.input = { found in
                events.add(found)
                // Send the rest of the sequence while the queue is busy.
                guard found.contains(.key(KeyPress(.character("x")))) else { return }
                _ = write(master, "[A", 2)
                var polled = pollfd(fd: slave, events: Int16(POLLIN), revents: 0)
                _ = poll(&polled, 1, PseudoTerminal.patienceMs)
            }
        }
        for _ in 0..<200 {
            session.terminal.type("x\u{1B}")
            #expect(try session.events.next() == [.key(KeyPress(.character("x")))])
            #expect(try session.events.next() == [.key(KeyPress(.up))])
        }
    }

    @Test("a terminal that takes nothing holds nobody up, and shows the newest frame in the end")
    func slowTerminal() throws {
        let session = try Session()
        let size = session.on(\.size)
        let last = Self.surface("the last frame", size)
        session.on { device in
            for number in 0..<3000 { device.show(Self.surface("frame \(number)", size)) }
            device.show(last)
        }
        #expect(session.on(\.skippedFrames) > 1000)
        var shown = TestTerminal(size: size)
        var consumed = 0
        try session.terminal.read { received in
            shown.feed(received[consumed...])
            consumed = received.count
            return shown.difference(from: last) == nil
        }
        #expect(shown.violations.isEmpty)
    }

    @Test("a new size is told, and the next frame is painted in full")
    func resize() throws {
        let session = try Session()
        let size = Size(columns: 44, rows: 9)
        session.terminal.resize(to: size)
        #expect(try session.sizes.next(nudge: { kill(getpid(), SIGWINCH) }) == size)
        session.on { $0.show(Self.surface("resized", size)) }
        try session.terminal.read(until: "resized 8")
        #expect(session.terminal.receivedText.contains("\u{1B}[2J"))
    }

    @Test("another program gets the terminal as it was, and gives it back")
    func lending() throws {
        let session = try Session()
        let before = session.on { $0.size }
        let statuses = Arrivals<Int32>()
        session.on { device in
            device.show(Self.surface("mine", before))
            device.run(["sh", "-c", "stty -a | grep -c -w -e '-icanon'; printf lent; exit 3"]) {
                if case .success(let status) = $0 { statuses.add(status) }
            }
        }
        #expect(try statuses.next() == 3)
        #expect(try session.sizes.next() == before)
        session.on { $0.show(Self.surface("again", before)) }
        try session.terminal.read(until: "again 7")
        let text = session.terminal.receivedText
        let leave = String(decoding: TerminalModes().leave, as: UTF8.self)
        let enter = String(decoding: TerminalModes().enter, as: UTF8.self)
        #expect(text.contains("\(leave)0\r\nlent\(enter)"))
        #expect(text.components(separatedBy: "\u{1B}[2J") == 3)
        session.terminal.type("k")
        #expect(try session.events.next() == [.key(KeyPress(.character("k")))])
    }

    @Test("a program that does not exist is an error, and the terminal is there again")
    func missingProgram() throws {
        let session = try Session()
        let failures = Arrivals<TerminalError>()
        session.on { device in
            device.run(["no-such-program-anywhere"]) {
                if case .failure(let error) = $0 { failures.add(error) }
            }
        }
        #expect(try failures.next() == .system(call: "posix_spawnp", code: ENOENT))
        session.terminal.type("k")
        #expect(try session.events.next() == [.key(KeyPress(.character("k")))])
    }

    @Test("a text is edited with the person's editor")
    func editor() throws {
        var options = TerminalDevice.Options()
        options.environment = ["EDITOR": "sed -i s/draft/final/", "PATH": "/usr/bin:/bin"]
        let session = try Session(options)
        let texts = Arrivals<String?>()
        session.on { $0.edit("my draft\n$HOME \"é\"\n\n") { texts.add($0) } }
        #expect(try texts.next() == "my final\n$HOME \"é\"")
        options.environment["VISUAL"] = "false"
        let failing = try Session(options)
        failing.on { $0.edit("my draft") { texts.add($0) } }
        #expect(try texts.next() == nil)
    }

    @Test("a terminal that goes away is told")
    func hangUp() throws {
        let session = try Session()
        session.terminal.hangUp()
        #expect(try session.closed.next())
    }

    @Test("what is no terminal is refused")
    func noTerminal() throws {
        let file = open("/dev/null", O_RDWR)
        defer { close(file) }
        #expect(throws: TerminalError.notATerminal) {
            try TerminalDevice(
                input: file,
                output: file,
                options: .init(),
                queue: DispatchQueue(label: "terminal")
            )
        }
        var options = TerminalDevice.Options()
        options.environment = ["TERM": "dumb"]
        #expect(throws: TerminalError.dumb) {
            try TerminalDevice.open(options: options, queue: DispatchQueue(label: "terminal"))
        }
    }

    @Test("messages to the terminal carry no commands of others")
    func messages() throws {
        let options = TerminalDevice.Options()
        let session = try Session(options)
        let isCopied = session.on { device in
            device.notify(.osc777, title: "a;b\u{1B}", body: "x\u{7}\ny;z")
            device.setTitle("t\u{9C}\u{202E}")
            return device.copy("héllo")
        }
        #expect(isCopied)
        try session.terminal.read(until: "]52;c;aMOpbGxv\u{1B}\\")
        let text = session.terminal.receivedText
        #expect(text.contains("\u{1B}]777;notify;a,b␛;x␇ y;z\u{1B}\\\u{1B}]2;t·\u{1B}\\"))
        #expect(session.on { $0.copy(String(repeating: "x", count: 80_000)) } == false)
    }

    @Test("a notification's title cannot become a command")
    func notifications() {
        let title = "4;1;50"
        #expect(TerminalMessage.notify(.none, title: title, body: "").isEmpty)
        #expect(TerminalMessage.notify(.bell, title: title, body: "") == [0x07])
        let bytes = TerminalMessage.notify(.osc9, title: title, body: "hi")
        #expect(String(decoding: bytes, as: UTF8.self) == "\u{1B}]9;4,1,50: hi\u{1B}\\")
    }

    @Test("a terminal that is not ours is lent to nobody")
    func notOwned() throws {
        let session = try Session()
        let failures = Arrivals<TerminalError>()
        session.on { device in
            device.stop()
            device.run(["true"]) { if case .failure(let error) = $0 { failures.add(error) } }
        }
        #expect(try failures.next() == .notOwned)
    }

    @Test(
        "base64 is that of RFC 4648",
        arguments: [
            ("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="), ("foobar", "Zm9vYmFy"), ("\u{3FF}\u{FFFF}~", "z7/vv79+"),
        ]
    )
    func base64(text: String, encoded: String) {
        #expect(TerminalMessage.base64(Array(text.utf8)) == Array(encoded.utf8))
    }
}

extension String {
    fileprivate func components(separatedBy part: String) -> Int {
        split(separator: part, omittingEmptySubsequences: false).count
    }
}
