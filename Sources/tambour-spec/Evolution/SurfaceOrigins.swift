/// Where the specification declares the things of a surface.
struct SurfaceOrigins {
    private var origins: [String: Origin] = [:]

    init(_ specification: Specification) {
        for entry in specification.states { origins["state \(entry.name)"] = entry.origin }
        for entry in specification.gates {
            origins["capability \(entry.name)"] = entry.origin
        }
        for entry in specification.features {
            origins["feature \(entry.name)"] = entry.documented.origin
        }
        for limit in specification.limits { origins["limit \(limit.name)"] = limit.origin }
        for error in specification.errors { origins["error \(error.code)"] = error.origin }
        for type in specification.enums { origins[type.name] = type.origin }
        for type in specification.structs {
            origins[type.name] = type.origin
            add(type.fields, of: type.name, as: "field")
        }
        for known in specification.families.flatMap(\.known) {
            origins["known opcode \(known.number)"] = known.origin
        }
        for opcode in specification.families.flatMap(\.opcodes) {
            let id = "opcode \(opcode.number)"
            origins[id] = opcode.origin
            add(opcode.request?.fields, of: id, as: "request")
            add(opcode.reply?.fields, of: id, as: "reply")
            add(opcode.push?.fields, of: id, as: "push")
        }
        for bit in specification.roles.permissions {
            origins["permission \(bit.name)"] = bit.documented.origin
        }
        for bit in specification.roles.options {
            origins["option \(bit.name)"] = bit.documented.origin
        }
        for action in specification.roles.actions {
            for (kind, row) in action.cells {
                for role in row.keys {
                    origins["\(action.name) by \(role) in \(kind)"] = action.documented.origin
                }
            }
        }
        for entity in specification.entities {
            let id = "entity \(entity.name)"
            origins[id] = entity.origin
            for field in entity.fields {
                origins["\(id) field \(field.name)"] = field.documented.origin
            }
        }
        for requirement in specification.requirements {
            origins[requirement.id] = requirement.origin
        }
    }

    private mutating func add(_ fields: [Field]?, of owner: String, as role: String) {
        for field in fields ?? [] { origins["\(owner) \(role) \(field.key)"] = field.origin }
    }

    /// Returns the line of a thing; if it is gone, the line of its owner; otherwise the file.
    func origin(of item: SurfaceItem) -> Origin {
        origins[item.id] ?? item.owner.flatMap { origins[$0] } ?? Origin(file: item.file, line: 0)
    }
}
