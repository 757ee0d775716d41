/// A type as written in the YAML: `int`, `list<Message>`, `map<userId, ms>`,
/// `packed<list<Element>>`.
indirect enum WireType: Hashable, Sendable {
    case bool, int, ms, double, text, string, bytes, any
    case chatID, userID, messageID
    case list(WireType)
    /// A map with ids as keys, which are digit strings on the wire.
    case map(key: WireType, value: WireType)
    /// A map with names as keys.
    case names(WireType)
    /// A value that is kept in its encoded form.
    case packed(WireType)
    /// A struct or enum of `types.yaml`.
    case named(String)

    private static let simple: [String: WireType] = [
        "bool": .bool, "int": .int, "ms": .ms, "double": .double, "text": .text,
        "string": .string, "bytes": .bytes, "any": .any,
        "chatId": .chatID, "userId": .userID, "messageId": .messageID,
    ]

    /// The maximum nesting depth of a type expression. No legal type needs a depth greater than
    /// three.
    static let mostNested = 32

    /// Returns whether an expression nests too deep. Each enclosing type has one `<`.
    static func isTooDeep(_ expression: String) -> Bool {
        expression.count { $0 == "<" } > mostNested
    }

    /// Reads a type expression; nil if it is invalid or nests too deep.
    init?(_ expression: String) {
        guard !WireType.isTooDeep(expression) else { return nil }
        let text = expression.filter { $0 != " " }
        if let simple = WireType.simple[text] {
            self = simple
            return
        }
        guard let open = text.firstIndex(of: "<") else {
            guard let first = text.first, first.isUppercase, text.allSatisfy(\.isLetterOrDigit)
            else {
                return nil
            }
            self = .named(text)
            return
        }
        guard text.last == ">" else { return nil }
        let inner = String(text[text.index(after: open)..<text.index(before: text.endIndex)])
        switch text[..<open] {
        case "list":
            guard let element = WireType(inner) else { return nil }
            self = .list(element)
        case "names":
            guard let value = WireType(inner) else { return nil }
            self = .names(value)
        case "packed":
            guard let value = WireType(inner) else { return nil }
            self = .packed(value)
        case "map":
            guard let comma = inner.firstIndex(of: ","),
                let key = WireType(String(inner[..<comma])), key.isID,
                let value = WireType(String(inner[inner.index(after: comma)...]))
            else { return nil }
            self = .map(key: key, value: value)
        default:
            return nil
        }
    }

    var isID: Bool { self == .chatID || self == .userID || self == .messageID }

    /// The names of the structs and enums in the type.
    var mentioned: [String] {
        switch self {
        case .named(let name): [name]
        case .list(let inner), .names(let inner), .packed(let inner): inner.mentioned
        case .map(_, let value): value.mentioned
        default: []
        }
    }

    /// The Swift type.
    var swift: String {
        switch self {
        case .bool: "Bool"
        case .int, .ms: "Int64"
        case .double: "Double"
        case .text: "Text"
        case .string: "String"
        case .bytes: "Bytes"
        case .any: "AnyValue"
        case .chatID: "ChatID"
        case .userID: "UserID"
        case .messageID: "MessageID"
        case .list(let element): "[\(element.swift)]"
        case .map(let key, let value): "IDMap<\(key.swift), \(value.swift)>"
        case .names(let value): "NameMap<\(value.swift)>"
        case .packed(let value): "Packed<\(value.swift)>"
        case .named(let name): name
        }
    }

    /// The type as written in the YAML.
    var yaml: String {
        switch self {
        case .list(let element): "list<\(element.yaml)>"
        case .map(let key, let value): "map<\(key.yaml), \(value.yaml)>"
        case .names(let value): "names<\(value.yaml)>"
        case .packed(let value): "packed<\(value.yaml)>"
        case .named(let name): name
        default: WireType.simple.first { $0.value == self }?.key ?? "?"
        }
    }
}

extension Character {
    var isLetterOrDigit: Bool { isLetter || isNumber }
}
