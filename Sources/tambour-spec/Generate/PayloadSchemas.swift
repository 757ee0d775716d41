/// Generates a JSON Schema (draft 2020-12) for each request, reply, push and error. The schemas are
/// for tools that process payloads as JSON.
///
/// A schema accepts every value that a reader accepts, including ids as digits, nil for optional
/// fields, and unknown keys. A byte string is `{"$bytes": hex}`. JSON Schema counts characters, so
/// it accepts some texts that exceed a limit in UTF-16 units or bytes.
struct PayloadSchemas {
    static let dialect = "https://json-schema.org/draft/2020-12/schema"

    let specification: Specification

    /// Returns the path and the content of every schema, sorted by path. A path has the form
    /// `schema/<OPCODE>.<role>.json`.
    func files() -> [(path: String, content: String)] {
        var files: [(path: String, content: String)] = []
        func add(_ opcode: OpcodeEntry, _ role: Example.Role, _ type: StructType?) {
            guard let type else { return }
            let name = "\(opcode.name).\(role.rawValue).json"
            files.append(
                ("schema/\(name)", ProtocolBundle.text(of: schema(name, opcode, role, type)))
            )
        }
        for opcode in specification.families.flatMap(\.opcodes) {
            add(opcode, .request, opcode.request)
            add(opcode, .reply, opcode.reply)
            add(opcode, .push, opcode.push)
            add(opcode, .error, specification.structType(named: "ErrorReply"))
        }
        return files.sorted { $0.path < $1.path }
    }

    // MARK: Payloads

    private func schema(
        _ name: String,
        _ opcode: OpcodeEntry,
        _ role: Example.Role,
        _ type: StructType
    ) -> [String: Any] {
        var schema = object(type)
        schema["$schema"] = Self.dialect
        schema["$id"] = name
        schema["title"] = "\(opcode.name) (\(opcode.number)), \(role.rawValue)"
        schema["description"] = role == .error ? type.doc : opcode.doc
        var definitions: [String: Any] = [:]
        for name in mentioned(by: type) {
            definitions[name] =
                specification.structType(named: name).map(object)
                ?? specification.enumType(named: name).map(enumeration)
        }
        if !definitions.isEmpty { schema["$defs"] = definitions }
        return schema
    }

    /// Returns the names of all structs and enums that a payload may contain at any depth.
    private func mentioned(by type: StructType) -> Set<String> {
        var found: Set<String> = []
        var open = type.fields
        while let field = open.popLast() {
            for name in field.type.mentioned where found.insert(name).inserted {
                open += specification.structType(named: name)?.fields ?? []
            }
        }
        return found
    }

    private func object(_ type: StructType) -> [String: Any] {
        var schema: [String: Any] = [
            "type": "object", "description": type.doc,
            "properties": Dictionary(
                type.fields.flatMap { field in
                    ([field.key] + field.aliases).map { ($0, property(field)) }
                }
            ) { first, _ in first },
        ]
        // A schema applies to every dialect. A field that some dialect omits is therefore not
        // required.
        let required = type.fields.filter { $0.isRequired && $0.absentIn.isEmpty }
        let always = required.filter(\.aliases.isEmpty).map(\.key)
        if !always.isEmpty { schema["required"] = always }
        let oneOf = required.filter { !$0.aliases.isEmpty }.map { field in
            ["anyOf": ([field.key] + field.aliases).map { ["required": [$0]] }]
        }
        if !oneOf.isEmpty { schema["allOf"] = oneOf }
        return schema
    }

    private func property(_ field: Field) -> [String: Any] {
        let value = self.schema(of: field.type, field, level: 0)
        var schema = value
        if !field.isRequired, !value.isEmpty {
            let choices = value["anyOf"] as? [[String: Any]] ?? [value]
            schema = ["anyOf": choices + [["type": "null"]]]
        }
        schema["description"] = field.doc
        schema["default"] = field.defaultValue.map { PayloadModel.node(of: $0).json }
        schema["x-since"] = field.since
        if let gate = field.capability {
            schema[specification.isDialect(gate) ? "x-dialect" : "x-capability"] = gate
        }
        if !field.forms.isEmpty {
            schema["x-in-dialect"] = Dictionary(
                field.forms.map { ($0.dialect, $0.text) }
            ) { first, _ in first }
        }
        if field.isSensitive { schema["x-sensitive"] = true }
        if field.deprecated != nil { schema["deprecated"] = true }
        return schema
    }

    private func enumeration(_ type: EnumType) -> [String: Any] {
        var values: [[String: Any]] = type.values.flatMap { value in
            ([value.value] + value.aliases).map { ["const": $0, "description": value.doc] }
        }
        if type.isOpen { values.append(["description": "A value this release does not know."]) }
        return [
            "type": "string", "description": type.doc,
            "maxLength": limit("maxShortStringBytes") ?? .max, "anyOf": values,
        ]
    }

    // MARK: Types

    private static let digits = "^-?[0-9]+$"

    /// - Parameter level: The number of the field's lists and maps that contain the value.
    private func schema(of type: WireType, _ field: Field, level: Int) -> [String: Any] {
        switch type {
        case .bool: return ["type": "boolean"]
        case .int, .ms:
            return ["type": "integer", "minimum": Int64.min, "maximum": Int64.max]
        case .double: return ["type": "number"]
        case .chatID, .userID, .messageID:
            let integer = schema(of: .int, field, level: level)
            return ["anyOf": [integer, ["type": "string", "pattern": Self.digits]]]
        case .text, .string:
            var schema: [String: Any] = ["type": "string"]
            schema["maxLength"] = [field.limitUnits, field.limitBytes].compactMap(limit).min()
            return schema
        case .bytes:
            var hex: [String: Any] = ["type": "string", "pattern": "^([0-9a-f]{2})*$"]
            hex["maxLength"] = limit(field.limitBytes).map { $0 * 2 }
            let bytes: [String: Any] = [
                "type": "object", "properties": ["$bytes": hex], "required": ["$bytes"],
                "additionalProperties": false,
            ]
            return ["anyOf": [bytes, schema(of: .string, field, level: level)]]
        case .any: return [:]
        case .list(let element):
            var schema: [String: Any] = [
                "type": "array", "items": self.schema(of: element, field, level: level + 1),
            ]
            schema["maxItems"] = limit(field.limitItems(at: level))
            if field.duplicates == .refused { schema["uniqueItems"] = true }
            return schema
        case .map(_, let value):
            var schema: [String: Any] = [
                "type": "object", "propertyNames": ["pattern": Self.digits],
                "additionalProperties": self.schema(of: value, field, level: level + 1),
            ]
            schema["maxProperties"] = limit(field.limitItems(at: level))
            return schema
        case .names(let value):
            var schema: [String: Any] = [
                "type": "object",
                "additionalProperties": self.schema(of: value, field, level: level + 1),
            ]
            schema["maxProperties"] = limit(field.limitItems(at: level))
            return schema
        case .packed(let inner): return schema(of: inner, field, level: level)
        case .named(let name): return ["$ref": "#/$defs/\(name)"]
        }
    }

    private func limit(_ name: String?) -> Int? {
        name.flatMap { specification.limit(named: $0)?.value }
    }
}
