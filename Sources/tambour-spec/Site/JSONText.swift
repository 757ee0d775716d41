/// Formats a value as JSON for people. Keys keep their original order, and short containers are
/// written on one line.
///
/// A byte string is `{"$bytes": "hex"}`, as in the bundle.
struct JSONText {
    private let node: WireNode
    /// The maximum length of a line, if the line can be broken.
    private static let width = 76

    init(_ node: WireNode) {
        self.node = node
    }

    /// Returns the value on one line, truncated to `most` characters.
    func compact(most: Int = .max) -> String {
        var pieces = Pieces()
        write(node, to: &pieces)
        guard pieces.count > most else { return pieces.text }
        return pieces.text.prefix(most - 1) + "…"
    }

    /// Returns the value on several lines, with an HTML element for each token.
    func html() -> String {
        var pieces = Pieces()
        write(node, to: &pieces, indent: 0, used: 0)
        return pieces.html
    }

    /// Returns the value on several lines.
    func text() -> String {
        var pieces = Pieces()
        write(node, to: &pieces, indent: 0, used: 0)
        return pieces.text
    }

    /// The same text in two forms, plain and as HTML.
    private struct Pieces {
        var text = ""
        var html = ""

        var count: Int { text.count }

        /// - Parameter kind: The token's class for syntax highlighting; nil for white space.
        mutating func put(_ piece: String, _ kind: String?) {
            text += piece
            let escaped = HTML.escaped(piece)
            html += kind.map { "<span class=\"\($0)\">\(escaped)</span>" } ?? escaped
        }
    }

    private func write(_ node: WireNode, to pieces: inout Pieces, indent: Int, used: Int) {
        var line = Pieces()
        write(node, to: &line)
        if used + line.count <= Self.width {
            pieces.text += line.text
            pieces.html += line.html
            return
        }
        let inner = indent + 2
        let blanks = "\n" + String(repeating: " ", count: inner)
        switch node {
        case .array(let items):
            pieces.put("[", "p")
            for (index, item) in items.enumerated() {
                pieces.put(index == 0 ? blanks : "," + blanks, "p")
                write(item, to: &pieces, indent: inner, used: inner)
            }
            pieces.put("\n" + String(repeating: " ", count: indent) + "]", "p")
        case .map(let pairs):
            pieces.put("{", "p")
            for (index, pair) in pairs.enumerated() {
                pieces.put(index == 0 ? blanks : "," + blanks, "p")
                let key = Self.key(pair.key)
                pieces.put(key, "nt")
                pieces.put(": ", "p")
                write(pair.value, to: &pieces, indent: inner, used: inner + key.count + 2)
            }
            pieces.put("\n" + String(repeating: " ", count: indent) + "}", "p")
        default:
            pieces.text += line.text
            pieces.html += line.html
        }
    }

    private func write(_ node: WireNode, to pieces: inout Pieces) {
        switch node {
        case .null: pieces.put("null", "kc")
        case .bool(let bool): pieces.put(bool ? "true" : "false", "kc")
        case .int(let int): pieces.put("\(int)", "mi")
        case .uint(let uint): pieces.put("\(uint)", "mi")
        case .double(let double): pieces.put("\(double)", "mf")
        case .string(let string): pieces.put(Self.quoted(string), "s2")
        case .badString(let bytes), .bytes(let bytes), .raw(let bytes), .ext(_, let bytes):
            write(
                .map([.init(key: .string("$bytes"), value: .string(Hex.text(bytes)))]),
                to: &pieces
            )
        case .array(let items):
            pieces.put("[", "p")
            for (index, item) in items.enumerated() {
                if index > 0 { pieces.put(", ", "p") }
                write(item, to: &pieces)
            }
            pieces.put("]", "p")
        case .map(let pairs):
            pieces.put("{", "p")
            for (index, pair) in pairs.enumerated() {
                if index > 0 { pieces.put(", ", "p") }
                pieces.put(Self.key(pair.key), "nt")
                pieces.put(": ", "p")
                write(pair.value, to: &pieces)
            }
            pieces.put("}", "p")
        case .forced(_, let inner): write(inner, to: &pieces)
        }
    }

    private static func key(_ node: WireNode) -> String {
        if case .string(let text) = node { return quoted(text) }
        return quoted(JSONText(node).compact())
    }

    private static func quoted(_ text: String) -> String {
        var result = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": result += "\\\""
            case "\\": result += "\\\\"
            case "\n": result += "\\n"
            case "\r": result += "\\r"
            case "\t": result += "\\t"
            case _ where scalar.value < 0x20:
                let digits = String(scalar.value, radix: 16)
                result += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result + "\""
    }
}
