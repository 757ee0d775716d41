/// Reads untyped values by the schema, as every peer must. Serves as an independent check of the
/// generated readers.
struct PayloadModel {
    let specification: Specification
    private let inboundTypes: Set<String>
    /// The limits whose values differ from the specification, by name.
    var overrides: [String: Int] = [:]

    init(specification: Specification) {
        self.specification = specification
        inboundTypes = specification.inboundTypes
    }

    /// The field that contains a value, and the rules for this value.
    private struct Place {
        let field: Field
        let isHeldAgainstLimits: Bool
        /// The number of the field's lists and maps that contain the value.
        var level = 0

        var inner: Place {
            var inner = self
            inner.level += 1
            return inner
        }
    }

    /// The reason why a value is rejected. The wording equals the wording of the runtime's errors.
    struct Refusal: Error, Equatable, CustomStringConvertible {
        var path = ""
        var reason: String

        func within(_ step: String) -> Refusal { Refusal(path: "/\(step)\(path)", reason: reason) }

        var description: String { path.isEmpty ? reason : "\(path): \(reason)" }
    }

    /// Returns the value in the form in which the server writes it: only known keys, in schema
    /// order, with defaults filled in, and ids as integers.
    func canonical(_ node: WireNode, as type: StructType) throws(Refusal) -> WireNode {
        guard case .map(let pairs) = node else {
            throw Refusal(reason: "expected a map, found \(node.kind)")
        }
        let isHeldAgainstLimits = type.isHeldAgainstLimits(inboundTypes)
        var values: [String: WireNode] = [:]
        var seen: Set<String> = []
        for pair in pairs {
            guard case .string(let name) = pair.key,
                let field = type.field(under: name)
            else {
                continue
            }
            let key = field.key
            do throws(Refusal) {
                guard seen.insert(key).inserted else { throw Refusal(reason: "duplicate key") }
                if pair.value == .null, !field.isRequired { continue }
                let place = Place(field: field, isHeldAgainstLimits: isHeldAgainstLimits)
                values[key] = try canonical(pair.value, as: field.type, in: place)
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

    private func canonical(_ node: WireNode, as type: WireType, in place: Place) throws(Refusal)
        -> WireNode
    {
        let field = place.field
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
            try check(text.utf8.count, "bytes", field.limitBytes, place)
            try check(text.utf16.count, "UTF-16 units", field.limitUnits, place)
            return node
        case .bytes:
            switch node {
            case .bytes(let bytes): try check(bytes.count, "bytes", field.limitBytes, place)
            case .string(let text): try check(text.utf8.count, "bytes", field.limitBytes, place)
            default: throw unexpected("bytes", node)
            }
            return node
        case .any:
            guard place.isHeldAgainstLimits, field.anyCheck == .reader else { return node }
            try checkDecodable(node, levels: limit("maxAnyDepth") ?? .max)
            try check(WireEncoder.encode(node).count, "bytes", field.limitBytes, place)
            return node
        case .list(let element):
            guard case .array(let items) = node else { throw unexpected("an array", node) }
            try checkItems(items.count, place)
            var result: [WireNode] = []
            for (index, item) in items.enumerated() {
                do throws(Refusal) {
                    result.append(try canonical(item, as: element, in: place.inner))
                } catch {
                    throw error.within("\(index)")
                }
            }
            return .array(try merged(result, place))
        case .map(_, let value):
            return try canonicalMap(node, as: value, in: place) { (key) throws(Refusal) in
                "\(try id(key))"
            }
        case .names(let value):
            return try canonicalMap(node, as: value, in: place) { (key) throws(Refusal) in
                guard case .string(let name) = key else { throw unexpected("a string", key) }
                return name
            }
        case .packed(let inner): return try canonical(node, as: inner, in: place)
        case .named(let name):
            if let type = specification.structType(named: name) {
                return try canonical(node, as: type)
            }
            guard let type = specification.enumType(named: name) else { return node }
            if case .badString = node { throw Refusal(reason: "not valid UTF-8") }
            guard case .string(let text) = node else { throw unexpected("a string", node) }
            try check(text.utf8.count, "bytes", "maxShortStringBytes")
            if let known = type.values.first(where: { $0.aliases.contains(text) }) {
                return .string(known.value)
            }
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

    private func canonicalMap(
        _ node: WireNode,
        as value: WireType,
        in place: Place,
        _ key: (WireNode) throws(Refusal) -> String
    ) throws(Refusal) -> WireNode {
        guard case .map(let pairs) = node else { throw unexpected("a map", node) }
        try checkItems(pairs.count, place)
        let duplicates = place.isHeldAgainstLimits ? place.field.duplicates : nil
        var result: [WireNode.Pair] = []
        for pair in pairs {
            let key = try key(pair.key)
            do throws(Refusal) {
                let seen = result.firstIndex { $0.key == .string(key) }
                if seen != nil, duplicates == .refused { throw Refusal(reason: "duplicate key") }
                let value = try canonical(pair.value, as: value, in: place.inner)
                if let seen, duplicates == .merged {
                    result[seen].value = value
                } else {
                    result.append(.init(key: .string(key), value: value))
                }
            } catch {
                throw error.within(key)
            }
        }
        return .map(result)
    }

    /// Returns the items of a list. If the field merges duplicates, removes repeated items. If the
    /// field refuses duplicates, throws for a repeated item.
    private func merged(_ items: [WireNode], _ place: Place) throws(Refusal) -> [WireNode] {
        guard place.isHeldAgainstLimits, let duplicates = place.field.duplicates,
            duplicates != .kept
        else { return items }
        var kept: [WireNode] = []
        for (index, item) in items.enumerated() {
            guard kept.contains(item) else {
                kept.append(item)
                continue
            }
            if duplicates == .refused {
                throw Refusal(reason: "duplicate item").within("\(index)")
            }
        }
        return kept
    }

    // MARK: Values that every client can decode

    private func checkDecodable(_ node: WireNode, levels: Int) throws(Refusal) {
        switch node {
        case .badString: throw Refusal(reason: "not valid UTF-8")
        case .uint: throw Refusal(reason: "an integer above \(Int64.max)")
        case .ext: throw Refusal(reason: "an extension, which clients cannot read")
        case .forced(_, let inner): try checkDecodable(inner, levels: levels)
        case .array(let items):
            try checkLevels(levels)
            for item in items { try checkDecodable(item, levels: levels - 1) }
        case .map(let pairs):
            try checkLevels(levels)
            for pair in pairs {
                if case .badString = pair.key { throw Refusal(reason: "not valid UTF-8") }
                guard case .string = pair.key else {
                    throw Refusal(reason: "expected a string as a key, found \(pair.key.kind)")
                }
                try checkDecodable(pair.value, levels: levels - 1)
            }
        case .null, .bool, .int, .double, .string, .bytes, .raw: return
        }
    }

    private func checkLevels(_ levels: Int) throws(Refusal) {
        guard levels > 0 else {
            throw Refusal(reason: "nested deeper than \(limit("maxAnyDepth") ?? .max)")
        }
    }

    // MARK: Limits

    private func limit(_ name: String) -> Int? {
        overrides[name] ?? specification.limit(named: name)?.value
    }

    private func checkItems(_ count: Int, _ place: Place) throws(Refusal) {
        try check(count, "items", place.field.limitItems(at: place.level), place)
    }

    private func check(
        _ count: Int,
        _ unit: String,
        _ limit: String?,
        _ place: Place
    ) throws(Refusal) {
        guard place.isHeldAgainstLimits else { return }
        try check(count, unit, limit)
    }

    private func check(_ count: Int, _ unit: String, _ name: String?) throws(Refusal) {
        guard let name, let most = limit(name) else { return }
        if count > most { throw Refusal(reason: "\(count) \(unit), limit \(most)") }
    }
}
