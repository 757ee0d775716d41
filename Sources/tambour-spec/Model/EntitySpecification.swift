/// A type from `entities.yaml`. Devices edit entities of such a type offline, and the type contains
/// the rules for conflicts.
struct EntitySpecification: Sendable {
    enum Policy: String, CaseIterable, Sendable { case cas, lww, merge, append }
    enum Contest: String, CaseIterable, Sendable { case cas, lww }
    enum Deletion: String, CaseIterable, Sendable { case deleteWins, updateWins }

    var documented: Specification.Documented
    /// The name of the parent type; nil for a top-level type.
    var parent: String?
    var policy: Policy
    /// For `merge` only: the policy for a field that both the device and the server have changed.
    var contested: Contest?
    var deletion: Deletion
    /// Whether deleting the parent deletes these entities.
    var cascades: Bool
    var naturalKey: [String]
    /// For a series only: the field whose value determines whether an element is in a range.
    var position: String?
    /// The name of the limit for the total bytes of an entity's fields.
    var limitBytes: String
    var fields: [Field]

    var name: String { documented.name }
    var origin: Origin { documented.origin }

    /// A field of an entity; `kind` tells whether its type is allowed.
    struct Field: Sendable {
        var documented: Specification.Documented
        var type: WireType

        var name: String { documented.name }

        /// The name of the case of `EntitySchema.FieldKind`; nil if entities must not have fields
        /// of this type.
        var kind: String? {
            switch type {
            case .bool: "bool"
            case .int, .ms: "int"
            case .double: "double"
            case .string: "string"
            case .bytes: "bytes"
            case .list(.any): "list"
            case .names(.any): "map"
            default: nil
            }
        }
    }

    /// The rules that devices rely on, in one line.
    var rules: String {
        var words = [parent.map { "below \($0)" } ?? "at the top", policy.rawValue]
        if let contested { words.append("contested \(contested.rawValue)") }
        words.append(deletion.rawValue)
        words.append(cascades ? "goes with its parent" : "keeps its parent")
        if !naturalKey.isEmpty { words.append("named by \(naturalKey.joined(separator: " "))") }
        if let position { words.append("ranges of \(position)") }
        return words.joined(separator: ", ")
    }
}

extension [EntitySpecification] {
    func problems(in specification: Specification) -> [Problem] {
        var problems: [Problem] = []
        var names: Set<String> = []
        for entity in self {
            func complain(_ text: String, _ origin: Origin? = nil) {
                problems.append(Problem(origin: origin ?? entity.origin, text: text))
            }
            for entry in [entity.documented] + entity.fields.map(\.documented) {
                if entry.doc.last != "." {
                    complain("\(entry.name): the text must end with a full stop", entry.origin)
                }
                if entry.since < 1 || entry.since > specification.version {
                    complain("\(entry.name): since no release there is", entry.origin)
                }
            }
            // Parents must precede their children. This also ensures that no type is its own
            // ancestor.
            if let parent = entity.parent, !names.contains(parent) {
                complain("\(entity.name): \(parent) is no type above it")
            }
            if !names.insert(entity.name).inserted { complain("\(entity.name) is there twice") }
            if Set(entity.fields.map(\.name)).count < entity.fields.count {
                complain("\(entity.name): a field is there twice")
            }
            for field in entity.fields where field.kind == nil {
                complain("\(entity.name).\(field.name): no field has this type", field.origin)
            }
            for key in entity.naturalKey where !entity.fields.contains(where: { $0.name == key }) {
                complain("\(entity.name): its natural key \(key) is no field")
            }
            if (entity.policy == .merge) != (entity.contested != nil) {
                complain("\(entity.name): contested goes with merge, and merge with contested")
            }
            let position = entity.fields.first { $0.name == entity.position }
            if (entity.policy == .append) != (entity.position != nil)
                || entity.position != nil && position?.kind != "int"
            {
                complain("\(entity.name): a series, and nothing else, has a position, an integer")
            }
            if entity.policy == .append, entity.parent == nil || !entity.cascades {
                complain("\(entity.name): a series goes with its parent")
            }
            if specification.limit(named: entity.limitBytes) == nil {
                complain("\(entity.name): unknown limit \(entity.limitBytes)")
            }
        }
        return problems
    }
}

extension EntitySpecification.Field {
    fileprivate var origin: Origin { documented.origin }
}
