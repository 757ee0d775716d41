import Foundation

/// Reads the tables, each of which has its own file: protocol, limits, errors, roles and entities.
extension SpecificationLoader {
    mutating func loadProtocol(into specification: inout Specification) {
        guard let map = document("protocol.yaml") else { return }
        specification.version = map.requiredInt("version")
        if let framing = map.node("framing").flatMap({ self.map($0, file: "protocol.yaml") }) {
            specification.acceptedVersions = framing.strings("versions").compactMap(Int.init)
            specification.writtenVersion = framing.requiredInt("answer")
            finish(framing)
        }
        for range in maps(map, "idRanges") {
            specification.idRanges.append(
                .init(
                    name: range.required("name"),
                    from: range.int("from") ?? 0,
                    through: range.int("through") ?? 0
                )
            )
            _ = range.required("doc")
            finish(range)
        }
        specification.states = documented(map, "states")
        specification.capabilities = documented(map, "capabilities")
        specification.dialects = maps(map, "dialects").map { entry in
            let base = entry.string("base")
            let moved = entry.strings("movedOpcodes").compactMap(Int.init)
            return .init(documented: documented(entry), base: base, movedOpcodes: moved)
        }
        specification.features = maps(map, "features").map { entry in
            let opcodes = entry.strings("opcodes")
            return .init(documented: documented(entry), opcodes: opcodes)
        }
        specification.buckets = buckets(map)
        finish(map)
    }

    private mutating func documented(_ map: YAMLMap, _ key: String) -> [Specification.Documented] {
        maps(map, key).map { documented($0) }
    }

    private mutating func documented(_ entry: YAMLMap) -> Specification.Documented {
        defer { finish(entry) }
        return .init(
            name: entry.required("name"),
            since: entry.int("since") ?? 1,
            doc: entry.required("doc"),
            origin: entry.origin
        )
    }

    mutating func loadLimits(into specification: inout Specification) {
        guard let map = document("limits.yaml") else { return }
        for entry in maps(map, "limits") {
            specification.limits.append(
                .init(
                    name: entry.required("name"),
                    value: entry.requiredInt("value"),
                    max: entry.int("max"),
                    change: entry.choice("change") ?? .wider,
                    unit: entry.required("unit"),
                    reason: entry.required("reason"),
                    since: entry.requiredInt("since"),
                    origin: entry.origin
                )
            )
            finish(entry)
        }
        finish(map)
    }

    /// Loads `roles.yaml`, which is optional.
    mutating func loadRoles(into specification: inout Specification) {
        let file = "roles.yaml"
        guard FileManager.default.fileExists(atPath: root.appending(path: file).path),
            let map = document(file)
        else { return }
        var roles = RoleSpecification()
        roles.kinds = documented(map, "kinds")
        roles.roles = documented(map, "roles")
        roles.permissions = bits(map, "permissions")
        roles.options = bits(map, "options")
        for entry in maps(map, "actions") {
            var cells: [String: [String: String]] = [:]
            for kind in roles.kinds {
                guard let node = entry.node(kind.name), let row = self.map(node, file: file) else {
                    continue
                }
                for role in roles.roles {
                    cells[kind.name, default: [:]][role.name] = row.string(role.name)
                }
                finish(row)
            }
            roles.actions.append(.init(documented: documented(entry), cells: cells))
        }
        finish(map)
        specification.roles = roles
    }

    /// Loads `entities.yaml`, which is optional.
    mutating func loadEntities(into specification: inout Specification) {
        let file = "entities.yaml"
        guard FileManager.default.fileExists(atPath: root.appending(path: file).path),
            let map = document(file)
        else { return }
        specification.entities = maps(map, "entities").map { entry in
            // Calls `documented` last, because `documented` reports all keys that have not been
            // read yet.
            var entity = EntitySpecification(
                documented: .init(name: "", since: 0, doc: "", origin: entry.origin),
                parent: entry.string("parent"),
                policy: entry.choice("policy") ?? .cas,
                contested: entry.choice("contested"),
                deletion: entry.choice("deletion") ?? .deleteWins,
                cascades: entry.bool("cascades") ?? true,
                naturalKey: entry.strings("naturalKey"),
                position: entry.string("position"),
                limitBytes: entry.required("limitBytes"),
                fields: maps(entry, "fields").map { field in
                    let type = WireType(field.required("type")) ?? .any
                    return .init(documented: documented(field), type: type)
                }
            )
            entity.documented = documented(entry)
            return entity
        }
        finish(map)
    }

    private mutating func bits(_ map: YAMLMap, _ key: String) -> [RoleSpecification.Bit] {
        maps(map, key).map { entry in
            let bit = entry.requiredInt("bit")
            return .init(documented: documented(entry), bit: bit)
        }
    }

    private mutating func texts(
        _ entry: YAMLMap,
        _ key: String
    ) -> Specification.ErrorCode.Texts? {
        guard let node = entry.node(key), let map = map(node, file: "errors.yaml") else {
            return nil
        }
        let languages = Specification.ErrorCode.Texts.languages
        let words = languages.map { ($0, map.required($0)) }
        finish(map)
        return .init(words: Dictionary(uniqueKeysWithValues: words))
    }

    mutating func loadErrors(into specification: inout Specification) {
        guard let map = document("errors.yaml") else { return }
        for entry in maps(map, "errors") {
            let code = entry.required("code")
            specification.errors.append(
                .init(
                    code: code,
                    swiftName: entry.string("swift") ?? Names.camel(fromSeparated: code),
                    errorClass: entry.choice("class") ?? .soft,
                    retry: entry.choice("retry") ?? .never,
                    isCommon: entry.bool("common") ?? false,
                    message: entry.string("message"),
                    texts: texts(entry, "texts"),
                    title: texts(entry, "title"),
                    when: entry.required("when"),
                    since: entry.requiredInt("since"),
                    origin: entry.origin
                )
            )
            finish(entry)
        }
        finish(map)
    }
}
