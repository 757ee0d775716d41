import Foundation

@testable import tambour_spec

/// The values that the filter fields must have. They are grouped by key and in the order of the
/// payload.
///
/// If a key has one scalar type in the whole specification, its filter field has that type.
/// Sensitive keys and keys with several types are strings.
struct FieldValues {
    let specification: Specification
    var showsSecrets = false
    /// Whether to collect only secrets.
    var onlySecrets = false

    private enum Kind { case bool, integer, float, string }

    init(specification: Specification) {
        self.specification = specification
        let payloads = specification.families.flatMap(\.opcodes).flatMap {
            [$0.request, $0.reply, $0.push].compactMap { $0 }
        }
        for field in (specification.structs + payloads).flatMap(\.fields) {
            guard let kind = field.isSensitive ? .string : kind(of: field.type) else { continue }
            kinds[field.key] = kinds[field.key, default: kind] == kind ? kind : .string
        }
    }

    private var kinds: [String: Kind] = [:]

    private func kind(of type: WireType) -> Kind? {
        switch type {
        case .bool: .bool
        case .int, .ms, .chatID, .userID, .messageID: .integer
        case .double: .float
        case .text, .string, .bytes: .string
        case .any: nil
        case .list(let inner), .packed(let inner), .names(let inner), .map(_, let inner):
            kind(of: inner)
        case .named(let name): specification.enumType(named: name) == nil ? nil : .string
        }
    }

    private func isContainer(_ node: WireNode) -> Bool {
        switch node {
        case .map, .array: true
        default: false
        }
    }

    /// Adds the values of a payload.
    func collect(_ node: WireNode, _ type: StructType, into found: inout [String: [String]]) {
        guard case .map(let pairs) = node else { return }
        var seen: Set<String> = []
        for pair in pairs {
            guard case .string(let name) = pair.key, let field = type.field(under: name) else {
                continue
            }
            let key = field.key
            if field.isSensitive, !showsSecrets {
                found[key, default: []].append("(secret)")
                continue
            }
            // A container has no value of its own. Its filter field only shows that the container
            // is present.
            if kinds[key] == nil, isContainer(pair.value), !onlySecrets {
                found[key, default: []].append("1")
            }
            if seen.insert(key).inserted {
                collect(pair.value, field.type, field, into: &found)
            } else {
                collect(pair.value, .any, field, into: &found)
            }
        }
    }

    private func collect(
        _ node: WireNode,
        _ type: WireType,
        _ field: Field,
        into found: inout [String: [String]]
    ) {
        switch (node, type) {
        case (_, .packed(let inner)): collect(node, inner, field, into: &found)
        case (.array(let items), .list(let inner)):
            for item in items { collect(item, inner, field, into: &found) }
        case (.array(let items), _):
            for item in items { collect(item, .any, field, into: &found) }
        case (.map(let pairs), .map(_, let inner)), (.map(let pairs), .names(let inner)):
            for pair in pairs { collect(pair.value, inner, field, into: &found) }
        case (.map, .named(let name)):
            guard let type = specification.structType(named: name) else { return }
            collect(node, type, into: &found)
        case (.map, _): break
        default:
            guard !onlySecrets || field.isSensitive, let text = text(node, type, field) else {
                return
            }
            found[field.key, default: []].append(text)
        }
    }

    /// Returns a scalar as text in the form of the key's kind; nil if the scalar does not have this
    /// kind.
    private func text(_ node: WireNode, _ type: WireType, _ field: Field) -> String? {
        switch (kinds[field.key], node) {
        case (.bool?, .bool(let bool)): bool ? "1" : "0"
        case (.integer?, .int(let int)): "\(int)"
        case (.integer?, .string(let text)) where type.isID && text.first != "+":
            Int64(text).map { "\($0)" }
        case (.float?, .double(let double)): String(format: "%.15g", double)
        case (.float?, .int(let int)): "\(int)"
        case (.string?, .string(let text)): text
        case (.string?, .int(let int)): "\(int)"
        case (.string?, .uint(let uint)): "\(uint)"
        case (.string?, .bool(let bool)): bool ? "true" : "false"
        case (.string?, .null): "nil"
        default: nil
        }
    }
}
