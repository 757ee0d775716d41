import Foundation

/// The whole specification as one JSON document, for tools in any language.
///
/// The form is canonical: keys are sorted, and lists keep the order of the YAML. The same
/// specification always gives the same text.
struct ProtocolBundle {
    let specification: Specification

    func text() -> String { Self.text(of: document()) }

    static func text(of document: [String: Any]) -> String {
        CanonicalJSON.text(of: document, itemsOnOneLine: ["examples"])
    }

    private func document() -> [String: Any] {
        [
            "version": specification.version,
            "framing": [
                "accepted": specification.acceptedVersions,
                "written": specification.writtenVersion,
            ],
            "idRanges": specification.idRanges.map {
                ["name": $0.name, "from": $0.from, "through": $0.through] as [String: Any]
            },
            "states": specification.states.map(documented),
            "capabilities": specification.capabilities.map(documented),
            "dialects": specification.dialects.map(dialect),
            "features": specification.features.map(feature),
            "buckets": specification.buckets.map { bucket in
                [
                    "name": bucket.name, "of": bucket.owner.rawValue, "burst": bucket.burst,
                    "perMinute": bucket.perMinute, "doc": bucket.doc,
                ]
            },
            "limits": specification.limits.map(limit),
            "errors": specification.errors.map(error),
            "enums": specification.enums.map(enumeration),
            "structs": specification.structs.map { type in
                var result: [String: Any] = [
                    "name": type.name, "since": type.since, "doc": type.doc,
                    "fields": type.fields.map(field),
                ]
                result["limitBytes"] = type.limitBytes
                return result
            },
            "roles": roles(specification.roles),
            "entities": specification.entities.map(entity),
            "families": specification.families.map(family),
            "requirements": specification.requirements.map(requirement),
            "flows": specification.flows.map(flow),
            "examples": specification.examples.flatMap { file in
                file.examples.map { example($0, of: file.opcode) }
            },
        ]
    }

    private func documented(_ entry: Specification.Documented) -> [String: Any] {
        ["name": entry.name, "since": entry.since, "doc": entry.doc]
    }

    private func dialect(_ dialect: Specification.Dialect) -> [String: Any] {
        var result = documented(dialect.documented)
        result["base"] = dialect.base
        if !dialect.movedOpcodes.isEmpty { result["movedOpcodes"] = dialect.movedOpcodes }
        return result
    }

    private func feature(_ feature: Specification.Feature) -> [String: Any] {
        var result = documented(feature.documented)
        result["opcodes"] = feature.opcodes
        return result
    }

    private func roles(_ roles: RoleSpecification) -> [String: Any] {
        func bit(_ bit: RoleSpecification.Bit) -> [String: Any] {
            var result = documented(bit.documented)
            result["bit"] = bit.bit
            return result
        }
        return [
            "kinds": roles.kinds.map(documented), "roles": roles.roles.map(documented),
            "permissions": roles.permissions.map(bit), "options": roles.options.map(bit),
            "actions": roles.actions.map { action in
                var result = documented(action.documented)
                result["cells"] = action.cells
                return result
            },
        ]
    }

    private func entity(_ entity: EntitySpecification) -> [String: Any] {
        var result = documented(entity.documented)
        result["parent"] = entity.parent
        result["policy"] = entity.policy.rawValue
        result["contested"] = entity.contested?.rawValue
        result["deletion"] = entity.deletion.rawValue
        result["cascades"] = entity.cascades
        result["naturalKey"] = entity.naturalKey
        result["position"] = entity.position
        result["limitBytes"] = entity.limitBytes
        result["rules"] = entity.rules
        result["fields"] = entity.fields.map { field in
            var result = documented(field.documented)
            result["type"] = field.type.yaml
            return result
        }
        return result
    }

    private func limit(_ limit: Specification.Limit) -> [String: Any] {
        var result: [String: Any] = [
            "name": limit.name, "value": limit.value, "change": limit.change.rawValue,
            "unit": limit.unit, "reason": limit.reason, "since": limit.since,
        ]
        result["max"] = limit.max
        return result
    }

    private func error(_ error: Specification.ErrorCode) -> [String: Any] {
        var result: [String: Any] = [
            "code": error.code, "class": error.errorClass.rawValue, "retry": error.retry.rawValue,
            "common": error.isCommon, "when": error.when, "since": error.since,
        ]
        result["message"] = error.message
        result["texts"] = error.texts?.words
        result["title"] = error.title?.words
        return result
    }

    private func enumeration(_ type: EnumType) -> [String: Any] {
        [
            "name": type.name, "open": type.isOpen, "since": type.since, "doc": type.doc,
            "values": type.values.map { value in
                var result: [String: Any] = ["value": value.value, "doc": value.doc]
                if !value.aliases.isEmpty { result["aliases"] = value.aliases }
                result["capability"] = value.capability
                result["fallback"] = value.fallback
                return result
            },
        ]
    }

    private func field(_ field: Field) -> [String: Any] {
        var result: [String: Any] = [
            "key": field.key, "type": field.type.yaml, "since": field.since,
            "doc": field.doc,
        ]
        if field.isRequired { result["required"] = true }
        if field.isSensitive { result["sensitive"] = true }
        result["default"] = field.defaultValue.map { PayloadModel.node(of: $0).json }
        result["limit"] = field.limitUnits
        result["limitBytes"] = field.limitBytes
        // A field with one list has one limit. Only nested lists have a limit for each level.
        if field.limitItems.count == 1 {
            result["limitItems"] = field.limitItems[0]
        } else if !field.limitItems.isEmpty {
            result["limitItems"] = field.limitItems
        }
        result["totalBytes"] = field.totalBytes
        result["duplicates"] = field.duplicates?.rawValue
        if field.anyCheck != .reader { result["checkedBy"] = field.anyCheck.rawValue }
        if field.isPage { result["page"] = true }
        if !field.without.isEmpty { result["without"] = field.without }
        if !field.aliases.isEmpty { result["aliases"] = field.aliases }
        if field.isCopy { result["copyOf"] = field.copyOf.joined(separator: ".") }
        if let gate = field.capability {
            result[specification.isDialect(gate) ? "dialect" : "capability"] = gate
        }
        if !field.forms.isEmpty {
            result["inDialect"] = Dictionary(
                field.forms.map { ($0.dialect, $0.text) }
            ) { first, _ in first }
        }
        result["why"] = field.why
        result["deprecated"] = field.deprecated.map(deprecation)
        return result
    }

    private func deprecation(_ deprecation: Deprecation) -> [String: Any] {
        [
            "since": deprecation.since, "replacement": deprecation.replacement,
            "sunset": deprecation.sunset,
        ]
    }

    private func family(_ family: Specification.Family) -> [String: Any] {
        [
            "name": family.name, "doc": family.doc, "opcodes": family.opcodes.map(opcode),
            "known": family.known.map { known in
                [
                    "opcode": known.number, "name": known.name,
                    "direction": known.direction.rawValue,
                ] as [String: Any]
            },
        ]
    }

    private func opcode(_ opcode: OpcodeEntry) -> [String: Any] {
        var result: [String: Any] = [
            "opcode": opcode.number, "name": opcode.name, "direction": opcode.direction.rawValue,
            "since": opcode.since, "doc": opcode.doc, "states": opcode.states,
            "errors": opcode.errors,
            "effects": opcode.effects.map { ["push": $0.push, "to": $0.to, "when": $0.when] },
            "edges": opcode.edges.map { edge in
                [
                    "id": edge.id, "level": edge.level.rawValue, "title": edge.title,
                    "given": edge.given, "then": edge.then,
                ]
            },
        ]
        result["kind"] = opcode.kind?.rawValue
        result["idempotency"] = opcode.idempotency?.rawValue
        result["key"] = opcode.key
        result["cost"] = opcode.cost.map(cost)
        result["capability"] = opcode.capability
        result["deprecated"] = opcode.deprecated.map(deprecation)
        result["request"] = opcode.request?.fields.map(field)
        result["reply"] = opcode.reply?.fields.map(field)
        result["push"] = opcode.push?.fields.map(field)
        return result
    }

    private func cost(_ cost: CostEntry) -> [String: Any] {
        var result: [String: Any] = [
            "bucket": cost.bucket, "also": cost.also, "units": cost.units,
            "perItem": cost.perItem, "itemUnits": cost.itemUnits,
            "rowsRead": cost.rowsRead, "rowsWritten": cost.rowsWritten,
            "bytesStored": cost.bytesStored, "bytesTold": cost.bytesTold,
            "tells": cost.tells.rawValue, "cpu": cost.processor.rawValue,
        ]
        result["pageSize"] = cost.pageSize
        result["maxPage"] = cost.maxPage
        return result
    }

    private func requirement(_ requirement: Requirement) -> [String: Any] {
        var result: [String: Any] = [
            "id": requirement.id, "level": requirement.level.rawValue, "text": requirement.text,
        ]
        result["title"] = requirement.title
        switch requirement.place {
        case .chapter(let name): result["chapter"] = name
        case .opcode(let name): result["opcode"] = name
        }
        return result
    }

    private func flow(_ flow: Flow) -> [String: Any] {
        [
            "flow": flow.name, "title": flow.title, "doc": flow.doc,
            "steps": flow.steps.map { step($0.action) },
        ]
    }

    private func step(_ action: Flow.Action) -> [String: Any] {
        switch action {
        case .connect(let device): return ["connect": device]
        case .login(let device): return ["login": device]
        case .disconnect(let device): return ["disconnect": device]
        case .note(let text): return ["note": text]
        case .silence(let device): return ["silence": device]
        case .push(let opcode, let device, let value, let save):
            return ["push": opcode, "to": device, "value": value.json, "save": saved(save)]
        case .request(let opcode, let device, let value, let answer, let save):
            var result: [String: Any] = [
                "request": opcode, "from": device, "value": value.json, "save": saved(save),
            ]
            switch answer {
            case .reply(let value): result["reply"] = value.json
            case .error(let code): result["error"] = code
            }
            return result
        }
    }

    private func saved(_ saved: [Flow.Saved]) -> [String: String] {
        Dictionary(saved.map { ($0.name, $0.pointer) }) { first, _ in first }
    }

    private func example(_ example: Example, of opcode: String) -> [String: Any] {
        [
            "opcode": opcode, "name": example.name, "role": example.role.rawValue,
            "seq": example.sequence, "value": (example.value ?? .map([])).json,
            "hex": example.hex ?? "",
            "accept": example.accepts.map { ["name": $0.name, "hex": $0.hex ?? ""] },
            "reject": example.rejects.map { reject in
                var result: [String: Any] = [
                    "name": reject.name, "hex": reject.hex ?? "", "error": reject.error,
                ]
                if !reject.limits.isEmpty { result["limits"] = reject.limits }
                return result
            },
        ]
    }
}

extension WireNode {
    /// The value for `JSONSerialization`; a byte string becomes `{"$bytes": hex}`.
    var json: Any {
        switch self {
        case .null: NSNull()
        case .bool(let bool): bool
        case .int(let int): int
        case .uint(let uint): uint
        case .double(let double): double
        case .string(let string): string
        case .badString(let bytes), .bytes(let bytes), .raw(let bytes):
            ["$bytes": Hex.text(bytes)]
        case .ext(_, let bytes): ["$bytes": Hex.text(bytes)]
        case .array(let items): items.map(\.json)
        case .map(let pairs):
            Dictionary(pairs.map { ($0.key.jsonKey, $0.value.json) }) { first, _ in first }
        case .forced(_, let inner): inner.json
        }
    }

    private var jsonKey: String {
        switch self {
        case .string(let string): string
        case .int(let int): "\(int)"
        default: "\(plain)"
        }
    }
}
