@testable import tambour_spec

/// Trials that change entity types.
extension Trials {
    private static var fields: [String] {
        old.entities.flatMap { entity in
            entity.fields.map { "entity \(entity.name).\($0.name)" }
        }
    }

    mutating func addEntities() {
        func broken(_ titles: [String], _ rule: String) -> [Broken] {
            titles.map { Broken(title: $0, rule: rule) }
        }
        let types = Self.old.entities.map { "entity \($0.name)" }
        let fields = Self.fields
        add("a type of entities is removed", types, breaks: broken(types, "entity-removed")) {
            $0.entities = []
        }
        add("entities outlive their parent", types, breaks: broken(types, "entity-rules-changed")) {
            Self.forEachEntity(&$0) { $0.cascades.toggle() }
        }
        add("a type of entities is dated anew", types, breaks: broken(types, "since-of-entity")) {
            Self.forEachEntity(&$0) { $0.documented.since = Self.next.version }
        }
        add("a field is removed", fields, breaks: broken(fields, "entity-field-removed")) {
            Self.forEachEntity(&$0) { $0.fields = [] }
        }
        add("a field takes other values", fields, breaks: broken(fields, "entity-field-type")) {
            Self.forEachEntity(&$0) { entity in
                for index in entity.fields.indices {
                    entity.fields[index].type = entity.fields[index].type == .bytes ? .bool : .bytes
                }
            }
        }
        add("a field is dated anew", fields, breaks: broken(fields, "since-of-entityField")) {
            Self.forEachEntity(&$0) { entity in
                for index in entity.fields.indices {
                    entity.fields[index].documented.since = Self.next.version
                }
            }
        }
        for (what, since, isBroken) in [
            ("is added", Self.next.version, false),
            ("is added and dated back", Self.old.version, true),
        ] {
            let type = isBroken ? broken(["entity added"], "since-of-added-entity") : []
            add("a type of entities \(what)", ["added"], breaks: type) {
                var entity = $0.entities[0]
                entity.documented.name = "added"
                entity.documented.since = since
                entity.fields = []
                entity.naturalKey = []
                $0.entities.append(entity)
            }
            let field =
                isBroken ? broken(["\(types[0]).added"], "since-of-added-entityField") : []
            add("a field of entities \(what)", ["added"], breaks: field) {
                var field = $0.entities[0].fields[0]
                field.documented.name = "added"
                field.documented.since = since
                $0.entities[0].fields.append(field)
            }
        }
    }

    private static func forEachEntity(
        _ specification: inout Specification,
        _ change: (inout EntitySpecification) -> Void
    ) {
        for index in specification.entities.indices { change(&specification.entities[index]) }
    }
}
