/// Checks that every value that can be stored can also be sent and read.
struct BoundsCheck {
    private let specification: Specification
    private var bounds: Bounds

    init(_ specification: Specification) {
        self.specification = specification
        bounds = Bounds(specification)
    }

    static func problems(of specification: Specification) -> [Problem] {
        var check = BoundsCheck(specification)
        return check.overflows() + check.recursions() + check.payloads()
    }

    // MARK: Fields

    /// Reports fields whose limits have a product of more than 64 bits.
    private mutating func overflows() -> [Problem] {
        var problems: [Problem] = []
        for type in specification.maps {
            for field in type.fields where bounds.extent(of: field).failure == .overflow {
                // The overflow is in the nested type. The check reports the field of that type, not
                // this field.
                if case .named = Shape(field.type).leaf, field.limitItems.isEmpty { continue }
                problems.append(
                    Problem(
                        origin: field.origin,
                        text: "\(type.name).\(field.key): its limits multiply beyond 64 bits"
                    )
                )
            }
        }
        return problems
    }

    private mutating func recursions() -> [Problem] {
        specification.structs.compactMap { type in
            let path = [type.name] + (recursion(from: type) ?? [])
            guard path.count > 1 else { return nil }
            return Problem(
                origin: type.origin,
                text: "\(path.joined(separator: ".")): holds another \(type.name) without an end; "
                    + "say by without: what the inner one never has"
            )
        }
    }

    /// Returns the fields on the path from a struct to a nested struct of the same type that omits
    /// no fields; nil if there is no such path.
    private func recursion(from type: StructType) -> [String]? {
        var seen: Set<String> = []
        func path(from fields: [Field]) -> [String]? {
            for field in fields {
                for name in field.type.mentioned {
                    if name == type.name, field.without.isEmpty { return [field.key] }
                    guard let inner = specification.structType(named: name),
                        name != type.name, seen.insert(name).inserted
                    else { continue }
                    let rest = inner.fields.filter { !field.without.contains($0.key) }
                    if let found = path(from: rest) { return [field.key] + found }
                }
            }
            return nil
        }
        return path(from: type.fields)
    }

    // MARK: Replies and pushes

    private mutating func payloads() -> [Problem] {
        var problems: [Problem] = []
        for opcode in specification.families.flatMap(\.opcodes) {
            for (role, type) in [
                ("request", opcode.request), ("reply", opcode.reply), ("push", opcode.push),
            ] {
                guard let type else { continue }
                let place = "\(opcode.name) \(role)"
                let whole = bounds.extent(of: type, oneItem: true)
                problems += tooDeep(whole, place, opcode.origin)
                if role != "request" { problems += tooLarge(whole, type, place, opcode.origin) }
            }
        }
        if let error = specification.structType(named: "ErrorReply") {
            let whole = bounds.extent(of: error)
            problems += tooLarge(whole, error, "ErrorReply", error.origin)
        }
        return problems
    }

    private func tooDeep(_ whole: Extent, _ place: String, _ origin: Origin) -> [Problem] {
        guard let most = bounds.limit("maxDepth"), whole.depth > most else { return [] }
        let path = whole.deepest.map { "/\($0)" }.joined()
        return [
            Problem(
                origin: origin,
                text: "\(place)\(path): nests \(whole.depth) levels deep, a peer reads \(most)"
            )
        ]
    }

    /// Checks that a payload with one item in each page fits into `maxReplyBytes`. Pages with more
    /// items need no check, because the server shortens them until they fit.
    private mutating func tooLarge(
        _ whole: Extent,
        _ type: StructType,
        _ place: String,
        _ origin: Origin
    ) -> [Problem] {
        guard let most = bounds.limit("maxReplyBytes") else { return [] }
        switch whole.failure {
        // The checks of fields and of recursion report these failures.
        case .unlimited, .overflow, .endless: return []
        case nil: break
        }
        guard whole.bytes > most else { return [] }
        var largest: (key: String, bytes: Int) = ("", 0)
        for field in type.fields {
            let bytes = bounds.extent(of: field, oneItem: true).bytes
            if bytes > largest.bytes { largest = (field.key, bytes) }
        }
        return [
            Problem(
                origin: origin,
                text: "\(place)/\(largest.key): up to \(largest.bytes) of \(whole.bytes) bytes, "
                    + "maxReplyBytes is \(most): what is stored could not be sent"
            )
        ]
    }
}
