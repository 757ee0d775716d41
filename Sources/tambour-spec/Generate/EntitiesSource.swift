/// Generates `EntitySchema.standard`: the types of entities and their rules.
struct EntitiesSource {
    let entities: [EntitySpecification]

    func text() -> String {
        var source = SourceText(from: "protocol-spec/entities.yaml")
        source.block("extension EntityType") { source in
            for entity in entities {
                source.doc(entity.documented.doc)
                source.line(
                    "public static let \(entity.name) = EntityType(\(literal(entity.name)))"
                )
            }
        }
        source.line()
        source.block("extension EntitySchema") { source in
            source.doc("The types there are.")
            source.block("package static func standard(_ limits: Limits) -> EntitySchema") {
                source in
                source.block("EntitySchema(", ")") { source in
                    source.block("[", "],") { source in
                        for entity in entities { write(entity, to: &source) }
                    }
                    source.line("maxOperations: limits.maxObjectOperations,")
                    source.line("maxPushBytes: limits.maxReplyBytes / 2")
                }
            }
        }
        return source.text
    }

    private func write(_ entity: EntitySpecification, to source: inout SourceText) {
        source.block("Kind(", "),") { source in
            source.line("type: .\(entity.name),")
            source.line("parent: \(entity.parent.map { ".\($0)" } ?? "nil"),")
            source.line("policy: \(policy(of: entity)),")
            source.line("deletion: .\(entity.deletion.rawValue),")
            source.block("fields: [", "],") { source in
                for field in entity.fields {
                    source.line("\(literal(field.name)): .\(field.kind ?? "map"),")
                }
            }
            let key = entity.naturalKey.map { literal($0) }.joined(separator: ", ")
            source.line("naturalKey: [\(key)],")
            source.line("position: \(entity.position.map { literal($0) } ?? "nil"),")
            source.line("maxBytes: limits.\(entity.limitBytes),")
            source.line("cascades: \(entity.cascades)")
        }
    }

    private func policy(of entity: EntitySpecification) -> String {
        switch entity.policy {
        case .merge: ".merge(contested: .\((entity.contested ?? .cas).rawValue))"
        case .cas, .lww, .append: ".\(entity.policy.rawValue)"
        }
    }
}
