import Foundation

/// Formats a payload as indented lines, with a remark after each unknown or invalid value.
struct PayloadText {
    let specification: Specification
    /// Whether the lines show tokens, codes and phone numbers.
    var showsSecrets: Bool
    private let secretKeys: Set<String>

    init(specification: Specification, showsSecrets: Bool = false) {
        self.specification = specification
        self.showsSecrets = showsSecrets
        secretKeys = Set(specification.maps.flatMap(\.fields).filter(\.isSensitive).map(\.key))
    }

    static let secret = "(secret)"

    /// A value, and what the schema expects at its place. `field` is nil if the value belongs to no
    /// field.
    private struct Place {
        var name: String
        var node: WireNode
        var field: Field?
        var type: WireType?
        var isSecret = false
        var marks: [String] = []
    }

    /// Returns the lines of a payload.
    /// - Parameter type: The expected type; nil if the specification does not define it.
    func lines(of node: WireNode, as type: StructType?) -> [String] {
        guard case .map(let pairs) = node else {
            var place = Place(name: "payload", node: node)
            if type != nil { place.marks.append("expected a map, found \(node.kind)") }
            return lines(of: place, depth: 0)
        }
        if let type { return members(pairs, of: type, path: "", depth: 0) }
        return entries(pairs, depth: 0)
    }

    private func lines(of place: Place, depth: Int, path: String = "") -> [String] {
        let indent = String(repeating: "  ", count: depth)
        let isHidden = place.isSecret && !showsSecrets
        let text = isHidden ? Self.secret : text(of: place.node, as: place.type)
        let marks =
            place.marks.isEmpty ? "" : "  # " + Self.printable(place.marks.joined(separator: "; "))
        let line = "\(indent)\(place.name): \(text)\(marks)"
        guard !isHidden else { return [line] }
        return [line] + inner(of: place, path: path, depth: depth + 1)
    }

    /// Returns the lines of the values that a list, a map or a packed value contains.
    private func inner(of place: Place, path: String, depth: Int) -> [String] {
        switch (place.node, place.type) {
        case (_, .packed(let type)?):
            var place = place
            place.type = type
            return inner(of: place, path: path, depth: depth)
        case (.map(let pairs), .named(let name)?):
            guard let type = specification.structType(named: name) else {
                return entries(pairs, depth: depth)
            }
            return members(pairs, of: type, path: path, depth: depth)
        case (.map(let pairs), .map(_, let type)?), (.map(let pairs), .names(let type)?):
            return pairs.flatMap { pair in
                let name = name(of: pair.key)
                return value(name, pair.value, type, place.field, "\(path)/\(name)", depth)
            }
        case (.map(let pairs), _):
            return entries(pairs, depth: depth)
        case (.array(let items), .list(let type)?):
            return items.enumerated().flatMap { index, item in
                value("\(index)", item, type, place.field, "\(path)/\(index)", depth)
            }
        case (.array(let items), _):
            return items.enumerated().flatMap { index, item in
                lines(of: Place(name: "\(index)", node: item), depth: depth)
            }
        default: return []
        }
    }

    /// Returns the lines of one item of a field's list, or of one entry of a field's map.
    private func value(
        _ name: String,
        _ node: WireNode,
        _ type: WireType,
        _ field: Field?,
        _ path: String,
        _ depth: Int
    ) -> [String] {
        var place = Place(name: name, node: node, field: field, type: type)
        if let field, let reason = refusal(of: node, as: type, field, isRequired: true) {
            place.marks.append(reason)
        }
        return lines(of: place, depth: depth, path: path)
    }

    /// Returns the lines of a map for which there is no schema.
    private func entries(_ pairs: [WireNode.Pair], depth: Int) -> [String] {
        pairs.flatMap { pair in
            let place = Place(
                name: name(of: pair.key),
                node: pair.value,
                isSecret: isSecretSomewhere(pair.key)
            )
            return lines(of: place, depth: depth)
        }
    }

    /// Returns the lines of a map that has a schema. Adds a remark for each required key that is
    /// missing.
    private func members(
        _ pairs: [WireNode.Pair],
        of type: StructType,
        path: String,
        depth: Int
    ) -> [String] {
        var lines: [String] = []
        var seen: Set<String> = []
        for pair in pairs {
            guard case .string(let key) = pair.key,
                let field = type.field(under: key)
            else {
                let place = Place(
                    name: name(of: pair.key),
                    node: pair.value,
                    isSecret: isSecretSomewhere(pair.key),
                    marks: ["unknown key"]
                )
                lines += self.lines(of: place, depth: depth)
                continue
            }
            var place = Place(
                name: Self.escaped(key),
                node: pair.value,
                field: field,
                type: field.type,
                isSecret: field.isSensitive
            )
            if !seen.insert(field.key).inserted {
                place.marks.append("duplicate key")
                place.type = nil
            } else if let reason = refusal(
                of: pair.value,
                as: field.type,
                field,
                isRequired: field.isAlwaysThere
            ) {
                place.marks.append(reason)
            }
            lines += self.lines(of: place, depth: depth, path: "\(path)/\(key)")
        }
        let indent = String(repeating: "  ", count: depth)
        for field in type.fields where field.isAlwaysThere && !seen.contains(field.key) {
            lines.append("\(indent)# \(path)/\(field.key): missing")
        }
        return lines
    }

    /// Returns the reason why a whole value is rejected. Returns nil if the value is accepted, or
    /// if the reason concerns only a part of it.
    private func refusal(
        of node: WireNode,
        as type: WireType,
        _ field: Field,
        isRequired: Bool
    ) -> String? {
        var field = field
        field.type = type
        field.isRequired = isRequired
        field.defaultValue = nil
        let alone = StructType(
            name: "",
            role: .request,
            doc: "",
            since: 1,
            fields: [field],
            origin: field.origin
        )
        let pair = WireNode.Pair(key: .string(field.key), value: node)
        do throws(PayloadModel.Refusal) {
            _ = try PayloadModel(specification: specification).canonical(.map([pair]), as: alone)
            return nil
        } catch {
            return error.path == "/\(field.key)" ? error.reason : nil
        }
    }

    /// Returns whether any struct declares this key secret. The value of such a key is masked even
    /// where there is no schema.
    private func isSecretSomewhere(_ key: WireNode) -> Bool {
        guard case .string(let key) = key else { return false }
        return secretKeys.contains(key)
    }

    // MARK: Values

    private func name(of key: WireNode) -> String {
        switch key {
        case .string(let text): Self.name(text)
        case .badString(let bytes): "not UTF-8: \(Hex.text(bytes))"
        case .int, .uint, .bool, .null, .double: text(of: key, as: nil)
        default: key.kind
        }
    }

    /// Returns the text of a key. Adds quotes if the key could be misread without them.
    private static func name(_ key: String) -> String {
        let isPlain =
            !key.isEmpty && !key.hasPrefix(" ") && !key.hasSuffix(" ") && !key.contains(": ")
        return isPlain ? escaped(key) : "\"\(escaped(key))\""
    }

    private func text(of node: WireNode, as type: WireType?) -> String {
        switch node {
        case .null: "nil"
        case .bool(let bool): bool ? "true" : "false"
        case .int(let int): type == .ms ? "\(int)\(Self.time(int))" : "\(int)"
        case .uint(let uint): "\(uint)"
        // All NaN values are written as "nan". The additional bits of a NaN have no meaning, and
        // Wireshark cannot show them.
        case .double(let double): double.isNaN ? "nan" : "\(double)"
        case .string(let text): "\"\(Self.escaped(text))\""
        case .badString(let bytes): "not UTF-8: \(Hex.text(bytes))"
        case .bytes(let bytes): "bytes \(Hex.text(bytes))"
        case .ext(let type, let bytes): "extension \(UInt8(bitPattern: type)): \(Hex.text(bytes))"
        case .array(let items): items.count == 1 ? "1 item" : "\(items.count) items"
        case .map(let pairs): pairs.count == 1 ? "1 key" : "\(pairs.count) keys"
        case .forced(_, let inner): text(of: inner, as: type)
        case .raw(let bytes): "raw \(Hex.text(bytes))"
        }
    }

    /// Formats Unix milliseconds as a time in parentheses. Returns an empty text if the number is
    /// not a plausible time.
    private static func time(_ milliseconds: Int64) -> String {
        guard (1..<253_402_300_800_000).contains(milliseconds) else { return "" }
        let style = Date.ISO8601FormatStyle(timeZone: .gmt).year().month().day()
            .dateTimeSeparator(.space).time(includingFractionalSeconds: false)
        let seconds = Date(timeIntervalSince1970: Double(milliseconds / 1000)).formatted(style)
        let rest = String(milliseconds % 1000)
        return " (\(seconds).\(String(repeating: "0", count: 3 - rest.count))\(rest) UTC)"
    }

    /// Escapes control characters, quotes and backslashes, so that the text is safe between quotes.
    static func escaped(_ text: String) -> String {
        printable(text.replacing("\\", with: "\\\\").replacing("\"", with: "\\\""))
    }

    /// Escapes control characters, because some of them move a terminal's cursor.
    private static func printable(_ text: String) -> String {
        var result = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\n": result += "\\n"
            case "\r": result += "\\r"
            case "\t": result += "\\t"
            case "\u{0}"..."\u{1F}", "\u{7F}"..."\u{9F}":
                let digits = String(scalar.value, radix: 16)
                result += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result
    }
}
