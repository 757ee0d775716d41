/// Generates the Swift expression that reads one field, with the limits that the reader enforces.
struct ReadExpression {
    let field: Field
    let isHeldAgainstLimits: Bool

    func swift(of type: WireType) -> String { swift(of: type, level: 0) }

    /// - Parameter level: The number of the field's lists and maps that contain the value.
    private func swift(of type: WireType, level: Int) -> String {
        switch type {
        case .bool: return "try reader.readBool()"
        case .int, .ms: return "try reader.readInt()"
        case .double: return "try reader.readDouble()"
        case .chatID, .userID, .messageID: return "\(type.swift)(try reader.readID())"
        case .text:
            return "try reader.readText("
                + arguments(("maxUTF16", field.limitUnits), ("maxBytes", field.limitBytes)) + ")"
        case .string: return "try reader.readString(\(arguments(("maxBytes", field.limitBytes))))"
        case .bytes: return "try reader.readBytes(\(arguments(("maxBytes", field.limitBytes))))"
        case .any where isHeldAgainstLimits && field.anyCheck == .reader:
            return "try AnyValue.read(from: &reader, \(arguments(("maxBytes", field.limitBytes))))"
        case .list(let element):
            let inner = swift(of: element, level: level + 1)
            let arguments = containerArguments(level)
            return "try reader.readList\(arguments.isEmpty ? "" : "(\(arguments))") "
                + closure(element, inner)
        case .map(_, let value), .names(let value):
            let arguments = containerArguments(level)
            guard isHeldAgainstLimits, !arguments.isEmpty else {
                return "try \(type.swift).read(from: &reader)"
            }
            return "try \(type.swift).read(from: &reader, \(arguments)) "
                + closure(value, swift(of: value, level: level + 1))
        case .any, .packed, .named: return "try \(type.swift).read(from: &reader)"
        }
    }

    private func closure(_ type: WireType, _ body: String) -> String {
        "{ (reader: inout MessagePackReader) throws(PayloadError) -> \(type.swift) in \(body) }"
    }

    /// Returns the arguments for a list or map at a level: its limit, and how the reader handles
    /// duplicates.
    private func containerArguments(_ level: Int) -> String {
        var arguments = [arguments(("maxItems", field.limitItems(at: level)))]
            .filter { !$0.isEmpty }
        if isHeldAgainstLimits, let duplicates = field.duplicates, duplicates != .kept {
            arguments.append("duplicates: .\(duplicates.rawValue)")
        }
        return arguments.joined(separator: ", ")
    }

    /// Returns arguments for the limits that the field has.
    private func arguments(_ limits: (label: String, name: String?)...) -> String {
        guard isHeldAgainstLimits else { return "" }
        return limits.compactMap { limit in
            limit.name.map { "\(limit.label): reader.limits.\($0)" }
        }.joined(separator: ", ")
    }
}
