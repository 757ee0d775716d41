extension PayloadModel {
    /// Returns a canonical value in the form in which the server writes it in a dialect. Serves as
    /// an independent check of the generated writers.
    func projected(_ node: WireNode, as type: StructType, in dialect: String) -> WireNode {
        guard case .map(let pairs) = node else { return node }
        let dialects = Set(specification.dialects(in: dialect).map(\.name))
        return .map(
            pairs.compactMap { pair in
                guard case .string(let key) = pair.key,
                    let field = type.fields.first(where: { $0.key == key })
                else { return pair }
                var value = projected(pair.value, as: field.type, in: dialect)
                for form in field.forms where dialects.contains(form.dialect) {
                    guard let changed = form.change.applied(to: value) else { return nil }
                    value = changed
                }
                return .init(key: pair.key, value: value)
            }
        )
    }

    private func projected(_ node: WireNode, as type: WireType, in dialect: String) -> WireNode {
        switch (type, node) {
        case (.named(let name), _):
            guard let type = specification.structType(named: name) else { return node }
            return projected(node, as: type, in: dialect)
        case (.packed(let inner), _): return projected(node, as: inner, in: dialect)
        case (.list(let item), .array(let items)):
            return .array(items.map { projected($0, as: item, in: dialect) })
        case (.map(_, let value), .map(let pairs)), (.names(let value), .map(let pairs)):
            return .map(
                pairs.map {
                    .init(key: $0.key, value: projected($0.value, as: value, in: dialect))
                }
            )
        default: return node
        }
    }
}

extension DialectForm.Change {
    /// Returns the value in the dialect; nil if the dialect omits it.
    fileprivate func applied(to value: WireNode) -> WireNode? {
        switch (self, value) {
        case (.absent, _): nil
        case (.words, .array(let items)): .array(items.compactMap { applied(to: $0) })
        case (.words(let words), .string(let text)): .string(words[text] ?? text)
        case (.prefix(let prefix), .string(let text)): .string(prefix + text)
        case (.leavesOut(let key, let number), .array(let items)):
            .array(items.filter { $0[key] != .int(Int64(number)) })
        default: value
        }
    }
}
