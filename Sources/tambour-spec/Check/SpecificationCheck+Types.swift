/// Checks the enumerations, and the structs with their fields.
extension SpecificationCheck {
    /// The names that generated readers and writers use for their own variables.
    private static let taken: Set<String> = [
        "reader", "writer", "fieldCount", "fieldsSeen", "fieldName", "wireKey", "item", "self",
    ]

    mutating func checkTypes() {
        let payloads = specification.families.flatMap(\.opcodes).flatMap {
            [$0.request, $0.reply, $0.push].compactMap { $0 }
        }
        unique(
            specification.enums.map { ($0.name, $0.origin) }
                + (specification.structs + payloads).map { ($0.name, $0.origin) },
            "type"
        )
        for type in specification.enums {
            documented(type.doc, since: type.since, type.name, type.origin)
            unique(type.values.map { ($0.value, type.origin) }, "\(type.name): value")
            unique(type.values.map { ($0.swiftName, type.origin) }, "\(type.name): name")
            for value in type.values {
                documented(value.doc, since: type.since, "\(type.name).\(value.value)", type.origin)
                check(value, of: type)
            }
        }
        for type in specification.structs + payloads {
            documented(type.doc, since: type.since, type.name, type.origin)
            check(type)
        }
        problems += FieldLimitCheck(specification).problems()
        problems += BoundsCheck.problems(of: specification)
        checkRecursion()
    }

    private mutating func check(_ value: EnumType.Value, of type: EnumType) {
        let place = "\(type.name).\(value.value)"
        guard let capability = value.capability else {
            if value.fallback != nil {
                complain(type.origin, "\(place): a fallback goes with a capability")
            }
            return
        }
        check(capability: capability, place, type.origin)
        // A capability serves to hide a value from clients that lack it. The server never sends a
        // closed enumeration, so it has no values to hide.
        if !type.isOpen {
            complain(type.origin, "\(place): a closed enumeration has no capabilities")
        }
        guard let name = value.fallback else { return }
        guard let fallback = type.values.first(where: { $0.value == name }) else {
            return complain(type.origin, "\(place): unknown fallback \(name)")
        }
        if fallback.capability != nil {
            complain(type.origin, "\(place): the fallback \(name) needs a capability itself")
        }
    }

    private mutating func checkCopy(_ copy: Field, of type: StructType, _ place: String) {
        var fields = type.properties
        for (depth, key) in copy.copyOf.enumerated() {
            guard let field = fields.first(where: { $0.key == key }) else {
                return complain(copy.origin, "\(place): a copy of \(key), which is not there")
            }
            if depth == copy.copyOf.count - 1 {
                if field.type != copy.type {
                    complain(copy.origin, "\(place): of another type than what it copies")
                }
            } else if case .named(let name) = field.type {
                fields = specification.structType(named: name)?.properties ?? []
            }
        }
        if copy.capability == nil || !copy.isOptional {
            complain(copy.origin, "\(place): a copy is for one dialect or capability")
        }
        if type.role == .request { complain(copy.origin, "\(place): nobody reads a copy") }
    }

    private mutating func checkForms(of field: Field, in type: StructType, _ place: String) {
        let origin = field.origin
        unique(field.forms.map { ($0.dialect, origin) }, "\(place): the form in")
        if !field.forms.isEmpty, type.role == .request {
            complain(origin, "\(place): the server sends no requests to write otherwise")
        }
        let most = [field.limitBytes, field.limitUnits].compactMap(\.self)
            .compactMap { specification.limit(named: $0)?.value }.min()
        for form in field.forms {
            if !specification.isDialect(form.dialect) {
                complain(origin, "\(place): unknown dialect \(form.dialect)")
            }
            let fits =
                switch form.change {
                case .absent: true
                case .words: field.type == .string || field.type == .list(.string)
                case .prefix: field.type == .text
                case .leavesOut(let key, _): isNumber(key, ofItemsIn: field.type)
                }
            if !fits {
                complain(origin, "\(place): \(form.text) does not fit the type in \(form.dialect)")
            }
            switch form.change {
            case .words(let words):
                for (word, said) in words where said.utf8.count > most ?? .max {
                    complain(origin, "\(place): \(said) for \(word) is over the limit")
                }
            case .absent where field.isRequired:
                let names = specification.dialects(in: form.dialect).map(\.name)
                let isCopied = type.fields.contains { copy in
                    copy.copyOf.first == field.key && names.contains { $0 == copy.capability }
                }
                if !isCopied {
                    complain(
                        origin,
                        "\(place): is required, and nothing stands for it in \(form.dialect)"
                    )
                }
            default: break
            }
        }
    }

    private func isNumber(_ key: String, ofItemsIn type: WireType) -> Bool {
        guard case .list(.named(let name)) = type,
            let field = specification.structType(named: name)?.properties.first(where: {
                $0.key == key
            }), !field.isOptional
        else { return false }
        return [.int, .chatID, .userID, .messageID].contains(field.type)
    }

    mutating func check(capability: String, _ place: String, _ origin: Origin) {
        if !specification.gates.contains(where: { $0.name == capability }) {
            complain(origin, "\(place): unknown capability \(capability)")
        }
    }

    private mutating func check(_ type: StructType) {
        if type.fields.count > 64 { complain(type.origin, "\(type.name): more than 64 fields") }
        unique(
            type.fields.flatMap { field in ([field.key] + field.aliases).map { ($0, field.origin) }
            },
            "\(type.name): key"
        )
        unique(type.properties.map { ($0.swiftName, $0.origin) }, "\(type.name): property")
        for field in type.fields {
            let place = "\(type.name).\(field.key)"
            documented(field.doc, since: field.since, place, field.origin)
            if field.since < type.since { complain(field.origin, "\(place): older than its type") }
            if field.isRequired, field.since > type.since {
                complain(field.origin, "\(place): a later field cannot be required")
            }
            if field.key.utf8.count > 31 {
                complain(field.origin, "\(place): a key has at most 31 bytes")
            }
            if Self.taken.contains(field.swiftName) {
                complain(
                    field.origin,
                    "\(place): the property name is taken; give another one by swift:"
                )
            }
            for name in field.type.mentioned
            where specification.structType(named: name) == nil
                && specification.enumType(named: name) == nil
            {
                complain(field.origin, "\(place): unknown type \(name)")
            }
            for limit in field.limitNames
            where specification.limit(named: limit) == nil {
                complain(field.origin, "\(place): unknown limit \(limit)")
            }
            if field.isCopy { checkCopy(field, of: type, place) }
            checkForms(of: field, in: type, place)
            if let capability = field.capability {
                check(capability: capability, place, field.origin)
                if !field.isOptional {
                    complain(
                        field.origin,
                        "\(place): only an optional field can need a capability"
                    )
                }
                if type.role == .request {
                    complain(field.origin, "\(place): the server sends no requests to keep it from")
                }
            }
            if type.role != .object, field.isRequired,
                Projection(specification: specification).mayBeLeftOut(field.type)
            {
                complain(field.origin, "\(place): may have to be left out and is required")
            }
            checkDefault(field, place)
            check(field.deprecated, place, field.origin) { replacement in
                type.fields.contains { $0.key == replacement && $0.key != field.key }
            }
            let secrets = ["token", "phone", "verifyCode", "password"]
            // If the field contains an object, the object's own fields declare what is secret.
            let isObject = specification.structs.contains { .named($0.name) == field.type }
            if secrets.contains(field.key), !field.isSensitive, !isObject {
                complain(field.origin, "\(place): must be sensitive")
            }
        }
    }

    mutating func check(
        _ deprecation: Deprecation?,
        _ place: String,
        _ origin: Origin,
        exists: (String) -> Bool
    ) {
        guard let deprecation else { return }
        if !exists(deprecation.replacement) {
            complain(origin, "\(place): there is no \(deprecation.replacement) to replace it")
        }
        if deprecation.since < 1 || deprecation.since > specification.version
            || deprecation.sunset <= deprecation.since
        {
            complain(
                origin,
                "\(place): is deprecated in a release, and served for one more at least"
            )
        }
    }

    private mutating func checkDefault(_ field: Field, _ place: String) {
        guard let value = field.defaultValue else { return }
        if field.isRequired { complain(field.origin, "\(place): required and with a default") }
        let fits =
            switch (value, field.type) {
            case (.bool, .bool), (.int, .int), (.int, .ms), (.string, .text), (.string, .string):
                true
            case (.emptyList, .list), (.emptyList, .packed(.list)): true
            case (.emptyMap, .map), (.emptyMap, .names): true
            default: false
            }
        if !fits { complain(field.origin, "\(place): the default does not fit the type") }
    }

    /// Checks that a struct does not contain itself directly. It may contain itself in packed form,
    /// in a list or in a map.
    private mutating func checkRecursion() {
        func direct(_ type: StructType) -> [String] {
            type.fields.compactMap { field in
                if case .named(let name) = field.type { name } else { nil }
            }
        }
        for type in specification.structs {
            var open = direct(type)
            var seen: Set<String> = []
            while let name = open.popLast() {
                if name == type.name {
                    complain(
                        type.origin,
                        "\(type.name): holds itself; it must be packed or in a list"
                    )
                    break
                }
                if seen.insert(name).inserted {
                    open += specification.structType(named: name).map(direct) ?? []
                }
            }
        }
    }
}
