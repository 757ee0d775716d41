import Yams

/// A token bucket of `protocol.yaml` that requests are paid from.
struct RateBucketEntry: Sendable {
    /// Whose bucket it is.
    enum Owner: String, CaseIterable, Sendable { case user, anyone, connection, address }

    var name: String
    var owner: Owner
    /// Names of limits: what the bucket holds, and what it gets back.
    var burst: String
    var perMinute: String
    var doc: String
    var origin: Origin

    /// Whether an opcode can name it. Strangers pay the others for every request.
    var isNamed: Bool { owner == .user || owner == .anyone }
}

/// What a request may cost at most, and the bucket it is paid from: `cost` of an opcode.
struct CostEntry: Sendable {
    /// How long a request at its largest keeps its queue busy on the reference machine.
    enum Processor: String, CaseIterable, Sendable { case light, medium, heavy }

    /// Who is told, beside the session that asks.
    enum Audience: String, CaseIterable, Sendable { case nobody, ownSessions, members, contacts }

    var bucket: String
    /// Buckets that other forms of the request are paid from; `RateRules` decides.
    var also: [String]
    /// What the request costs by itself.
    var units: Int
    /// Paths of fields: each item of a list or map, or each one of a number, costs `itemUnits` more.
    var perItem: [String]
    var itemUnits: Int
    /// The limit that stands for a number that is absent; nil for 0.
    var pageSize: String?
    /// The limit of a number; its excess is not paid, for it is not served.
    var maxPage: String?
    /// The most rows that a request at its largest reads and writes, in any store.
    var rowsRead: Int
    var rowsWritten: Int
    /// By how much it can grow the store, bytes.
    var bytesStored: Int
    /// The most bytes of pushes for each receiver.
    var bytesTold: Int
    var tells: Audience
    var processor: Processor
    var origin: Origin
}

extension SpecificationLoader {
    mutating func buckets(_ map: YAMLMap) -> [RateBucketEntry] {
        maps(map, "buckets").map { entry in
            defer { finish(entry) }
            return RateBucketEntry(
                name: entry.required("name"),
                owner: entry.choice("of") ?? .user,
                burst: entry.required("burst"),
                perMinute: entry.required("perMinute"),
                doc: entry.required("doc"),
                origin: entry.origin
            )
        }
    }

    mutating func cost(_ opcode: YAMLMap) -> CostEntry? {
        guard let node = opcode.node("cost"), let entry = map(node, file: opcode.origin.file) else {
            return nil
        }
        defer { finish(entry) }
        let isList = entry.node("perItem")?.sequence != nil
        return CostEntry(
            bucket: entry.required("bucket"),
            also: entry.strings("also"),
            units: entry.int("units") ?? 1,
            perItem: isList
                ? entry.strings("perItem") : [entry.string("perItem")].compactMap(\.self),
            itemUnits: entry.int("itemUnits") ?? 1,
            pageSize: entry.string("pageSize"),
            maxPage: entry.string("maxPage"),
            rowsRead: entry.int("rowsRead") ?? 0,
            rowsWritten: entry.int("rowsWritten") ?? 0,
            bytesStored: entry.int("bytesStored") ?? 0,
            bytesTold: entry.int("bytesTold") ?? 0,
            tells: entry.choice("tells") ?? .nobody,
            processor: entry.choice("cpu") ?? .light,
            origin: entry.origin
        )
    }
}

extension Specification {
    func bucket(named name: String) -> RateBucketEntry? { buckets.first { $0.name == name } }

    /// The field of a request at a path as `settings.chats`, with the Swift expression for it.
    func field(at path: String, of type: StructType) -> (field: Field, swift: String)? {
        var type = type
        var swift = ""
        let keys = path.split(separator: ".").map(String.init)
        for (index, key) in keys.enumerated() {
            guard let field = type.fields.first(where: { $0.key == key }) else { return nil }
            swift += (swift.isEmpty ? "" : ".") + field.swiftName
            if index == keys.count - 1 { return (field, swift) }
            guard case .named(let name) = field.type, let inner = structType(named: name) else {
                return nil
            }
            if field.isOptional { swift += "?" }
            type = inner
        }
        return nil
    }
}
