/// Reads untyped values by the schema, as a peer must: the second opinion on what the generated readers do.
struct PayloadModel {
    let specification: Specification
    /// Limits that differ from the specification's.
    var overrides: [String: Int] = [:]

    /// Why a value is refused: the same words the runtime uses.
    struct Refusal: Error, Equatable, CustomStringConvertible {
        var path = ""
        var reason: String

        func within(_ step: String) -> Refusal { Refusal(path: "/\(step)\(path)", reason: reason) }

        var description: String { path.isEmpty ? reason : "\(path): \(reason)" }
    }

    /// The value in the form the server writes: known keys in schema order, defaults filled in, ids as integers.
    func canonical(_ node: WireNode, as type: StructType) throws(Refusal) -> WireNode {
        guard case .map(let pairs) = node else {
            throw Refusal(reason: "expected a map, found \(node.kind)")
        }
        var values: [String: WireNode] = [:]
        var seen: Set<String> = []
        for pair in pairs {
            guard case .string(let key) = pair.key,
                let field = type.fields.first(where: { $0.key == key })
            else {
                continue
            }
            do throws(Refusal) {
                guard seen.insert(key).inserted else { throw Refusal(reason: "duplicate key") }
                if pair.value == .null, !field.isRequired { continue }
                values[key] = try canonical(pair.value, as: field.type, of: field)
            } catch {
                throw error.within(key)
            }
        }
        var result: [WireNode.Pair] = []
        for field in type.fields {
            if let value = values[field.key] ?? field.defaultValue.map(Self.node(of:)) {
                result.append(.init(key: .string(field.key), value: value))
            } else if field.isRequired {
                throw Refusal(reason: "missing").within(field.key)
            }
        }
        return .map(result)
    }

    static func node(of value: DefaultValue) -> WireNode {
        switch value {
        case .bool(let bool): .bool(bool)
        case .int(let int): .int(int)
        case .string(let string): .string(string)
        case .emptyList: .array([])
        case .emptyMap: .map([])
        }
    }

    private func canonical(_ node: WireNode, as type: WireType, of field: Field) throws(Refusal)
        -> WireNode
    {
        switch type {
        case .bool:
            guard case .bool = node else { throw unexpected("a boolean", node) }
            return node
        case .int, .ms: return .int(try int(node))
        case .chatID, .userID, .messageID: return .int(try id(node))
        case .double:
            if case .int(let int) = node { return .double(Double(int)) }
            guard case .double = node else { throw unexpected("a number", node) }
            return node
        case .text, .string:
            if case .badString = node { throw Refusal(reason: "not valid UTF-8") }
            guard case .string(let text) = node else { throw unexpected("a string", node) }
            try check(text.utf8.count, "bytes", field.limitBytes)
            try check(text.utf16.count, "UTF-16 units", field.limitUnits)
            return node
        case .bytes:
            switch node {
            case .bytes(let bytes): try check(bytes.count, "bytes", field.limitBytes)
            case .string(let text): try check(text.utf8.count, "bytes", field.limitBytes)
            default: throw unexpected("bytes", node)
            }
            return node
        case .any: return node
        case .list(let element):
            guard case .array(let items) = node else { throw unexpected("an array", node) }
            try check(items.count, "items", field.limitItems)
            var result: [WireNode] = []
            for (index, item) in items.enumerated() {
                do throws(Refusal) {
                    result.append(try canonical(item, as: element, of: field))
                } catch {
                    throw error.within("\(index)")
                }
            }
            return .array(result)
        case .map(_, let value):
            guard case .map(let pairs) = node else { throw unexpected("a map", node) }
            var result: [WireNode.Pair] = []
            for pair in pairs {
                let key = "\(try id(pair.key))"
                do throws(Refusal) {
                    result.append(
                        .init(
                            key: .string(key),
                            value: try canonical(pair.value, as: value, of: field)
                        )
                    )
                } catch {
                    throw error.within(key)
                }
            }
            return .map(result)
        case .names(let value):
            guard case .map(let pairs) = node else { throw unexpected("a map", node) }
            var result: [WireNode.Pair] = []
            for pair in pairs {
                guard case .string(let name) = pair.key else {
                    throw unexpected("a string", pair.key)
                }
                do throws(Refusal) {
                    result.append(
                        .init(
                            key: .string(name),
                            value: try canonical(pair.value, as: value, of: field)
                        )
                    )
                } catch {
                    throw error.within(name)
                }
            }
            return .map(result)
        case .packed(let inner): return try canonical(node, as: inner, of: field)
        case .named(let name):
            if let type = specification.structType(named: name) {
                return try canonical(node, as: type)
            }
            guard let type = specification.enumType(named: name) else { return node }
            if case .badString = node { throw Refusal(reason: "not valid UTF-8") }
            guard case .string(let text) = node else { throw unexpected("a string", node) }
            try check(text.utf8.count, "bytes", "maxShortStringBytes")
            guard type.isOpen || type.values.contains(where: { $0.value == text }) else {
                throw Refusal(reason: "unknown value \"\(text)\"")
            }
            return node
        }
    }

    private func unexpected(_ expected: String, _ node: WireNode) -> Refusal {
        Refusal(reason: "expected \(expected), found \(node.kind)")
    }

    private func int(_ node: WireNode, expected: String = "an integer") throws(Refusal) -> Int64 {
        if case .uint = node { throw Refusal(reason: "an integer above \(Int64.max)") }
        guard case .int(let value) = node else { throw unexpected(expected, node) }
        return value
    }

    private func id(_ node: WireNode) throws(Refusal) -> Int64 {
        guard case .string(let text) = node else { return try int(node, expected: "an id") }
        guard let value = Int64(text), text.first != "+" else {
            throw Refusal(reason: "expected an id, found a string that is not one")
        }
        return value
    }

    private func check(_ count: Int, _ unit: String, _ limit: String?) throws(Refusal) {
        guard let limit, let most = overrides[limit] ?? specification.limit(named: limit)?.value
        else { return }
        if count > most { throw Refusal(reason: "\(count) \(unit), limit \(most)") }
    }
}
