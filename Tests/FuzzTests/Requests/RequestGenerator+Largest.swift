@testable import tambour_spec

/// Requests of maximum size.
extension RequestGenerator {
    /// Returns a value with every field set and every limit reached. When the frame becomes full,
    /// the value gets no more optional fields and items.
    mutating func largest(_ type: WireType, _ field: Field, depth: Int) -> WireNode {
        func limit(_ name: String?) -> Int? { name.flatMap { limits.name($0) } }
        switch type {
        case .text, .string:
            if isHandle(field.key) || isOwnNumber(field.key) { return word(field) }
            let length = min(limit(field.limitUnits) ?? limit(field.limitBytes) ?? 200, room)
            room -= length
            return .string(String(repeating: "w", count: max(length, 0)))
        case .any:
            let length = min(depth < 2 ? 100_000 : 400, room)
            room -= length
            return .object(["url": .string(String(repeating: "u", count: max(length, 0)))])
        case .bytes:
            let length = min(limit(field.limitBytes) ?? 1_000, room)
            room -= length
            return .bytes(Array(repeating: 1, count: max(length, 0)))
        case .list(let item):
            guard depth < 6 else { return .array([]) }
            var items: [WireNode] = []
            for _ in 0..<min(limit(first(of: field.limitItems)) ?? 1_000, 1_000) where room > 2_000
            {
                room -= 12
                items.append(largest(item, field, depth: depth + 1))
            }
            return .array(items)
        case .map(let key, let inner):
            var pairs: [WireNode.Pair] = []
            for _ in 0..<(limit(first(of: field.limitItems)) ?? 30) where room > 2_000 {
                room -= 24
                pairs.append(
                    .init(key: text(of: id(key)), value: largest(inner, field, depth: depth + 1))
                )
            }
            return .map(pairs)
        case .names(let inner):
            var pairs: [WireNode.Pair] = []
            for number in 0..<(limit(first(of: field.limitItems)) ?? 100) where room > 2_000 {
                room -= 24
                pairs.append(
                    .init(
                        key: .string("name\(number)"),
                        value: largest(inner, field, depth: depth + 2)
                    )
                )
            }
            return .map(pairs)
        case .packed(let inner): return largest(inner, field, depth: depth)
        case .named(let name):
            guard depth < 6, let inner = specification.structType(named: name) else {
                return value(type, field, depth)
            }
            return largest(inner, depth: depth + 1)
        default: return value(type, field, depth)
        }
    }

    private mutating func largest(_ type: StructType, depth: Int) -> WireNode {
        .map(
            type.fields.filter { $0.isRequired || room > 4_000 }.map { field in
                room -= field.key.utf8.count + 2
                return .init(
                    key: .string(field.key),
                    value: largest(field.type, field, depth: depth)
                )
            }
        )
    }

    /// Returns a request with every field at its limit.
    mutating func largestRequest(_ opcode: OpcodeEntry) -> FuzzRequest {
        begin(opcode)
        let node = opcode.request.map { largest($0, depth: 0) } ?? .map([])
        return FuzzRequest(
            opcode: opcode,
            payload: WireEncoder.encode(node),
            edges: ["\(opcode.name) at its largest"],
            chat: chat?.id
        )
    }
}
