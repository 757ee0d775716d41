@testable import tambour_spec

/// One step from a request's payload to a value inside it.
enum SiteStep: Hashable, Sendable, CustomStringConvertible {
    case key(String)
    /// The first item of a list.
    case item
    /// The key or the value of a map's first entry.
    case entryKey
    case entryValue

    var description: String {
        switch self {
        case .key(let key): "/\(key)"
        case .item: "/0"
        case .entryKey: "/*key"
        case .entryValue: "/*"
        }
    }
}

/// A place in an opcode's request, with the type that the specification gives it.
struct FuzzSite: Sendable {
    let opcode: OpcodeEntry
    let steps: [SiteStep]
    let type: WireType
    /// The field that contains the value, with the field's limits.
    let field: Field

    var description: String { opcode.name + steps.map(\.description).joined() }

    var isNumber: Bool { type == .int || type == .ms || type.isID }

    /// Returns the limit of this value, in items, bytes or UTF-16 units.
    func limit(in specification: Specification) -> Int? {
        let name =
            switch type {
            case .list, .map, .names, .packed: first(of: field.limitItems)
            default: field.limitUnits ?? field.limitBytes
            }
        return name.flatMap { specification.limit(named: $0)?.value }
    }

    /// Returns all places in an opcode's request, outer places first.
    static func sites(of opcode: OpcodeEntry, in specification: Specification) -> [FuzzSite] {
        guard let request = opcode.request else { return [] }
        var walk = Walk(opcode: opcode, specification: specification)
        walk.enter(request, at: [], within: [])
        return walk.sites
    }

    private struct Walk {
        let opcode: OpcodeEntry
        let specification: Specification
        var sites: [FuzzSite] = []

        mutating func enter(_ type: StructType, at steps: [SiteStep], within names: Set<String>) {
            for field in type.fields {
                add(field.type, field, at: steps + [.key(field.key)], within: names)
            }
        }

        mutating func add(
            _ type: WireType,
            _ field: Field,
            at steps: [SiteStep],
            within names: Set<String>
        ) {
            if case .packed(let inner) = type {
                add(inner, field, at: steps, within: names)
                return
            }
            sites.append(FuzzSite(opcode: opcode, steps: steps, type: type, field: field))
            switch type {
            case .list(let item): add(item, field, at: steps + [.item], within: names)
            case .map(let key, let value):
                add(key, field, at: steps + [.entryKey], within: names)
                add(value, field, at: steps + [.entryValue], within: names)
            case .names(let value):
                add(.string, field, at: steps + [.entryKey], within: names)
                add(value, field, at: steps + [.entryValue], within: names)
            case .named(let name):
                // Enter a recursive type only once: the first visit covers its sites.
                guard !names.contains(name), let inner = specification.structType(named: name)
                else { return }
                enter(inner, at: steps, within: names.union([name]))
            default: break
            }
        }
    }
}

/// Returns the name of a field's item limit. If the field has several limits, returns the name of
/// the outermost limit.
func first(of name: String?) -> String? { name }
func first(of names: [String]) -> String? { names.first }
