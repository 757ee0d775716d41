import Yams

/// Reads `types.yaml`, and the fields of every struct.
extension SpecificationLoader {
    mutating func loadTypes(into specification: inout Specification) {
        guard let map = document("types.yaml") else { return }
        if let enums = map.node("enums").flatMap({ self.map($0, file: "types.yaml") }) {
            for (name, node) in enums.entries {
                guard let entry = self.map(node, file: "types.yaml") else { continue }
                specification.enums.append(
                    EnumType(
                        name: name,
                        isOpen: entry.bool("open") ?? false,
                        doc: entry.required("doc"),
                        since: entry.requiredInt("since"),
                        values: maps(entry, "values").map { value in
                            defer { finish(value) }
                            let text = value.required("value")
                            return .init(
                                value: text,
                                swiftName: value.string("swift") ?? Names.camel(fromUpper: text),
                                aliases: value.names("aliases"),
                                capability: value.string("capability"),
                                fallback: value.string("fallback"),
                                doc: value.required("doc")
                            )
                        },
                        origin: entry.origin
                    )
                )
                finish(entry)
            }
        }
        var copies: [(type: String, key: String, dialect: String?)] = []
        if let structs = map.node("structs").flatMap({ self.map($0, file: "types.yaml") }) {
            for (name, node) in structs.entries {
                guard let entry = self.map(node, file: "types.yaml") else { continue }
                specification.structs.append(
                    StructType(
                        name: name,
                        role: entry.bool("payload") == true ? .payload : .object,
                        doc: entry.required("doc"),
                        since: entry.requiredInt("since"),
                        limitBytes: entry.string("limitBytes"),
                        fields: fields(entry, "fields"),
                        origin: entry.origin
                    )
                )
                if let copied = entry.node("copies").flatMap({ self.map($0, file: "types.yaml") }) {
                    copies.append((name, copied.required("fieldsOf"), copied.string("dialect")))
                    finish(copied)
                }
                finish(entry)
            }
        }
        finish(map)
        for copy in copies {
            specification.copyFields(of: copy.key, in: copy.type, dialect: copy.dialect)
        }
    }

    mutating func fields(_ map: YAMLMap, _ key: String) -> [Field] {
        maps(map, key).map { entry in
            defer { finish(entry) }
            let wireKey = entry.required("key")
            let expression = entry.required("type")
            let type = WireType(expression)
            if type == nil {
                let text =
                    WireType.isTooDeep(expression)
                    ? "\(wireKey): a type may nest \(WireType.mostNested) deep"
                    : "unknown type \"\(expression)\""
                problems.append(Problem(origin: entry.origin, text: text))
            }
            return Field(
                key: wireKey,
                swiftName: entry.string("swift") ?? Names.property(fromKey: wireKey),
                type: type ?? .any,
                isRequired: entry.bool("required") ?? false,
                defaultValue: defaultValue(entry),
                limitUnits: entry.string("limit"),
                limitBytes: entry.string("limitBytes"),
                limitItems: entry.names("limitItems"),
                totalBytes: entry.string("totalBytes"),
                duplicates: entry.choice("duplicates"),
                anyCheck: entry.choice("checkedBy") ?? .reader,
                isPage: entry.bool("page") ?? false,
                without: entry.names("without"),
                aliases: entry.names("aliases"),
                copyOf: entry.names("copyOf"),
                capability: entry.string("capability") ?? entry.string("dialect"),
                forms: forms(entry),
                isSensitive: entry.bool("sensitive") ?? false,
                since: entry.requiredInt("since"),
                doc: entry.required("doc"),
                why: entry.string("why"),
                deprecated: deprecation(entry),
                origin: entry.origin
            )
        }
    }

    /// Reads `inDialect`. The value for each dialect is `absent`, or a map that contains one
    /// change.
    private mutating func forms(_ entry: YAMLMap) -> [DialectForm] {
        guard let node = entry.node("inDialect"), let forms = map(node, file: entry.origin.file)
        else { return [] }
        return forms.entries.compactMap { dialect, node in
            if node.scalar?.string == "absent" {
                return DialectForm(dialect: dialect, change: .absent)
            }
            if let pair = node.mapping?.first, node.mapping?.count == 1 {
                switch (pair.key.string, pair.value) {
                case ("prefix", let value):
                    if let prefix = value.string {
                        return DialectForm(dialect: dialect, change: .prefix(prefix))
                    }
                case ("words", let value):
                    let words = value.mapping?.compactMap { key, value in
                        key.string.flatMap { key in value.string.map { (key, $0) } }
                    }
                    if let words, !words.isEmpty {
                        return DialectForm(
                            dialect: dialect,
                            change: .words(Dictionary(words) { first, _ in first })
                        )
                    }
                case ("leavesOut", let value):
                    if let item = value.mapping?.first, let key = item.key.string,
                        let number = item.value.int
                    {
                        return DialectForm(
                            dialect: dialect,
                            change: .leavesOut(key: key, value: number)
                        )
                    }
                default: break
                }
            }
            problems.append(
                Problem(
                    origin: entry.origin,
                    text: "inDialect \(dialect): expected absent, words, prefix or leavesOut"
                )
            )
            return nil
        }
    }

    mutating func deprecation(_ entry: YAMLMap) -> Deprecation? {
        guard let node = entry.node("deprecated"), let map = map(node, file: entry.origin.file)
        else { return nil }
        defer { finish(map) }
        return Deprecation(
            since: map.requiredInt("since"),
            replacement: map.required("replacement"),
            sunset: map.requiredInt("sunset")
        )
    }

    private mutating func defaultValue(_ entry: YAMLMap) -> DefaultValue? {
        guard let node = entry.node("default") else { return nil }
        if let sequence = node.sequence, sequence.isEmpty { return .emptyList }
        if let mapping = node.mapping, mapping.isEmpty { return .emptyMap }
        if let scalar = node.scalar {
            if scalar.style != .doubleQuoted && scalar.style != .singleQuoted {
                if let bool = node.bool { return .bool(bool) }
                if let int = node.int { return .int(Int64(int)) }
            }
            return .string(scalar.string)
        }
        problems.append(Problem(origin: entry.origin, text: "a default is a scalar, [] or {}"))
        return nil
    }
}
