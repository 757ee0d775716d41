import Testing

@testable import tambour_spec

/// A broken promise: the title of what is broken, and the violated rule.
struct Broken: Hashable, CustomStringConvertible {
    var title: String
    var rule: String
    var description: String { "\(title): \(rule)" }
}

/// One kind of change. The trial applies it at once to everything that it can change. `breaks`
/// lists exactly the promises that the change must break.
struct Trial: Sendable, CustomTestStringConvertible {
    var testDescription: String
    /// The number of things that the trial changes.
    var things: Int
    var breaks: Set<Broken>
    /// The release that the clients have, and the promises of this release.
    var release: Specification
    var before: Promises
    /// The ids of reworded requirements. A note says that these requirements keep their meaning.
    var reworded: Set<String>
    var change: @Sendable (inout Specification) -> Void
}

/// All trials. They change each field, opcode, enum, error, limit, name and requirement of the real
/// specification.
struct Trials {
    /// The release that clients have: the current specification.
    static let old: Specification = {
        do {
            return try Repository.specification()
        } catch {
            preconditionFailure("\(error)")
        }
    }()

    static let promises = Promises(of: old)

    /// The next release, before any change.
    static let next: Specification = {
        var next = old
        next.version += 1
        return next
    }()

    static let all: [Trial] = {
        var trials = Trials()
        trials.addFields()
        trials.addFieldTypes()
        trials.addFieldLimits()
        trials.addFieldReading()
        trials.addTypes()
        trials.addLimits()
        trials.addErrors()
        trials.addRoles()
        trials.addEntities()
        trials.addOpcodes()
        trials.addNewOpcodes()
        trials.addNames()
        trials.addRequirements()
        return trials.trials
    }()

    private(set) var trials: [Trial] = []

    mutating func add(
        _ what: String,
        _ things: [String],
        breaks: [Broken] = [],
        release: Specification? = nil,
        reworded: Set<String> = [],
        _ change: @escaping @Sendable (inout Specification) -> Void
    ) {
        trials.append(
            Trial(
                testDescription: what,
                things: things.count,
                breaks: Set(breaks),
                release: release ?? Self.old,
                before: release.map { Promises(of: $0) } ?? Self.promises,
                reworded: reworded,
                change: change
            )
        )
    }

    // MARK: Fields

    /// The fields of a struct or payload.
    struct FieldList: Sendable {
        var title: String
        var fields: [Field]
        /// Whether clients send the fields, and whether they receive them.
        var isSent: Bool
        var isReceived: Bool

        func title(of field: Field) -> String { "\(title).\(field.key)" }
    }

    /// Returns the names of the structs and enums that these payloads contain. Computes them in
    /// another way than the check.
    static func reachable(_ payloads: (OpcodeEntry) -> [StructType?]) -> Set<String> {
        var found: Set<String> = []
        func follow(_ fields: [Field]) {
            for name in fields.flatMap(\.type.mentioned) where found.insert(name).inserted {
                follow(old.structType(named: name)?.fields ?? [])
            }
        }
        for opcode in opcodes {
            for type in payloads(opcode) { follow(type?.fields ?? []) }
        }
        return found
    }

    static let opcodes = old.families.flatMap(\.opcodes)
    static let sent = reachable { [$0.request] }
    static let received = reachable { [$0.reply, $0.push] }.union(["ErrorReply"])

    static let lists: [FieldList] =
        old.structs.map { type in
            FieldList(
                title: type.name,
                fields: type.fields,
                isSent: sent.contains(type.name),
                isReceived: received.contains(type.name)
            )
        }
        + opcodes.flatMap { opcode in
            [
                ("request", opcode.request), ("reply", opcode.reply), ("push", opcode.push),
            ].compactMap { role, type in
                type.map {
                    FieldList(
                        title: "\(opcode.name) \(role)",
                        fields: $0.fields,
                        isSent: role == "request",
                        isReceived: role != "request"
                    )
                }
            }
        }

    /// Changes every list of fields, in the same order as `lists`.
    static func forEachList(
        _ specification: inout Specification,
        _ change: (inout [Field], FieldList) -> Void
    ) {
        var rest = lists[...]
        func next(_ type: inout StructType?) {
            if type != nil { change(&type!.fields, rest.removeFirst()) }
        }
        for index in specification.structs.indices {
            change(&specification.structs[index].fields, rest.removeFirst())
        }
        forEachOpcode(&specification) { opcode in
            next(&opcode.request)
            next(&opcode.reply)
            next(&opcode.push)
        }
    }

    static func forEachOpcode(
        _ specification: inout Specification,
        _ change: (inout OpcodeEntry) -> Void
    ) {
        for family in specification.families.indices {
            for index in specification.families[family].opcodes.indices {
                change(&specification.families[family].opcodes[index])
            }
        }
    }

    /// Adds a trial that changes each field for which `applies` returns true. For each of them, the
    /// change must break `rules`.
    private mutating func addForEachField(
        _ what: String,
        where applies: @escaping @Sendable (Field, FieldList) -> Bool = { _, _ in true },
        breaks rules: (Field, FieldList) -> [String] = { _, _ in [] },
        change: @escaping @Sendable (inout Field) -> Void
    ) {
        var titles: [String] = []
        var broken: [Broken] = []
        for list in Self.lists {
            for field in list.fields where applies(field, list) {
                titles.append(list.title(of: field))
                broken += rules(field, list).map { Broken(title: list.title(of: field), rule: $0) }
            }
        }
        add(what, titles, breaks: broken) {
            Self.forEachList(&$0) { fields, list in
                for index in fields.indices where applies(fields[index], list) {
                    change(&fields[index])
                }
            }
        }
    }

    /// Adds a trial that appends a field to every list.
    private mutating func addNewField(_ what: String, rule: String? = nil, _ field: Field) {
        let titles = Self.lists.map { $0.title(of: field) }
        add(
            what,
            titles,
            breaks: titles.compactMap { title in rule.map { Broken(title: title, rule: $0) } }
        ) {
            Self.forEachList(&$0) { fields, _ in fields.append(field) }
        }
    }

    private static func gone(_: Field, _ list: FieldList) -> [String] {
        (list.isSent ? ["field-removed-from-server"] : [])
            + (list.isReceived ? ["field-removed-from-clients"] : [])
    }

    private static func retyped(_: Field, _ list: FieldList) -> [String] {
        (list.isSent ? ["field-type-from-clients"] : [])
            + (list.isReceived ? ["field-type-to-clients"] : [])
    }

    private static func newField(
        since: Int = next.version,
        _ change: (inout Field) -> Void = { _ in }
    ) -> Field {
        var field = Field(
            key: "addedLater",
            swiftName: "addedLater",
            type: .text,
            isRequired: false,
            isSensitive: false,
            since: since,
            doc: "Added later.",
            origin: Origin(file: "types.yaml", line: 1)
        )
        change(&field)
        return field
    }

    private mutating func addFields() {
        let fields = Self.lists.flatMap { list in list.fields.map { (list, $0) } }
        add(
            "a field is removed",
            fields.map { $0.title(of: $1) },
            breaks: fields.flatMap { list, field in
                Self.gone(field, list).map { Broken(title: list.title(of: field), rule: $0) }
            }
        ) {
            Self.forEachList(&$0) { fields, _ in fields = [] }
        }
        add(
            "a field is renamed",
            fields.map { $0.title(of: $1) },
            breaks: fields.flatMap { list, field in
                Self.gone(field, list).map { Broken(title: list.title(of: field), rule: $0) }
                    + (field.isRequired
                        ? [
                            Broken(
                                title: list.title(of: field) + "New",
                                rule: "field-added-required"
                            )
                        ] : [])
            }
        ) {
            Self.forEachList(&$0) { fields, _ in
                for index in fields.indices {
                    fields[index].key += "New"
                    fields[index].since = Self.next.version
                }
            }
        }
        addDeprecations(fields)
        addForEachField(
            "a field is made required",
            where: { field, _ in !field.isRequired },
            breaks: { field, _ in
                ["field-made-required"] + (field.defaultValue == nil ? [] : ["field-default"])
            },
            change: {
                $0.isRequired = true
                $0.defaultValue = nil
            }
        )
        addForEachField(
            "a required field that clients send is made optional",
            where: { field, list in field.isRequired && !list.isReceived },
            change: {
                $0.isRequired = false
            }
        )
        addForEachField(
            "a required field that clients receive is made optional",
            where: { field, list in field.isRequired && list.isReceived },
            breaks: { _, _ in ["field-no-longer-sure"] },
            change: {
                $0.isRequired = false
            }
        )
        addForEachField(
            "a field loses its default",
            where: { field, _ in field.defaultValue != nil },
            breaks: { _, list in
                ["field-default"] + (list.isReceived ? ["field-no-longer-sure"] : [])
            },
            change: {
                $0.defaultValue = nil
            }
        )
        addForEachField(
            "a required field gets a default",
            where: { field, _ in field.isRequired },
            change: {
                $0.isRequired = false
                $0.defaultValue = .int(0)
            }
        )
        addForEachField(
            "a default is changed, or given to an optional field",
            where: { field, _ in !field.isRequired },
            breaks: { _, _ in ["field-default"] },
            change: {
                $0.defaultValue = .string("another")
            }
        )
        addForEachField(
            "a field is put behind a capability, or taken from behind one",
            breaks: { _, _ in ["field-capability"] },
            change: {
                $0.capability = $0.capability == nil ? "lz4-large" : nil
            }
        )
        addForEachField(
            "a dialect writes a field otherwise, or no longer",
            breaks: { _, _ in ["field-form"] },
            change: {
                $0.forms =
                    $0.forms.isEmpty ? [DialectForm(dialect: "tamtam", change: .absent)] : []
            }
        )
        addForEachField(
            "a field is dated anew",
            breaks: { _, _ in ["since-of-field"] },
            change: {
                $0.since = Self.next.version
            }
        )
        addNewField("an optional field is added", Self.newField())
        addNewField(
            "a field with a capability is added",
            Self.newField { $0.capability = "lz4-large" }
        )
        addNewField(
            "a field with a default is added",
            Self.newField { $0.defaultValue = .string("") }
        )
        addNewField(
            "a required field is added",
            rule: "field-added-required",
            Self.newField { $0.isRequired = true }
        )
        addNewField(
            "a field is added and dated back",
            rule: "since-of-added-field",
            Self.newField(since: Self.old.version)
        )
    }

    private mutating func addDeprecations(_ fields: [(FieldList, Field)]) {
        let titles = fields.map { $0.title(of: $1) }
        let later = Self.next.version + 1
        add("a field is deprecated", titles) {
            Self.forEachList(&$0) { fields, _ in Self.deprecate(&fields, until: later) }
        }
        for (what, sunset) in [
            ("a field is removed at its sunset", Self.next.version),
            ("a field is removed before its sunset", later),
        ] {
            var release = Self.old
            Self.forEachList(&release) { fields, _ in Self.deprecate(&fields, until: sunset) }
            let broken = fields.flatMap { list, field in
                Self.gone(field, list).map { Broken(title: list.title(of: field), rule: $0) }
            }
            add(what, titles, breaks: sunset == later ? broken : [], release: release) {
                Self.forEachList(&$0) { fields, _ in fields = [] }
            }
        }
        var release = Self.old
        Self.forEachList(&release) { fields, _ in Self.deprecate(&fields, until: later) }
        add(
            "the sunset of a field comes earlier",
            titles,
            breaks: titles.map { Broken(title: $0, rule: "field-sunset") },
            release: release
        ) {
            Self.forEachList(&$0) { fields, _ in Self.deprecate(&fields, until: later - 1) }
        }
    }

    private static func deprecate(_ fields: inout [Field], until sunset: Int) {
        for index in fields.indices { fields[index].deprecated = deprecation(until: sunset) }
    }

    private mutating func addFieldTypes() {
        addForEachField(
            "a field is narrowed to or from a boolean",
            breaks: Self.retyped,
            change: {
                $0.type = $0.type == .bool ? .int : .bool
            }
        )
        addForEachField(
            "a list, map or packed value holds something else",
            where: { field, _ in
                switch field.type {
                case .list, .map, .names, .packed: true
                default: false
                }
            },
            breaks: Self.retyped,
            change: {
                switch $0.type {
                case .list: $0.type = .list(.bool)
                case .map(let key, _): $0.type = .map(key: key, value: .bool)
                case .names(.bool): $0.type = .names(.int)
                case .names: $0.type = .names(.bool)
                default: $0.type = .packed(.bool)
                }
            }
        )
        addForEachField(
            "a map has other keys",
            where: { field, _ in if case .map = field.type { true } else { false } },
            breaks: Self.retyped,
            change: {
                guard case .map(let key, let value) = $0.type else { return }
                $0.type = .map(key: key == .userID ? .chatID : .userID, value: value)
            }
        )
        addForEachField(
            "a field gets a type that is the same on the wire",
            where: { field, _ in [.int, .text, .string].contains(field.type) },
            change: {
                switch $0.type {
                case .int: $0.type = .userID
                case .text: $0.type = .string
                default: $0.type = .packed(.text)
                }
            }
        )
        addForEachField(
            "a field that clients send is widened",
            where: { field, list in field.type != .any && !list.isReceived },
            change: Self.widen
        )
        addForEachField(
            "a field that clients receive is widened",
            where: { field, list in field.type != .any && list.isReceived },
            breaks: { _, _ in ["field-type-to-clients"] },
            change: Self.widen
        )
    }

    private static func widen(_ field: inout Field) {
        switch field.type {
        case .int: field.type = .double
        case .text, .string: field.type = .bytes
        default: field.type = .any
        }
    }

    /// Adds trials that change the meaning of duplicate keys, and trials that change which reader
    /// checks values of any type.
    private mutating func addFieldReading() {
        for (duplicates, rules) in [
            (Duplicates.refused, ["field-duplicates"]), (.merged, []), (.kept, []),
        ] {
            addForEachField(
                "a repeated thing is \(duplicates)",
                where: { field, _ in field.duplicates != duplicates },
                breaks: { _, list in list.isSent ? rules : [] },
                change: { $0.duplicates = duplicates }
            )
        }
        for check in AnyCheck.allCases {
            addForEachField(
                "values are checked by another: \(check)",
                where: { field, _ in field.type.yaml.contains("any") && field.anyCheck != check },
                breaks: { field, list in
                    let isStricter = check == .reader || field.anyCheck == .skipped
                    return list.isSent && isStricter ? ["field-checked-by"] : []
                },
                change: { $0.anyCheck = check }
            )
        }
    }

    private mutating func addFieldLimits() {
        let kinds: [(any WritableKeyPath<Field, String?> & Sendable, String, String)] = [
            (\.limitUnits, "limit", "field-limit"),
            (\.limitBytes, "limitBytes", "field-limit-bytes"),
            (\.outerLimitItems, "limitItems", "field-limit-items"),
        ]
        for (limit, name, rule) in kinds {
            for (what, other, isNarrower) in [
                ("a smaller \(name) is put in place of another", "tiny", true),
                ("a larger \(name) is put in place of another", "vast", false),
            ] {
                addForEachField(
                    what,
                    where: { field, _ in field[keyPath: limit] != nil },
                    breaks: { _, list in isNarrower && list.isSent ? [rule] : [] },
                    change: {
                        $0[keyPath: limit] = other
                    }
                )
                let change = trials[trials.count - 1].change
                trials[trials.count - 1].change = { specification in
                    for (name, value) in [("tiny", 1), ("vast", 1 << 40)] {
                        var limit = specification.limits[0]
                        limit.name = name
                        limit.value = value
                        limit.since = Self.next.version
                        specification.limits.append(limit)
                    }
                    change(&specification)
                }
            }
            addForEachField(
                "a \(name) is put where none was",
                where: { field, _ in field[keyPath: limit] == nil },
                breaks: { _, list in list.isSent ? [rule] : [] },
                change: {
                    $0[keyPath: limit] = "maxTextUnits"
                }
            )
            addForEachField(
                "a \(name) is lifted",
                where: { field, _ in field[keyPath: limit] != nil },
                change: {
                    $0[keyPath: limit] = nil
                }
            )
        }
    }
}

extension Field {
    /// The name of the limit of the outermost list or map.
    fileprivate var outerLimitItems: String? {
        get { limitItems.first }
        set { limitItems = newValue.map { [$0] } ?? [] }
    }
}
