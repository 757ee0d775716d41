import TambourClient
import TambourProtocol
import TerminalKit

/// The form for signing in, shown while this device is not signed in to the account.
struct SignInForm {
    enum Step: Equatable {
        case address
        /// Asks for an invitation, because the server takes only invited people.
        case invitation
        case code(digits: Int)
        case name
        case password(hint: String?)
        /// Shows a QR code. A device that is already signed in scans the code, or its user enters
        /// the link.
        case qrCode(link: String)
    }

    struct Field {
        let label: String
        var editor: LineEditor
        var isSecret = false
        var isOptional = false
    }

    private(set) var step = Step.address
    private(set) var fields: [Field]
    private(set) var focused = 0
    /// A text about the request in progress, or nil between requests. During a request, the form
    /// takes no input, and Esc cancels the request.
    var working: String?
    var error: String?
    /// Who may create an account on the server.
    var policy = Client.RegistrationPolicy.open
    /// The name of the account that this sign-in adds to the accounts on this device; nil if it
    /// adds none, or if it is the first one.
    private let newAccount: String?

    init(server: String, phone: String? = nil, newAccount: String? = nil) {
        self.newAccount = newAccount
        fields = [
            Self.field("Server", server), Self.field("Phone", phone ?? "+"),
        ]
        // If the server is known, the focus is on the phone number, because users seldom change the
        // server.
        focused = server.isEmpty ? 0 : 1
    }

    private static func field(_ label: String, _ text: String = "") -> Field {
        var editor = LineEditor(limit: 120)
        editor.setText(text)
        return Field(label: label, editor: editor)
    }

    var values: [String] { fields.map { $0.editor.text.trimmed } }

    /// Shows the fields of a step.
    mutating func go(to step: Step, server: String = "", phone: String = "") {
        self.step = step
        working = nil
        error = nil
        focused = 0
        switch step {
        case .address:
            fields = [Self.field("Server", server), Self.field("Phone", phone)]
            focused = 1
        case .invitation:
            fields = [Field(label: "Invitation", editor: LineEditor(), isOptional: true)]
        case .code(let digits): fields = [Self.field("Code of \(digits) digits")]
        case .name: fields = [Self.field("Your name")]
        case .password: fields = [Field(label: "Password", editor: LineEditor(), isSecret: true)]
        case .qrCode: fields = []
        }
    }

    /// Shows an error. Erases a code or password that the server has refused, so that the next
    /// input is not appended to it.
    mutating func fail(_ error: String, isRefusal: Bool) {
        self.error = error
        guard isRefusal else { return }
        switch step {
        case .code, .password: fields[0].editor.setText("")
        case .address, .invitation, .name, .qrCode: break
        }
    }

    var title: String {
        switch step {
        case .address:
            newAccount.map { "Welcome! “\($0)” is a new account on this device" }
                ?? "Welcome to Tambour"
        case .invitation: "This server takes only invited people"
        case .code: "A code is on its way to you"
        case .name: "A new account: what are you called?"
        case .password: "This account has a password"
        case .qrCode: "Scan this with a device that is signed in"
        }
    }

    var hint: String {
        switch step {
        case .address: "tls://HOST or tcp://HOST:PORT. A new phone gets an account."
        case .invitation: "Leave it empty with an account or an invited phone."
        case .code:
            switch policy {
            case .open: "Where it comes is up to the server: a message, its console, a file."
            case .invite: "No code? Esc goes back to check phone and invitation."
            case .closed: "The server takes no new people: only accounts get a code."
            }
        case .name: "Others see it; /name changes it later."
        case .password(let hint): hint.map { "Hint: \($0)" } ?? ""
        case .qrCode(let link): "Or enter there: /approve \(link)"
        }
    }

    var showsQRCode: Bool {
        if case .qrCode = step { true } else { false }
    }

    /// The keys that the user can press in this step, and their meanings.
    var keys: [String] {
        switch step {
        case .address: ["Enter goes on", "Tab next", "Ctrl-R QR code", "Ctrl-Q leaves"]
        case .qrCode: ["Esc back", "Ctrl-Q leaves"]
        default: ["Enter goes on", "Esc back", "Ctrl-Q leaves"]
        }
    }

    /// - Returns: Whether the user submitted the form with all required fields filled in.
    mutating func handle(_ press: KeyPress) -> Bool {
        guard !fields.isEmpty else { return false }
        error = nil
        switch press.key {
        case .up: focused = max(0, focused - 1)
        case .down: focused = min(fields.count - 1, focused + 1)
        case .tab: focused = (focused + 1) % fields.count
        case .enter:
            let empty = values.indices.first {
                !fields[$0].isOptional && (values[$0].isEmpty || values[$0] == "+")
            }
            guard let empty else {
                return true
            }
            focused = empty
        default:
            _ = fields[focused].editor.handle(press)
            dropSecondPlus()
        }
        return false
    }

    mutating func paste(_ text: String) {
        guard !fields.isEmpty else { return }
        _ = fields[focused].editor.paste(text.oneLine)
        dropSecondPlus()
    }

    /// Removes the second plus at the start of the phone number. The field already contains a plus,
    /// but users may type another.
    private mutating func dropSecondPlus() {
        guard step == .address, fields[1].editor.text.hasPrefix("++") else { return }
        fields[1].editor.setText("+" + fields[1].editor.text.drop { $0 == "+" })
    }
}

extension ScreenView {
    /// Draws the form in the middle of an otherwise empty screen.
    func draw(_ form: SignInForm, _ theme: Theme, _ size: Size) -> Surface {
        if case .qrCode(let link) = form.step, let code = QRCode(link) {
            return draw(code, of: form, theme, size)
        }
        var surface = Surface(size: size)
        let columns = min(66, size.columns - 2)
        let fewest = form.fields.count * 2 + 7
        guard columns >= 30, size.rows >= fewest else {
            surface.draw("too small", at: Position(column: 0, row: 0))
            return surface
        }
        let error = form.error.map {
            TextLayout(shortening: $0.oneLine, to: size.rows - fewest + 1, width: columns - 6)
        }
        let errorRows = error?.lines.count ?? 1
        let rows = fewest - 1 + errorRows
        let box = Rect(
            column: (size.columns - columns) / 2,
            row: (size.rows - rows) / 3,
            columns: columns,
            rows: rows
        )
        surface.drawBox(box, title: form.title, style: theme[.border], titleStyle: theme[.title])
        let left = box.column + 3
        let inner = Rect(column: left, row: box.row, columns: columns - 6, rows: rows)
        let hint = Rect(column: left, row: box.row + 2, columns: inner.columns, rows: 1)
        surface.drawLine(
            form.hint.oneLine,
            in: hint,
            direction: .leftToRight,
            style: theme[.secondary]
        )
        for (index, field) in form.fields.enumerated() {
            let row = box.row + 4 + index * 2
            let line = Rect(column: left, row: row, columns: inner.columns, rows: 1)
            let isFocused = index == form.focused && form.working == nil
            let editor = field.isSecret ? field.editor.hidden : field.editor
            drawLine(
                editor,
                prompt: "\(field.label): ",
                isFocused: isFocused,
                theme,
                &surface,
                line
            )
        }
        let place = Position(column: left, row: box.endRow - 2 - errorRows)
        if let error {
            error.draw(
                on: &surface,
                at: place,
                style: theme[.error],
                theme: theme,
                in: inner
            )
        } else if let working = form.working {
            surface.draw("\(working)…", at: place, style: theme[.accent], in: inner)
        }
        let keys = form.keys.joined(separator: "   ")
        let short = form.keys.map { $0.prefix { $0 != " " } }.joined(separator: "  ")
        surface.draw(
            Width.of(keys) > inner.columns ? short : keys,
            at: Position(column: left, row: box.endRow - 2),
            style: theme[.secondary],
            in: inner
        )
        return surface
    }
}

extension ScreenView {
    /// Draws a QR code above its title, link and keys. On a screen that is too small, draws only
    /// the texts, without the code.
    private func draw(
        _ code: QRCode,
        of form: SignInForm,
        _ theme: Theme,
        _ size: Size
    ) -> Surface {
        var surface = Surface(size: size)
        let words = form.working.map { "\(form.title) (\($0)…)" } ?? form.title
        let keys = form.keys.joined(separator: "   ")
        var hint = [form.hint.oneLine]
        if Width.of(hint[0]) > size.columns, let space = hint[0].lastIndex(of: " ") {
            // The link must be on one line, so that it can be copied.
            hint = [String(hint[0][..<space]), String(hint[0][space...].dropFirst())]
        }
        var texts = [words] + hint + [keys]
        if code.lines.count + texts.count > size.rows { texts = ["\(words)   \(keys)"] + hint }
        let fits = code.columns <= size.columns && code.lines.count + texts.count <= size.rows
        let left = fits ? (size.columns - code.columns) / 2 : 0
        // QR readers need the contrast of white and black, whatever the theme is.
        let style = Style(.ansi(15), on: .ansi(0))
        for (row, line) in code.lines.enumerated() where fits {
            surface.draw(line, at: Position(column: left, row: row), style: style)
        }
        for (index, text) in texts.enumerated() {
            let row = (fits ? code.lines.count : 0) + index
            let column = max(0, min(left, size.columns - Width.of(text)))
            let style = index == 0 ? theme[.title] : theme[.secondary]
            surface.draw(text, at: Position(column: column, row: row), style: style)
        }
        return surface
    }
}

extension LineEditor {
    /// A copy of the line in which every character is replaced by a dot.
    var hidden: LineEditor {
        var line = self
        line.setText(String(repeating: "•", count: clusters.count))
        return line
    }
}

extension TextLayout {
    /// The maximum number of clusters that are laid out. The rest of the text is ignored.
    private static let longest = 1000

    /// Lays out a text in at most `rows` lines. A longer text ends with an ellipsis.
    fileprivate init(shortening text: String, to rows: Int, width: Int) {
        let text = text.prefix(Self.longest)
        let options = Options(width: width)
        let whole = TextLayout(String(text), options: options)
        guard whole.lines.count > rows else {
            self = whole
            return
        }
        let start = whole.lines[rows - 1].range.lowerBound
        let last = Width.shortened(text.dropFirst(start), to: width)
        self.init(text.prefix(start) + last, options: options)
    }
}
