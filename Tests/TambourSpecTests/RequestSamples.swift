@testable import tambour_spec

/// Builds the smallest requests that contain one given field, from the specification.
struct RequestSamples {
    /// A field that a client can send at any depth of a request.
    struct Site: Sendable, CustomStringConvertible {
        let opcode: OpcodeEntry
        /// The keys from the top of the request to the field. `0` stands for the first item of a
        /// list.
        let steps: [String]
        let owner: StructType
        let field: Field

        var path: String { steps.map { "/\($0)" }.joined() }
        var description: String { "\(opcode.name) \(path)" }
    }

    let specification: Specification

    /// Returns every field of every request. Enters a recursive struct only once.
    func sites() -> [Site] {
        specification.families.flatMap(\.opcodes).flatMap { opcode in
            opcode.request.map { sites(in: $0, of: opcode, at: [], inside: []) } ?? []
        }
    }

    private func sites(
        in type: StructType,
        of opcode: OpcodeEntry,
        at steps: [String],
        inside outer: Set<String>
    ) -> [Site] {
        type.fields.flatMap { field -> [Site] in
            let steps = steps + [field.key]
            let site = Site(opcode: opcode, steps: steps, owner: type, field: field)
            let shape = Shape(field.type)
            guard case .named(let name) = shape.leaf, !outer.contains(name),
                let inner = specification.structType(named: name)
            else { return [site] }
            let into = shape.containers.map { $0 == .names ? "a" : $0 == .map ? "1" : "0" }
            return [site]
                + sites(in: inner, of: opcode, at: steps + into, inside: outer.union([name]))
        }
    }

    /// Returns a request that contains `value` at a site. All other fields in it are required
    /// fields.
    func request(with value: WireNode, at site: Site) -> WireNode? {
        site.opcode.request.flatMap { holding(value, at: site.steps[...], in: $0) }
    }

    /// - Returns: A struct with its required fields, and with `value` at the place that the steps
    ///   lead to.
    private func holding(
        _ value: WireNode,
        at steps: ArraySlice<String>,
        in type: StructType
    ) -> WireNode? {
        var pairs: [WireNode.Pair] = []
        for field in type.fields {
            if field.key == steps.first {
                let rest = steps.dropFirst()
                guard let inner = holding(value, at: rest, as: field.type) else { return nil }
                pairs.append(.init(key: .string(field.key), value: inner))
            } else if field.isRequired {
                pairs.append(.init(key: .string(field.key), value: least(field.type)))
            }
        }
        return .map(pairs)
    }

    private func holding(
        _ value: WireNode,
        at steps: ArraySlice<String>,
        as type: WireType
    ) -> WireNode? {
        guard let step = steps.first else { return value }
        switch type {
        case .list(let item):
            return holding(value, at: steps.dropFirst(), as: item).map { .array([$0]) }
        case .map(_, let inner), .names(let inner):
            return holding(value, at: steps.dropFirst(), as: inner).map {
                .map([.init(key: .string(step), value: $0)])
            }
        case .packed(let inner): return holding(value, at: steps, as: inner)
        case .named(let name):
            return specification.structType(named: name).flatMap {
                holding(value, at: steps, in: $0)
            }
        default: return nil
        }
    }

    /// Returns the smallest value of a type.
    func least(_ type: WireType) -> WireNode {
        switch type {
        case .bool: .bool(false)
        case .int, .ms, .chatID, .userID, .messageID: .int(1)
        case .double: .double(0)
        case .text, .string: .string("a")
        case .bytes: .bytes([])
        case .any: .null
        case .list: .array([])
        case .map, .names: .map([])
        case .packed(let inner): least(inner)
        case .named(let name):
            if let type = specification.structType(named: name) {
                .map(
                    type.fields.filter(\.isRequired).map {
                        .init(key: .string($0.key), value: least($0.type))
                    }
                )
            } else {
                .string(specification.enumType(named: name)?.values.first?.value ?? "")
            }
        }
    }
}
