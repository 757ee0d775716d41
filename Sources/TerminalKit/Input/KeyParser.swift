/// Parses the bytes from a terminal into keys and other events. The bytes may be split anywhere.
///
/// Supports UTF-8; control characters; CSI and SS3 sequences of xterm, rxvt and the Linux console
/// with xterm's modifiers; `CSI u` and xterm's `modifyOtherKeys`; bracketed paste (mode 2004);
/// focus (1004); SGR mouse (1006). Ignores the terminal's answers to queries, invalid UTF-8 and
/// unknown sequences.
///
/// ESC is both a key and the beginning of most sequences. While `isWaiting` is true, the caller
/// should call `flush` when no byte has arrived for some tens of milliseconds. A lone ESC, `ESC [`
/// or `ESC O` then counts as typed keys.
///
/// On slow lines, the rest of a sequence may arrive after `flush`, and it must not count as text.
/// `flush` therefore keeps a longer unfinished sequence, and a late rest also continues a sequence
/// that was flushed. After `ESC [` and `ESC O`, any next bytes are the rest. After a lone ESC,
/// bytes are the rest only if at least two arrive together and begin with `[` or `O`, because a
/// single byte may be a typed key. While `isLate` is true, the caller should call `flush` again
/// after about a second, to end the wait for the rest.
package struct KeyParser: Sendable {
    private enum State: Sendable {
        case ground
        /// The bytes of a scalar are being collected.
        case utf8(collected: [UInt8], length: Int)
        case escape
        /// After ESC O.
        case ss3([UInt8])
        /// After ESC [.
        case csi([UInt8])
        /// OSC, DCS, SOS, PM or APC: a reply from the terminal. `introducer` is the second byte of
        /// the reply, after ESC.
        case string(introducer: UInt8, isEmpty: Bool, sawEscape: Bool)
        case paste
    }

    /// The maximum number of parameter bytes in a sequence. Longer sequences are ignored.
    private static let maxSequenceBytes = 64
    private static let pasteEnd = Array("\u{1B}[201~".utf8)

    private let maxPasteBytes: Int
    private var state = State.ground
    private var isAlt = false
    /// Whether the rest of a flushed sequence may still arrive.
    private(set) var isLate = false
    private var pasted: [UInt8] = []
    private var events: [InputEvent] = []

    /// - Parameter maxPasteBytes: The maximum number of bytes of a paste. The rest is dropped.
    package init(maxPasteBytes: Int = 1 << 20) { self.maxPasteBytes = maxPasteBytes }

    /// Whether `flush` would have an effect.
    package var isWaiting: Bool {
        switch state {
        case .ground: isLate
        case .utf8, .paste: false
        case .escape, .string: true
        case .ss3(let parameters), .csi(let parameters): parameters.isEmpty
        }
    }

    var isPasting: Bool {
        if case .paste = state { true } else { false }
    }

    /// Returns the events completed by `bytes`.
    mutating func parse(_ bytes: some Sequence<UInt8>) -> [InputEvent] {
        let bytes = Array(bytes)
        if isLate, !bytes.isEmpty {
            isLate = false
            if case .ground = state {
                if Self.isRestOfSequence(bytes) { state = .escape } else { reset() }
            }
        }
        for byte in bytes { take(byte) }
        return takeEvents()
    }

    /// Reports that no byte has arrived for a while. The type's documentation describes the effect.
    package mutating func flush() -> [InputEvent] {
        guard isWaiting else { return [] }
        if isLate {
            isLate = false
            reset()
            return []
        }
        isLate = true
        switch state {
        case .escape:
            report(.escape)
            state = .ground
        case .ss3: report(.character("O"), .alt)
        case .csi: report(.character("["), .alt)
        case .string(let introducer, true, _):
            emit(.character(Unicode.Scalar(introducer)), .alt)
            isLate = false
        case .string, .ground, .utf8, .paste: break
        }
        return takeEvents()
    }

    /// Returns whether the bytes that arrive after a flushed ESC are the rest of a sequence that
    /// ESC began. Users cannot type two bytes at once, but some keyboards send whole words. A
    /// letter after `O` therefore counts only if it is the last byte.
    private static func isRestOfSequence(_ bytes: [UInt8]) -> Bool {
        guard let first = bytes.first, bytes.count > 1 else { return false }
        let rest = bytes.dropFirst().drop { (0x20..<0x40).contains($0) }
        switch first {
        case UInt8(ascii: "["): return rest.first.map { (0x40..<0x7F).contains($0) } ?? true
        case UInt8(ascii: "O"):
            guard let final = rest.first, rest.count == 1 else { return false }
            return letterKey(final) != nil || keypadKey(final) != nil
        default: return false
        }
    }

    /// Ends a paste whose end marker has not arrived. The paste then consists of the bytes received
    /// so far.
    mutating func endPaste() -> [InputEvent] {
        if isPasting { finishPaste(dropping: 0) }
        return takeEvents()
    }

    private mutating func takeEvents() -> [InputEvent] {
        defer { events.removeAll() }
        return events
    }

    private mutating func reset() {
        state = .ground
        isAlt = false
    }

    private mutating func emit(_ key: KeyPress.Key, _ modifiers: KeyPress.Modifiers = []) {
        report(key, modifiers)
        reset()
    }

    /// Reports a key without resetting the parser.
    private mutating func report(_ key: KeyPress.Key, _ modifiers: KeyPress.Modifiers = []) {
        events.append(.key(KeyPress(key, isAlt ? modifiers.union(.alt) : modifiers)))
    }

    // MARK: Bytes

    private mutating func take(_ byte: UInt8) {
        switch state {
        case .ground: takeGround(byte)
        case .utf8(let collected, let length): takeContinuation(byte, collected, length)
        case .escape: takeAfterEscape(byte)
        case .ss3(let parameters): takeSS3(byte, parameters)
        case .csi(let parameters): takeCSI(byte, parameters)
        case .string(let introducer, let isEmpty, let sawEscape):
            takeString(byte, introducer, isEmpty: isEmpty, sawEscape: sawEscape)
        case .paste: takePasted(byte)
        }
    }

    private mutating func takeGround(_ byte: UInt8) {
        switch byte {
        case 0x1B: state = .escape
        case 0x00: emit(.character(" "), .control)
        case 0x09: emit(.tab)
        case 0x0D: emit(.enter)
        case 0x7F: emit(.backspace)
        case 0x01...0x1A: emit(.character(Unicode.Scalar(byte + 0x60)), .control)
        case 0x1C...0x1F: emit(.character(Unicode.Scalar(byte + 0x40)), .control)
        case 0x20..<0x7F: emit(.character(Unicode.Scalar(byte)))
        case 0xC2...0xDF: state = .utf8(collected: [byte], length: 2)
        case 0xE0...0xEF: state = .utf8(collected: [byte], length: 3)
        case 0xF0...0xF4: state = .utf8(collected: [byte], length: 4)
        default: reset()
        }
    }

    private mutating func takeContinuation(_ byte: UInt8, _ collected: [UInt8], _ length: Int) {
        guard byte & 0xC0 == 0x80 else {
            reset()
            take(byte)
            return
        }
        let bytes = collected + [byte]
        guard bytes.count == length else {
            state = .utf8(collected: bytes, length: length)
            return
        }
        // The standard library refuses overlong forms and surrogates. C1 control characters are not
        // keys.
        let scalars = String(validating: bytes, as: UTF8.self)?.unicodeScalars
        if let scalar = scalars?.first, scalar.properties.generalCategory != .control {
            emit(.character(scalar))
        } else {
            reset()
        }
    }

    private mutating func takeAfterEscape(_ byte: UInt8) {
        switch byte {
        case UInt8(ascii: "["): state = .csi([])
        case UInt8(ascii: "O"): state = .ss3([])
        case UInt8(ascii: "]"), UInt8(ascii: "P"), UInt8(ascii: "X"), UInt8(ascii: "^"),
            UInt8(ascii: "_"):
            state = .string(introducer: byte, isEmpty: true, sawEscape: false)
        case 0x1B:
            // Two ESC mean that alt is held while a key sends a sequence. Each further ESC is a key
            // of its own.
            if isAlt { events.append(.key(KeyPress(.escape))) }
            isAlt = true
        default:
            isAlt = true
            state = .ground
            takeGround(byte)
        }
    }

    private mutating func takeSS3(_ byte: UInt8, _ parameters: [UInt8]) {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: ";"):
            collect(byte, parameters) { .ss3($0) }
        case 0x40..<0x7F:
            let modifiers = Self.modifiers(Self.numbers(parameters).last)
            let isJunk = parameters.count >= Self.maxSequenceBytes
            if !isJunk, let key = Self.letterKey(byte) ?? Self.keypadKey(byte) {
                emit(key, modifiers)
            } else {
                reset()
            }
        default: abandon(before: byte)
        }
    }

    private mutating func takeCSI(_ byte: UInt8, _ parameters: [UInt8]) {
        switch byte {
        // The Linux console sends its first function keys as `CSI [ A` to `CSI [ E`.
        case UInt8(ascii: "[") where parameters.isEmpty: state = .csi([byte])
        case 0x20..<0x40: collect(byte, parameters) { .csi($0) }
        case 0x40..<0x7F: finishCSI(byte, parameters)
        default: abandon(before: byte)
        }
    }

    private mutating func collect(
        _ byte: UInt8,
        _ parameters: [UInt8],
        _ next: ([UInt8]) -> State
    ) {
        // A sequence that is too long is read to its end and then ignored.
        state = next(parameters.count < Self.maxSequenceBytes ? parameters + [byte] : parameters)
    }

    /// Drops the current sequence, which `byte` cannot continue, and then handles `byte` as the
    /// beginning of new input.
    private mutating func abandon(before byte: UInt8) {
        reset()
        take(byte)
    }

    private mutating func takeString(
        _ byte: UInt8,
        _ introducer: UInt8,
        isEmpty: Bool,
        sawEscape: Bool
    ) {
        switch byte {
        case UInt8(ascii: "\\") where sawEscape: reset()
        case _ where sawEscape:
            reset()
            state = .escape
            take(byte)
        case 0x07, 0x18, 0x1A: reset()
        case 0x1B: state = .string(introducer: introducer, isEmpty: false, sawEscape: true)
        default: state = .string(introducer: introducer, isEmpty: false, sawEscape: false)
        }
    }

    // MARK: Sequences

    private mutating func finishCSI(_ final: UInt8, _ parameters: [UInt8]) {
        guard parameters.count < Self.maxSequenceBytes else { return reset() }
        if parameters.first == UInt8(ascii: "[") {
            reset()
            if (UInt8(ascii: "A")...UInt8(ascii: "E")).contains(final) {
                emit(.function(Int(final - UInt8(ascii: "A")) + 1))
            }
            return
        }
        if parameters.first == UInt8(ascii: "<") {
            finishMouse(final, Self.numbers(Array(parameters.dropFirst())))
            return
        }
        // A key sends only digits, colons and semicolons. Other bytes are private markers and
        // intermediate bytes, which occur only in replies of the terminal.
        let isPlain = parameters.allSatisfy { byte in
            (UInt8(ascii: "0")...UInt8(ascii: ";")).contains(byte)
        }
        let numbers = Self.numbers(parameters)
        switch final {
        case UInt8(ascii: "~") where isPlain: finishTilde(numbers)
        case UInt8(ascii: "u") where isPlain:
            finishCode(numbers.first, Self.modifiers(numbers.dropFirst().first))
        case UInt8(ascii: "I") where parameters.isEmpty: finish(with: .focusGained)
        case UInt8(ascii: "O") where parameters.isEmpty: finish(with: .focusLost)
        case UInt8(ascii: "Z") where isPlain: emit(.tab, .shift)
        // If the first number is not 1, this sequence is a cursor position report.
        case UInt8(ascii: "R") where numbers.first ?? 1 != 1: reset()
        case UInt8(ascii: "a")...UInt8(ascii: "d") where parameters.isEmpty:
            emit(Self.arrows[Int(final - UInt8(ascii: "a"))], .shift)
        default:
            if isPlain, let key = Self.letterKey(final) {
                emit(key, Self.modifiers(numbers.dropFirst().first))
            } else {
                finishRxvt(final, parameters)
            }
        }
    }

    private mutating func finish(with event: InputEvent) {
        reset()
        events.append(event)
    }

    private mutating func finishTilde(_ numbers: [Int]) {
        switch numbers.first {
        case 200:
            reset()
            state = .paste
        case 27 where numbers.count == 3: finishCode(numbers[2], Self.modifiers(numbers[1]))
        case let number?:
            guard let key = Self.numberedKeys[number] else { return reset() }
            emit(key, Self.modifiers(numbers.dropFirst().first))
        case nil: reset()
        }
    }

    /// Reports the key that has this code point.
    private mutating func finishCode(_ code: Int?, _ modifiers: KeyPress.Modifiers) {
        switch code {
        case 9: emit(.tab, modifiers)
        case 13: emit(.enter, modifiers)
        case 27: emit(.escape, modifiers)
        case 8, 127: emit(.backspace, modifiers)
        default:
            guard let code, let value = UInt32(exactly: code), let scalar = Unicode.Scalar(value),
                scalar.properties.generalCategory != .control,
                // The kitty protocol uses this range for keys without characters.
                scalar.properties.generalCategory != .privateUse
            else { return reset() }
            emit(.character(scalar), modifiers)
        }
    }

    /// Handles rxvt's sequences, which encode modifiers in the final character.
    private mutating func finishRxvt(_ final: UInt8, _ parameters: [UInt8]) {
        let modifiers: KeyPress.Modifiers? =
            switch final {
            case UInt8(ascii: "$"): .shift
            case UInt8(ascii: "^"): .control
            case UInt8(ascii: "@"): [.control, .shift]
            default: nil
            }
        let numbers = Self.numbers(parameters)
        if let modifiers, numbers.count == 1, let key = Self.numberedKeys[numbers[0]] {
            emit(key, modifiers)
        } else {
            reset()
        }
    }

    /// Handles xterm's SGR encoding: button and modifiers; column; row.
    private mutating func finishMouse(_ final: UInt8, _ numbers: [Int]) {
        reset()
        let isPress = final == UInt8(ascii: "M")
        guard isPress || final == UInt8(ascii: "m"), numbers.count == 3, numbers[1] > 0,
            numbers[2] > 0
        else { return }
        let code = numbers[0]
        var modifiers: KeyPress.Modifiers = []
        if code & 4 != 0 { modifiers.insert(.shift) }
        if code & 8 != 0 { modifiers.insert(.alt) }
        if code & 16 != 0 { modifiers.insert(.control) }
        let action: MouseEvent.Action
        switch code & ~0b1_1100 {
        case 0...2: action = isPress ? .press : .release
        case 32...34: action = .drag
        case 64: action = .wheelUp
        case 65: action = .wheelDown
        default: return
        }
        events.append(
            .mouse(
                MouseEvent(
                    action: action,
                    button: code & 3,
                    position: Position(column: numbers[1] - 1, row: numbers[2] - 1),
                    modifiers: modifiers
                )
            )
        )
    }

    /// Returns the numbers between semicolons; an empty field is zero. Sub-parameters are ignored.
    private static func numbers(_ parameters: [UInt8]) -> [Int] {
        guard !parameters.isEmpty else { return [] }
        return parameters.split(separator: UInt8(ascii: ";"), omittingEmptySubsequences: false).map
        {
            let digits = $0.prefix { $0 != UInt8(ascii: ":") }
            return Int(String(decoding: digits, as: UTF8.self)) ?? 0
        }
    }

    /// Decodes xterm's modifiers: one plus a bit set of shift, alt, control and meta.
    private static func modifiers(_ number: Int?) -> KeyPress.Modifiers {
        guard let number, number > 1, number <= 256 else { return [] }
        let bits = number - 1
        var modifiers: KeyPress.Modifiers = []
        if bits & 1 != 0 { modifiers.insert(.shift) }
        if bits & (2 | 8) != 0 { modifiers.insert(.alt) }
        if bits & 4 != 0 { modifiers.insert(.control) }
        return modifiers
    }

    private static let arrows: [KeyPress.Key] = [.up, .down, .right, .left]

    private static func letterKey(_ final: UInt8) -> KeyPress.Key? {
        switch final {
        case UInt8(ascii: "A")...UInt8(ascii: "D"): arrows[Int(final - UInt8(ascii: "A"))]
        case UInt8(ascii: "F"): .end
        case UInt8(ascii: "H"): .home
        case UInt8(ascii: "P")...UInt8(ascii: "S"):
            .function(Int(final - UInt8(ascii: "P")) + 1)
        default: nil
        }
    }

    /// Decodes a key of the numeric keypad in application mode.
    private static func keypadKey(_ final: UInt8) -> KeyPress.Key? {
        switch final {
        case UInt8(ascii: "M"): .enter
        case UInt8(ascii: "I"): .tab
        case UInt8(ascii: "j")...UInt8(ascii: "y"): .character(Unicode.Scalar(final - 0x40))
        case UInt8(ascii: "X"): .character("=")
        default: nil
        }
    }

    private static let numberedKeys: [Int: KeyPress.Key] = {
        var keys: [Int: KeyPress.Key] = [
            1: .home, 2: .insert, 3: .delete, 4: .end, 5: .pageUp, 6: .pageDown, 7: .home, 8: .end,
        ]
        let functions = [
            11, 12, 13, 14, 15, 17, 18, 19, 20, 21, 23, 24, 25, 26, 28, 29, 31, 32, 33, 34,
        ]
        for (index, number) in functions.enumerated() { keys[number] = .function(index + 1) }
        return keys
    }()

    // MARK: Paste

    private mutating func takePasted(_ byte: UInt8) {
        pasted.append(byte)
        if byte == UInt8(ascii: "~"), pasted.suffix(Self.pasteEnd.count) == Self.pasteEnd[...] {
            finishPaste(dropping: Self.pasteEnd.count)
        } else if pasted.count >= maxPasteBytes + 2 * Self.pasteEnd.count {
            // Keeps the last bytes, because they may be the beginning of the end marker.
            let excess = maxPasteBytes..<pasted.count - Self.pasteEnd.count
            pasted.removeSubrange(excess)
        }
    }

    private mutating func finishPaste(dropping count: Int) {
        pasted.removeLast(count)
        let text = String(decoding: pasted.prefix(maxPasteBytes), as: UTF8.self)
        pasted = []
        reset()
        events.append(.paste(SafeText.multiline(text)))
    }
}
