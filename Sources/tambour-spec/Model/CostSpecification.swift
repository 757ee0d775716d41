import Yams

/// A token bucket of `protocol.yaml`. Each request takes its cost from one or more buckets.
struct RateBucketEntry: Sendable {
    /// The thing that has its own bucket: each user, each connection or each address. `anyone`
    /// means the account and, before login, the address as well.
    enum Owner: String, CaseIterable, Sendable { case user, anyone, connection, address }

    var name: String
    var owner: Owner
    /// The names of two limits: the capacity of the bucket, and its refill per minute.
    var burst: String
    var perMinute: String
    var doc: String
    var origin: Origin

    /// Whether an opcode can name the bucket. The other buckets apply to requests before login.
    var isNamed: Bool { owner == .user || owner == .anyone }
}

/// The value of `cost` of an opcode: the cost of a request, and the bucket that the cost is taken
/// from.
struct CostEntry: Sendable {
    /// How long the largest request occupies its queue on the reference machine, as one of three
    /// classes.
    enum Processor: String, CaseIterable, Sendable { case light, medium, heavy }

    /// Who receives the pushes that the request causes. The requesting session may receive them
    /// too.
    enum Audience: String, CaseIterable, Sendable { case nobody, ownSessions, members, contacts }

    var bucket: String
    /// Further buckets that pay for some forms of the request. `RateRules` decides which forms.
    var also: [String]
    /// The base cost of the request.
    var units: Int
    /// The paths of fields that make the request dearer. Each item of such a list or map, or each
    /// unit of such a number, adds `itemUnits` to the cost.
    var perItem: [String]
    var itemUnits: Int
    /// The name of the limit whose value counts if the number is absent. If nil, an absent number
    /// counts as 0.
    var pageSize: String?
    /// The name of the limit for the number. Units above the limit are not served and cost nothing.
    var maxPage: String?
    /// The maximum numbers of rows that the largest request reads and writes, in any store.
    var rowsRead: Int
    var rowsWritten: Int
    /// The maximum number of bytes that the request can add to the store.
    var bytesStored: Int
    /// The maximum number of bytes of the pushes that each receiver gets.
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

    /// Returns the field at a path such as `settings.chats`, and its Swift expression.
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
