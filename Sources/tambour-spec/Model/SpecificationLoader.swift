import Foundation
import Yams

/// Reads `protocol-spec/` into a `Specification`, collecting every problem instead of stopping at the first.
struct SpecificationLoader {
    private let root: URL
    private(set) var problems: [Problem] = []

    /// - Parameter root: The folder `protocol-spec`.
    init(root: URL) {
        self.root = root
    }

    mutating func load() -> Specification {
        var specification = Specification()
        loadProtocol(into: &specification)
        loadLimits(into: &specification)
        loadErrors(into: &specification)
        loadTypes(into: &specification)
        loadRoles(into: &specification)
        loadEntities(into: &specification)
        for file in files(under: "opcodes") {
            loadFamily(file, into: &specification)
        }
        for file in files(under: "examples") {
            loadExamples(file, into: &specification)
        }
        for file in files(under: "prose", ofType: "md") {
            loadChapter(file, into: &specification)
        }
        for file in files(under: "flows") {
            loadFlow(file, into: &specification)
        }
        return specification
    }

    // MARK: Files

    private func files(under folder: String, ofType type: String = "yaml") -> [String] {
        let enumerator = FileManager.default.enumerator(atPath: root.appending(path: folder).path)
        var found: [String] = []
        while let path = enumerator?.nextObject() as? String {
            if path.hasSuffix(".\(type)") { found.append("\(folder)/\(path)") }
        }
        return found.sorted()
    }

    private mutating func document(_ file: String) -> YAMLMap? {
        do {
            let text = try TextFile.read(root.appending(path: file), as: file)
            guard let node = try Yams.compose(yaml: text) else {
                problems.append(Problem(origin: Origin(file: file, line: 0), text: "is empty"))
                return nil
            }
            return map(node, file: file)
        } catch let problem as Problem {
            problems.append(problem)
            return nil
        } catch {
            problems.append(
                Problem(origin: Origin(file: file, line: 0), text: "cannot be read: \(error)")
            )
            return nil
        }
    }

    mutating func map(_ node: Node, file: String) -> YAMLMap? {
        guard let map = YAMLMap(node, file: file) else {
            problems.append(
                Problem(
                    origin: Origin(file: file, line: node.mark?.line ?? 0),
                    text: "expected a map"
                )
            )
            return nil
        }
        for key in map.duplicateKeys {
            problems.append(Problem(origin: map.origin, text: "key \"\(key)\" is there twice"))
        }
        return map
    }

    mutating func maps(_ map: YAMLMap, _ key: String) -> [YAMLMap] {
        guard let node = map.node(key) else { return [] }
        guard let sequence = node.sequence else {
            problems.append(Problem(origin: map.origin, text: "\"\(key)\" must be a list"))
            return []
        }
        return sequence.compactMap { self.map($0, file: map.origin.file) }
    }

    mutating func finish(_ map: YAMLMap) {
        problems += map.problems()
    }

    // MARK: protocol.yaml, limits.yaml, errors.yaml

    private mutating func loadProtocol(into specification: inout Specification) {
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

    private mutating func loadLimits(into specification: inout Specification) {
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
    private mutating func loadRoles(into specification: inout Specification) {
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
    private mutating func loadEntities(into specification: inout Specification) {
        let file = "entities.yaml"
        guard FileManager.default.fileExists(atPath: root.appending(path: file).path),
            let map = document(file)
        else { return }
        specification.entities = maps(map, "entities").map { entry in
            // Name and text come last, because reading them finishes the entry.
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

    private mutating func loadErrors(into specification: inout Specification) {
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

    // MARK: types.yaml

    private mutating func loadTypes(into specification: inout Specification) {
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

    private mutating func fields(_ map: YAMLMap, _ key: String) -> [Field] {
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

    /// Reads `inDialect`: for each dialect `absent`, or a map with one change.
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

    private mutating func deprecation(_ entry: YAMLMap) -> Deprecation? {
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

    // MARK: opcodes/

    private mutating func loadFamily(_ file: String, into specification: inout Specification) {
        guard let map = document(file) else { return }
        let name = map.required("family")
        var family = Specification.Family(
            name: name,
            doc: map.required("doc"),
            opcodes: [],
            known: [],
            origin: map.origin
        )
        for entry in maps(map, "opcodes") {
            family.opcodes.append(opcode(entry, family: name))
            finish(entry)
        }
        for entry in maps(map, "known") {
            family.known.append(
                .init(
                    number: entry.requiredInt("opcode"),
                    name: entry.required("name"),
                    direction: entry.choice("direction") ?? .clientToServer,
                    origin: entry.origin
                )
            )
            finish(entry)
        }
        specification.families.append(family)
        finish(map)
    }

    private mutating func opcode(_ entry: YAMLMap, family: String) -> OpcodeEntry {
        let name = entry.required("name")
        let stem = entry.string("swift") ?? Names.pascal(fromOpcode: name)
        let doc = entry.required("doc")
        let since = entry.requiredInt("since")
        func body(_ key: String, _ role: StructType.Role, suffix: String, doc: String)
            -> StructType?
        {
            guard entry.node(key) != nil else { return nil }
            return StructType(
                name: stem + suffix,
                role: role,
                doc: doc,
                since: since,
                fields: fields(entry, key),
                origin: entry.origin
            )
        }
        return OpcodeEntry(
            number: entry.requiredInt("opcode"),
            name: name,
            swiftStem: stem,
            family: family,
            direction: entry.choice("direction") ?? .clientToServer,
            since: since,
            doc: doc,
            states: entry.strings("states"),
            kind: entry.choice("kind"),
            idempotency: entry.choice("idempotency"),
            key: entry.string("key"),
            cost: cost(entry),
            capability: entry.string("capability"),
            errors: entry.strings("errors"),
            effects: maps(entry, "effects").map { effect in
                defer { finish(effect) }
                return .init(
                    push: effect.required("push"),
                    to: effect.required("to"),
                    when: effect.required("when")
                )
            },
            edges: maps(entry, "edges").map { edge in
                defer { finish(edge) }
                return Edge(
                    id: edge.required("id"),
                    level: edge.choice("level") ?? .must,
                    title: edge.required("title"),
                    given: edge.required("given"),
                    then: edge.required("then"),
                    origin: edge.origin
                )
            },
            request: body("request", .request, suffix: "Request", doc: doc),
            reply: body("reply", .reply, suffix: "Reply", doc: "The answer to \(name)."),
            push: body("push", .push, suffix: "", doc: doc),
            deprecated: deprecation(entry),
            origin: entry.origin
        )
    }

    // MARK: examples/

    private mutating func loadExamples(_ file: String, into specification: inout Specification) {
        guard let map = document(file) else { return }
        var result = ExampleFile(opcode: map.required("opcode"), examples: [], origin: map.origin)
        for entry in maps(map, "examples") {
            var example = Example(
                name: entry.required("name"),
                role: entry.choice("role") ?? .request,
                dialect: entry.string("dialect"),
                sequence: entry.int("seq") ?? 0,
                value: wireValue(entry, "value"),
                plain: wireValue(entry, "plain"),
                hex: entry.string("hex"),
                hexLine: entry.line("hex"),
                accepts: [],
                rejects: [],
                origin: entry.origin
            )
            for accept in maps(entry, "accept") {
                example.accepts.append(
                    .init(
                        name: accept.required("name"),
                        wire: wireValue(accept, "wire"),
                        hex: accept.string("hex"),
                        hexLine: accept.line("hex"),
                        origin: accept.origin
                    )
                )
                finish(accept)
            }
            for reject in maps(entry, "reject") {
                var limits: [String: Int] = [:]
                if let node = reject.node("limits"), let overrides = self.map(node, file: file) {
                    for (key, value) in overrides.entries { limits[key] = value.int ?? 0 }
                }
                example.rejects.append(
                    .init(
                        name: reject.required("name"),
                        wire: wireValue(reject, "wire"),
                        hex: reject.string("hex"),
                        hexLine: reject.line("hex"),
                        limits: limits,
                        error: reject.required("error"),
                        origin: reject.origin
                    )
                )
                finish(reject)
            }
            result.examples.append(example)
            finish(entry)
        }
        specification.examples.append(result)
        finish(map)
    }

    // MARK: prose/, flows/

    private mutating func loadChapter(_ file: String, into specification: inout Specification) {
        do {
            let text = try TextFile.read(root.appending(path: file), as: file)
            let name = file.dropFirst("prose/".count).dropLast(".md".count)
            specification.chapters.append(ChapterParser.parse(text, name: String(name), file: file))
        } catch {
            problems.append(error)
        }
    }

    private mutating func loadFlow(_ file: String, into specification: inout Specification) {
        guard let map = document(file) else { return }
        specification.flows.append(
            Flow(
                name: map.required("flow"),
                title: map.required("title"),
                doc: map.required("doc"),
                steps: maps(map, "steps").compactMap { step(of: $0) },
                origin: map.origin
            )
        )
        finish(map)
    }

    private mutating func step(of map: YAMLMap) -> Flow.Step? {
        defer { finish(map) }
        let action: Flow.Action? =
            if let device = map.string("connect") {
                .connect(device)
            } else if let device = map.string("login") {
                .login(device)
            } else if let device = map.string("disconnect") {
                .disconnect(device)
            } else if let text = map.string("note") {
                .note(text)
            } else if let device = map.string("silence") {
                .silence(device)
            } else if let opcode = map.string("request") {
                .request(
                    opcode: opcode,
                    from: map.required("from"),
                    value: wireValue(map, "value") ?? .map([]),
                    answer: map.string("error").map { .error($0) }
                        ?? .reply(wireValue(map, "reply") ?? .map([])),
                    save: saved(map)
                )
            } else if let opcode = map.string("push") {
                .push(
                    opcode: opcode,
                    to: map.required("to"),
                    value: wireValue(map, "value") ?? .map([]),
                    save: saved(map)
                )
            } else {
                nil
            }
        guard let action else {
            problems.append(Problem(origin: map.origin, text: "is no step of a flow"))
            return nil
        }
        return Flow.Step(action: action, origin: map.origin)
    }

    private mutating func saved(_ map: YAMLMap) -> [Flow.Saved] {
        guard let node = map.node("save"), let entries = self.map(node, file: map.origin.file)
        else {
            return []
        }
        return entries.entries.map { Flow.Saved(name: $0.0, pointer: $0.1.string ?? "") }
    }

    private mutating func wireValue(_ map: YAMLMap, _ key: String) -> WireNode? {
        guard let node = map.node(key) else { return nil }
        do {
            return try WireNode(yaml: node)
        } catch {
            problems.append(Problem(origin: map.origin, text: "\(key): \(error)"))
            return nil
        }
    }
}

/// A YAML map that records which of its keys were read, so that misspelt keys can be reported.
final class YAMLMap {
    let origin: Origin
    let entries: [(String, Node)]
    let duplicateKeys: [String]
    private var asked: Set<String> = []
    private var found: [Problem] = []

    init?(_ node: Node, file: String) {
        guard let mapping = node.mapping else { return nil }
        origin = Origin(file: file, line: node.mark?.line ?? 0)
        entries = mapping.map { ($0.key.string ?? "?", $0.value) }
        var seen: Set<String> = []
        duplicateKeys = entries.map(\.0).filter { !seen.insert($0).inserted }
    }

    func node(_ key: String) -> Node? {
        asked.insert(key)
        return entries.first { $0.0 == key }?.1
    }

    func string(_ key: String) -> String? {
        guard let node = node(key) else { return nil }
        guard let scalar = node.scalar else {
            complain("\"\(key)\" must be a string")
            return nil
        }
        return scalar.string.split(whereSeparator: \.isNewline).joined(separator: " ")
    }

    /// Returns the line of a key's value.
    func line(_ key: String) -> Int { node(key)?.mark?.line ?? 0 }

    func required(_ key: String) -> String {
        guard let string = string(key), !string.isEmpty else {
            complain("has no \"\(key)\"")
            return "?"
        }
        return string
    }

    func int(_ key: String) -> Int? {
        guard let node = node(key) else { return nil }
        guard let int = node.int else {
            complain("\"\(key)\" must be a number")
            return nil
        }
        return int
    }

    func requiredInt(_ key: String) -> Int {
        guard node(key) != nil else {
            complain("has no \"\(key)\"")
            return 0
        }
        return int(key) ?? 0
    }

    func bool(_ key: String) -> Bool? {
        guard let node = node(key) else { return nil }
        guard let bool = node.bool else {
            complain("\"\(key)\" must be true or false")
            return nil
        }
        return bool
    }

    func strings(_ key: String) -> [String] {
        guard let node = node(key) else { return [] }
        guard let sequence = node.sequence else {
            complain("\"\(key)\" must be a list")
            return []
        }
        return sequence.compactMap(\.string)
    }

    /// Returns one name, or a list of names.
    func names(_ key: String) -> [String] {
        guard let node = node(key) else { return [] }
        if let name = node.scalar?.string { return [name] }
        return strings(key)
    }

    func choice<Choice: RawRepresentable<String>>(_ key: String) -> Choice? {
        guard let string = string(key) else { return nil }
        guard let choice = Choice(rawValue: string) else {
            complain("\"\(key)\" has no value \"\(string)\"")
            return nil
        }
        return choice
    }

    /// Returns the problems found, including keys that were never read.
    func problems() -> [Problem] {
        found
            + entries.map(\.0).filter { !asked.contains($0) }.map {
                Problem(origin: origin, text: "unknown key \"\($0)\"")
            }
    }

    private func complain(_ text: String) {
        found.append(Problem(origin: origin, text: text))
    }
}
