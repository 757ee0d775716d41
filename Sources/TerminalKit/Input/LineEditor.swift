/// A text of one or more lines, edited with readline keys.
///
/// Positions count grapheme clusters. The cursor is therefore never within a cluster. If an
/// inserted text would exceed the limit, the editor refuses the whole insertion. The text contains
/// no control characters except line breaks and tabs.
package struct LineEditor: Sendable {
    package enum Outcome: Equatable, Sendable {
        /// The key has no meaning here; the caller may handle it.
        case ignored
        /// The editor handled the key, even if nothing changed.
        case handled
        /// The inserted text does not fit, and the editor has not changed.
        case limitReached
        /// Enter: the text moved from the editor to the history.
        case submitted(String)
    }

    /// An unfinished text that the program stores and shows again later.
    package struct Draft: Hashable, Sendable {
        package var text: String
        /// In grapheme clusters.
        package var cursor: Int

        package static let empty = Draft(text: "", cursor: 0)

        package init(text: String, cursor: Int) {
            self.text = text
            self.cursor = cursor
        }
    }

    /// A word that completion may replace.
    package struct Token: Hashable, Sendable {
        package var text: String
        /// In grapheme clusters. The range ends at the cursor.
        package var range: Range<Int>
        /// Whether nothing except white space precedes the token. Only such a token can be a
        /// command.
        package var isFirst: Bool

        package init(text: String, range: Range<Int>, isFirst: Bool) {
            self.text = text
            self.range = range
            self.isFirst = isFirst
        }
    }

    private enum LastAction {
        case other
        case insertion
        case kill
        /// The range of the yanked text.
        case yank(Range<Int>)
        case verticalMove
    }

    /// The maximum length of the text in UTF-16 code units, as in the protocol.
    package let limit: Int
    /// The width in columns at which lines wrap. It determines how the cursor moves up and down.
    package var width = 80

    package private(set) var clusters: [Character] = []
    package private(set) var cursor = 0

    private var killRing = KillRing()
    private var undoStack: [Draft] = []
    private var lastAction = LastAction.other
    private var goalColumn = 0

    private var history: [String] = []
    /// The index of the history entry that is shown; `history.count` if the user's own text is
    /// shown.
    private var historyIndex = 0
    private var interrupted = Draft.empty

    private static let maxUndo = 200
    private static let maxUndoCharacters = 4_000_000
    private static let maxHistory = 500

    /// The default limit. No user writes a longer text, and a text of this length can still be laid
    /// out at every keystroke.
    package static let longest = 64 * 4_000

    package init(limit: Int = LineEditor.longest) { self.limit = limit }

    // MARK: Contents

    package var text: String { String(clusters) }
    package var isEmpty: Bool { clusters.isEmpty }
    package var draft: Draft { Draft(text: text, cursor: cursor) }
    /// The number of UTF-16 code units that may still be added.
    var remainingUnits: Int { limit - Self.units(of: clusters[...]) }

    /// Loads a stored text and clears the undo stack.
    package mutating func load(_ draft: Draft) {
        clusters = Array(SafeText.multiline(draft.text))
        cursor = min(max(0, draft.cursor), clusters.count)
        undoStack = []
        lastAction = .other
        historyIndex = history.count
    }

    /// Replaces the text and puts the cursor at its end. Undo restores the old text.
    ///
    /// - Returns: Whether the text fits. If not, nothing changes.
    @discardableResult
    package mutating func setText(_ text: String) -> Bool {
        saveForUndo()
        lastAction = .other
        return replace(0..<clusters.count, with: text)
    }

    /// Inserts a pasted text with its line breaks. Does not submit any line.
    package mutating func paste(_ text: String) -> Outcome {
        saveForUndo()
        lastAction = .other
        return replace(cursor..<cursor, with: text) ? .handled : .limitReached
    }

    /// Adds a text to the history as if it had been submitted.
    mutating func addToHistory(_ text: String) {
        if history.last != text { history.append(text) }
        if history.count > Self.maxHistory { history.removeFirst() }
        historyIndex = history.count
    }

    // MARK: Completion

    /// The text from the last white space to the cursor; nil if it is empty.
    package var tokenBeforeCursor: Token? {
        var start = cursor
        while start > 0, !clusters[start - 1].isWhitespace { start -= 1 }
        guard start < cursor else { return nil }
        return Token(
            text: String(clusters[start..<cursor]),
            range: start..<cursor,
            isFirst: clusters[..<start].allSatisfy(\.isWhitespace)
        )
    }

    /// Replaces a token with its completion and puts the cursor after it.
    package mutating func complete(_ token: Token, with text: String) -> Outcome {
        saveForUndo()
        lastAction = .other
        let range = token.range.clamped(to: 0..<clusters.count)
        return replace(range, with: text) ? .handled : .limitReached
    }

    // MARK: Display

    /// Returns the text wrapped to `width`. Every line leaves a column for the cursor.
    package func layout(spans: [TextSpan] = []) -> TextLayout {
        TextLayout(
            text,
            spans: spans,
            options: TextLayout.Options(width: width, hasCursor: true)
        )
    }

    /// Returns the range of lines to show if only `height` rows are available. The range includes
    /// the line of the cursor.
    package static func visibleRows(of layout: TextLayout, cursorRow: Int, height: Int) -> Range<
        Int
    > {
        let height = max(1, height)
        let first = min(max(0, cursorRow - height + 1), max(0, layout.lines.count - height))
        return first..<min(layout.lines.count, first + height)
    }

    // MARK: Keys

    /// Handles a key press.
    package mutating func handle(_ press: KeyPress) -> Outcome {
        switch press.modifiers.subtracting(.shift) {
        case []: handlePlain(press)
        case .control: handleControl(press.key)
        case .alt: handleAlt(press.key)
        default: .ignored
        }
    }

    private mutating func handlePlain(_ press: KeyPress) -> Outcome {
        switch press.key {
        case .character(let scalar): return insert(String(scalar))
        case .enter:
            return press.modifiers.contains(.shift) ? insert("\n") : submit()
        case .backspace: return deleteBackward()
        case .delete: return delete(cursor..<min(cursor + 1, clusters.count))
        case .left: return move(to: cursor - 1)
        case .right: return move(to: cursor + 1)
        case .home: return move(to: lineStart)
        case .end: return move(to: lineEnd)
        case .up: return moveUp()
        case .down: return moveDown()
        default: return .ignored
        }
    }

    private mutating func handleControl(_ key: KeyPress.Key) -> Outcome {
        switch key {
        case .character("a"): move(to: lineStart)
        case .character("e"): move(to: lineEnd)
        case .character("b"): move(to: cursor - 1)
        case .character("f"): move(to: cursor + 1)
        case .left: move(to: wordStart)
        case .right: move(to: wordEnd)
        case .home: move(to: 0)
        case .end: move(to: clusters.count)
        case .character("p"): moveUp()
        case .character("n"): moveDown()
        case .character("d"):
            isEmpty ? .ignored : delete(cursor..<min(cursor + 1, clusters.count))
        case .character("h"): deleteBackward()
        case .character("k"): killToLineEnd()
        case .character("u"): kill(lineStart..<cursor, isBackward: true)
        case .character("w"): kill(tokenStart..<cursor, isBackward: true)
        case .backspace: kill(wordStart..<cursor, isBackward: true)
        case .delete: kill(cursor..<wordEnd, isBackward: false)
        case .character("y"): yank()
        case .character("t"): transpose()
        case .character("_"), .character("/"): undo()
        case .character("j"), .enter: insert("\n")
        default: .ignored
        }
    }

    private mutating func handleAlt(_ key: KeyPress.Key) -> Outcome {
        switch key {
        case .character("b"), .left: move(to: wordStart)
        case .character("f"), .right: move(to: wordEnd)
        case .character("d"), .delete: kill(cursor..<wordEnd, isBackward: false)
        case .backspace: kill(wordStart..<cursor, isBackward: true)
        case .character("y"): yankOlder()
        case .character("<"): move(to: 0)
        case .character(">"): move(to: clusters.count)
        case .enter: insert("\n")
        default: .ignored
        }
    }

    private mutating func submit() -> Outcome {
        let text = text
        guard text.contains(where: { !$0.isWhitespace }) else { return .handled }
        addToHistory(text)
        load(.empty)
        return .submitted(text)
    }

    // MARK: Moving

    private mutating func move(to position: Int) -> Outcome {
        cursor = min(max(0, position), clusters.count)
        lastAction = .other
        return .handled
    }

    private var lineStart: Int {
        (clusters[..<cursor].lastIndex(where: \.isNewline) ?? -1) + 1
    }

    private var lineEnd: Int {
        clusters[cursor...].firstIndex(where: \.isNewline) ?? clusters.count
    }

    /// The start of the word before the cursor. Words consist of letters and digits.
    private var wordStart: Int {
        var position = cursor
        while position > 0, !clusters[position - 1].isWordPart { position -= 1 }
        while position > 0, clusters[position - 1].isWordPart { position -= 1 }
        return position
    }

    private var wordEnd: Int {
        var position = cursor
        while position < clusters.count, !clusters[position].isWordPart { position += 1 }
        while position < clusters.count, clusters[position].isWordPart { position += 1 }
        return position
    }

    /// The start of the token before the cursor. White space between the token and the cursor is
    /// skipped (readline's `unix-word-rubout`).
    private var tokenStart: Int {
        var position = cursor
        while position > 0, clusters[position - 1].isWhitespace { position -= 1 }
        while position > 0, !clusters[position - 1].isWhitespace { position -= 1 }
        return position
    }

    private mutating func moveUp() -> Outcome {
        moveVertically(by: -1) ? .handled : showHistory(historyIndex - 1)
    }

    private mutating func moveDown() -> Outcome {
        moveVertically(by: 1) ? .handled : showHistory(historyIndex + 1)
    }

    /// Moves the cursor to another drawn line, to the column in which the vertical movement began.
    private mutating func moveVertically(by rows: Int) -> Bool {
        let layout = layout()
        let here = layout.position(of: cursor)
        guard layout.lines.indices.contains(here.row + rows) else { return false }
        if case .verticalMove = lastAction {} else { goalColumn = here.column }
        cursor = layout.offset(at: Position(column: goalColumn, row: here.row + rows))
        lastAction = .verticalMove
        return true
    }

    private mutating func showHistory(_ index: Int) -> Outcome {
        guard (0...history.count).contains(index), index != historyIndex else { return .ignored }
        if historyIndex == history.count { interrupted = draft }
        saveForUndo()
        historyIndex = index
        lastAction = .other
        if index == history.count {
            clusters = Array(interrupted.text)
            cursor = min(interrupted.cursor, clusters.count)
        } else {
            clusters = Array(history[index])
            cursor = clusters.count
        }
        return .handled
    }

    // MARK: Changing

    /// Replaces `range` with `text` and puts the cursor after the new text.
    ///
    /// - Returns: Whether the text fits. If not, nothing changes.
    private mutating func replace(_ range: Range<Int>, with text: String) -> Bool {
        let safe = SafeText.multiline(text)
        let kept = clusters[..<range.lowerBound]
        let rest = clusters[range.upperBound...]
        // A text that already exceeds the limit may still be made shorter.
        let isInsertion = !safe.isEmpty
        let room = limit - Self.units(of: kept) - Self.units(of: rest)
        if isInsertion, safe.utf16.count > room { return false }
        // The inserted text may join the preceding cluster, and the following text may join the
        // inserted text.
        let head = String(kept) + safe
        let whole = head + String(rest)
        clusters = Array(whole)
        cursor = Self.boundary(in: clusters, atOrAfterByte: head.utf8.count)
        return true
    }

    private static func boundary(in clusters: [Character], atOrAfterByte byte: Int) -> Int {
        var bytes = 0
        var index = 0
        while bytes < byte, index < clusters.count {
            bytes += clusters[index].utf8.count
            index += 1
        }
        return index
    }

    private static func units(of clusters: ArraySlice<Character>) -> Int {
        clusters.reduce(0) { $0 + $1.utf16.count }
    }

    private mutating func insert(_ text: String) -> Outcome {
        // Undo treats the characters typed since the last white space as one step.
        var isWithinWord = false
        if case .insertion = lastAction { isWithinWord = text.first?.isWhitespace == false }
        if !isWithinWord { saveForUndo() }
        lastAction = .insertion
        return replace(cursor..<cursor, with: text) ? .handled : .limitReached
    }

    private mutating func delete(_ range: Range<Int>) -> Outcome {
        guard !range.isEmpty else { return .handled }
        saveForUndo()
        lastAction = .other
        _ = replace(range, with: "")
        cursor = min(cursor, clusters.count)
        return .handled
    }

    private mutating func deleteBackward() -> Outcome { delete(max(0, cursor - 1)..<cursor) }

    private mutating func kill(_ range: Range<Int>, isBackward: Bool) -> Outcome {
        guard !range.isEmpty else { return .handled }
        saveForUndo()
        let killed = String(clusters[range])
        if case .kill = lastAction {
            killRing.extend(with: killed, atFront: isBackward)
        } else {
            killRing.add(killed)
        }
        _ = replace(range, with: "")
        lastAction = .kill
        return .handled
    }

    /// Kills to the end of the line. At the end, kills the line break.
    private mutating func killToLineEnd() -> Outcome {
        let end = lineEnd
        return kill(
            cursor..<(end == cursor ? min(end + 1, clusters.count) : end),
            isBackward: false
        )
    }

    private mutating func yank() -> Outcome {
        guard let text = killRing.current else { return .handled }
        saveForUndo()
        return yank(text, over: cursor..<cursor)
    }

    private mutating func yankOlder() -> Outcome {
        guard case .yank(let range) = lastAction else { return .handled }
        killRing.rotate()
        guard let text = killRing.current else { return .handled }
        return yank(text, over: range)
    }

    private mutating func yank(_ text: String, over range: Range<Int>) -> Outcome {
        guard replace(range, with: text) else { return .limitReached }
        lastAction = .yank(min(range.lowerBound, cursor)..<cursor)
        return .handled
    }

    /// Swaps the clusters before and under the cursor. At the end of a line, swaps the two clusters
    /// before the cursor.
    private mutating func transpose() -> Outcome {
        var second = cursor
        if second == lineEnd { second -= 1 }
        guard second > lineStart else { return .handled }
        saveForUndo()
        lastAction = .other
        let swapped = String([clusters[second], clusters[second - 1]])
        _ = replace(second - 1..<second + 1, with: swapped)
        return .handled
    }

    // MARK: Undo

    private mutating func saveForUndo() {
        undoStack.append(draft)
        let kept = min(Self.maxUndo, Self.maxUndoCharacters / max(1, clusters.count) + 1)
        if undoStack.count > kept { undoStack.removeFirst(undoStack.count - kept) }
    }

    private mutating func undo() -> Outcome {
        lastAction = .other
        // Skips steps that changed nothing.
        while let saved = undoStack.popLast() {
            guard saved.text != text else { continue }
            clusters = Array(saved.text)
            cursor = min(saved.cursor, clusters.count)
            return .handled
        }
        return .ignored
    }
}

extension Character {
    fileprivate var isWordPart: Bool { isLetter || isNumber }
}
