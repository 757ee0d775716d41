/// Checks that each field has exactly the limits that its type needs.
struct FieldLimitCheck {
    private let specification: Specification
    private let inboundTypes: Set<String>

    init(_ specification: Specification) {
        self.specification = specification
        inboundTypes = specification.inboundTypes
    }

    func problems() -> [Problem] {
        specification.maps.flatMap { type in
            let isInbound = type.isHeldAgainstLimits(inboundTypes)
            return type.fields.flatMap { field in
                let reasons =
                    misplaced(field, isInbound) + unbounded(field, isInbound)
                    + (isInbound ? ambiguous(field) : [])
                return reasons.map {
                    Problem(origin: field.origin, text: "\(type.name).\(field.key): \($0)")
                }
            }
        }
    }

    // MARK: Limits that mean nothing

    private func misplaced(_ field: Field, _ isInbound: Bool) -> [String] {
        let shape = Shape(field.type)
        var reasons: [String] = []
        if field.limitUnits != nil, shape.leaf != .text { reasons.append("limit is for texts") }
        if field.limitBytes != nil, !shape.hasBytes {
            reasons.append("limitBytes is for texts, strings, bytes and any")
        }
        if field.limitItems.count > shape.containers.count {
            reasons.append("limitItems is for lists and maps")
        }
        if field.anyCheck != .reader, shape.leaf != .any {
            reasons.append("checkedBy is for any")
        }
        if field.duplicates != nil, shape.containers.isEmpty {
            reasons.append("duplicates is for lists and maps")
        }
        if field.isPage, shape.containers.isEmpty { reasons.append("page is for lists and maps") }
        if isInbound {
            if field.isPage { reasons.append("the server cuts no pages of what clients send") }
            if field.totalBytes != nil {
                reasons.append("totalBytes is for what the server builds; readers do not count it")
            }
        } else if field.anyCheck != .reader {
            reasons.append("checkedBy is for what clients send")
        }
        return reasons
    }

    // MARK: Limits that are missing

    private func unbounded(_ field: Field, _ isInbound: Bool) -> [String] {
        let shape = Shape(field.type)
        guard field.totalBytes == nil else { return [] }
        var reasons: [String] = []
        if shape.hasBytes, field.limitUnits == nil, field.limitBytes == nil,
            field.anyCheck == .reader
        {
            reasons.append("has no bound in bytes")
        }
        let levels = field.isPage ? max(field.limitItems.count, 1) : field.limitItems.count
        if shape.containers.count > levels {
            reasons.append(
                levels == 0 ? "has no bound in items" : "has no bound in items at each level"
            )
        }
        guard isInbound else { return reasons }
        if shape.containers == [.list], let items = value(field.limitItems.first),
            let frame = value("maxFrameBytes")
        {
            let item =
                shape.hasBytes
                ? (value(field.limitBytes) ?? 0).addingReportingOverflow(3).partialValue
                : shape.leaf.isID ? 9 : 1
            let (bytes, overflow) = items.multipliedReportingOverflow(by: item)
            if overflow || bytes > frame {
                reasons.append("a list at its limits does not fit a frame")
            }
        }
        return reasons
    }

    /// Reports maps that do not declare `duplicates`. Also reports lists of names, ids, or objects
    /// with an id if they do not declare it.
    private func ambiguous(_ field: Field) -> [String] {
        guard field.duplicates == nil, let outer = Shape(field.type).containers.first else {
            return []
        }
        switch outer {
        case .map, .names: return ["may name one thing twice and has no duplicates"]
        case .list:
            return Shape(field.type).namesThings(in: specification)
                ? ["may name one thing twice and has no duplicates"] : []
        }
    }

    private func value(_ limit: String?) -> Int? {
        limit.flatMap { specification.limit(named: $0)?.value }
    }
}

/// The lists and maps of a type, outermost first, and the innermost type.
struct Shape {
    enum Container { case list, map, names }

    var containers: [Container] = []
    var leaf: WireType

    init(_ type: WireType) {
        leaf = type
        while true {
            switch leaf {
            case .list(let inner):
                containers.append(.list)
                leaf = inner
            case .map(_, let value):
                containers.append(.map)
                leaf = value
            case .names(let value):
                containers.append(.names)
                leaf = value
            case .packed(let inner): leaf = inner
            default: return
            }
        }
    }

    /// Whether `limitBytes` applies to the innermost type.
    var hasBytes: Bool { [.text, .string, .bytes, .any].contains(leaf) }

    /// Returns whether the innermost values identify something: names, ids, or objects with a
    /// required id.
    func namesThings(in specification: Specification) -> Bool {
        switch leaf {
        case .bool, .double, .ms, .list, .map, .names, .packed: return false
        case .int, .text, .string, .bytes, .any, .chatID, .userID, .messageID: return true
        case .named(let name):
            guard let type = specification.structType(named: name) else { return true }
            return type.fields.contains { $0.isRequired && $0.type.isID }
        }
    }
}
