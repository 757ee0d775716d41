import TambourTesting

@testable import tambour_spec

/// An encoded request, with descriptions of its edges.
struct FuzzRequest: Sendable {
    let opcode: OpcodeEntry
    let payload: [UInt8]
    /// Descriptions of the edges in the request.
    let edges: [String]
    /// The chat that the request names; nil if the request names no known chat.
    let chat: Int64?

    var description: String {
        edges.isEmpty ? opcode.name : edges.joined(separator: ", ")
    }
}

/// Makes requests that are valid except for the edges put into them.
struct RequestGenerator {
    let specification: Specification
    let limits: Limits
    var known: KnownValues
    var random: SeededGenerator
    /// The account whose ids the next request names.
    var account = 0
    /// Whether the requests may end sessions. Such requests contain no token of a speaker.
    var mayEndSessions = false
    /// The chat of the current request; message ids in the request belong to it.
    private(set) var chat: KnownValues.KnownChat?
    /// A poll in a message of `chat`, if the current request names a poll.
    private var poll: Int64?
    /// The number of bytes that the current request may still use.
    var room = 0
    private var cid: Int64 = 0

    struct Limits {
        var frameBytes: Int
        var name: (String) -> Int?

        init(_ specification: Specification) {
            name = { limit in specification.limit(named: limit)?.value }
            frameBytes = name("maxFrameBytes") ?? 1 << 20
        }
    }

    private let exampleValues: [String: [WireNode]]

    init(_ specification: Specification, seed: UInt64) {
        self.specification = specification
        limits = Limits(specification)
        known = KnownValues(specification: specification)
        random = SeededGenerator(seed: seed)
        var values: [String: [WireNode]] = [:]
        for file in specification.examples {
            values[file.opcode] = file.examples.compactMap {
                $0.role == .request ? $0.value?.plain : nil
            }
        }
        exampleValues = values
    }

    /// Returns a request of `opcode` with edges at some of its sites.
    mutating func request(
        _ opcode: OpcodeEntry,
        with edges: [(site: FuzzSite, edge: Edge)] = []
    ) -> FuzzRequest {
        begin(opcode)
        guard let type = opcode.request else {
            return FuzzRequest(opcode: opcode, payload: [0x80], edges: [], chat: nil)
        }
        var node = base(opcode, type)
        for (site, edge) in edges {
            node = put(edge.change, at: site.steps[...], of: node, in: type, site: site)
        }
        var payload = WireEncoder.encode(node)
        if payload.count > limits.frameBytes, random.below(20) > 0 {
            // A payload that is too long for a frame ends the connection. So send only one in
            // twenty of these payloads.
            payload = WireEncoder.encode(base(opcode, type))
        }
        return FuzzRequest(
            opcode: opcode,
            payload: payload,
            edges: edges.map { "\($0.site.description) = \($0.edge.name)" },
            chat: chat?.id
        )
    }

    /// Chooses the chat and poll of the next request.
    mutating func begin(_ opcode: OpcodeEntry) {
        room = limits.frameBytes - 4_096
        poll = nil
        let standing = known.accounts[account]
        // The first chats contain the most messages.
        let first = Array(standing.chats.prefix(4))
        let chats = random.oneIn(2) ? first : standing.chats
        chat = chats.isEmpty ? nil : random.pick(chats)
        let namesPoll = opcode.name.contains("POLL") || opcode.name.contains("VOTE")
        if namesPoll, let one = known.polls.isEmpty ? nil : random.pick(known.polls) {
            chat = KnownValues.KnownChat(id: one.chat, messages: [one.message])
            poll = one.poll
        }
    }

    // MARK: - Valid values

    /// Returns a request that a client might send: an example with ids of this server, or a made-up
    /// request.
    private mutating func base(_ opcode: OpcodeEntry, _ type: StructType) -> WireNode {
        if let examples = exampleValues[opcode.name], !examples.isEmpty, random.below(3) > 0 {
            return renamed(random.pick(examples), as: .named(""), type)
        }
        return object(type, depth: 0)
    }

    /// Returns an example's value with ids that this server knows.
    private mutating func renamed(
        _ node: WireNode,
        as wireType: WireType,
        _ structType: StructType?
    ) -> WireNode {
        if let type = structType, case .map(let pairs) = node {
            return .map(
                pairs.map { pair in
                    guard case .string(let key) = pair.key,
                        let field = type.fields.first(where: { $0.key == key })
                    else { return pair }
                    if isOwnNumber(key) { return .init(key: pair.key, value: own(key)) }
                    if field.type == .string || field.type == .text, isHandle(key) {
                        return .init(key: pair.key, value: word(field))
                    }
                    return .init(key: pair.key, value: renamed(pair.value, field.type))
                }
            )
        }
        return renamed(node, wireType)
    }

    private mutating func renamed(_ node: WireNode, _ type: WireType) -> WireNode {
        switch (type, node) {
        case (.chatID, _), (.userID, _), (.messageID, _): return id(type)
        case (.packed(let inner), _): return renamed(node, inner)
        case (.list(let item), .array(let items)): return .array(items.map { renamed($0, item) })
        case (.map(let key, let value), .map(let pairs)):
            return .map(
                pairs.map {
                    .init(key: text(of: id(key)), value: renamed($0.value, value))
                }
            )
        case (.named(let name), .map):
            guard let inner = specification.structType(named: name) else { return node }
            return renamed(node, as: type, inner)
        default: return node
        }
    }

    /// Returns whether the values of this key differ between servers. The values in examples are
    /// then useless.
    func isHandle(_ key: String) -> Bool {
        ["token", "trackId", "link", "qrLink", "phone"].contains(key)
    }

    func isOwnNumber(_ key: String) -> Bool { key == "cid" || key == "pollId" }

    private mutating func own(_ key: String) -> WireNode {
        if key == "pollId", let poll { return .int(poll) }
        guard key == "cid" else { return known.value(under: key, using: &random) ?? .int(1) }
        cid += 1
        return .int(random.oneIn(8) ? max(1, cid - 3) : cid)
    }

    private mutating func object(_ type: StructType, depth: Int) -> WireNode {
        var pairs: [WireNode.Pair] = []
        for field in type.fields where field.isRequired || random.oneIn(depth == 0 ? 2 : 4) {
            pairs.append(.init(key: .string(field.key), value: value(field.type, field, depth)))
        }
        return .map(pairs)
    }

    mutating func value(_ type: WireType, _ field: Field, _ depth: Int) -> WireNode {
        switch type {
        case .bool: return .bool(random.oneIn(2))
        case .int, .ms:
            if isOwnNumber(field.key) { return own(field.key) }
            if let value = known.value(under: field.key, using: &random), case .int = value {
                return value
            }
            return .int(Int64(random.below(100)))
        case .double: return .double(Double(random.below(180)))
        case .text, .string: return word(field)
        case .bytes: return .bytes([1, 2, 3])
        case .any:
            if let value = known.value(under: field.key, using: &random) { return value }
            // Prefer a scalar, because settings accept only scalars.
            return random.oneIn(4)
                ? .object(["url": .string("https://example.org")])
                : random.pick([.int(0), .int(1), .bool(true), .string("on")])
        case .chatID, .userID, .messageID:
            let id = id(type)
            return random.oneIn(5) ? text(of: id) : id
        case .list(let item):
            guard depth < 6 else { return .array([]) }
            return .array((0..<1 + random.below(3)).map { _ in value(item, field, depth + 1) })
        case .map(let key, let inner):
            return .map([
                .init(key: text(of: id(key)), value: value(inner, field, depth + 1))
            ])
        case .names(let inner):
            return .map([.init(key: word(field), value: value(inner, field, depth + 1))])
        case .packed(let inner): return value(inner, field, depth)
        case .named(let name):
            if let type = specification.enumType(named: name) {
                return .string(random.pick(type.values).value)
            }
            guard depth < 6, let inner = specification.structType(named: name) else {
                return .map([])
            }
            return object(inner, depth: depth + 1)
        }
    }

    mutating func word(_ field: Field) -> WireNode {
        if field.key == "token", mayEndSessions || random.below(4) > 0 {
            let first = mayEndSessions ? FuzzWorld.speakers + 1 : 0
            return .string(random.pick(Array(known.accounts[first...])).token)
        }
        if let value = known.value(under: field.key, using: &random), case .string = value {
            return value
        }
        return .string(random.pick(KnownValues.words))
    }

    /// Returns an id that the account may name. Message ids belong to the request's chat.
    mutating func id(_ type: WireType) -> WireNode {
        let chats = known.accounts[account].chats
        switch type {
        case .userID: return .int(random.pick(known.users))
        case .chatID:
            guard let chat, !chats.isEmpty else { return .int(0) }
            return .int(random.oneIn(6) ? random.pick(chats).id : chat.id)
        default:
            let messages = chat?.messages ?? []
            return messages.isEmpty ? .int(1 << 60) : .int(random.pick(messages))
        }
    }

    func text(of node: WireNode) -> WireNode {
        guard case .int(let number) = node else { return node }
        return .string("\(number)")
    }

    // MARK: - Edges

    private mutating func put(
        _ change: Edge.Change,
        at steps: ArraySlice<SiteStep>,
        of node: WireNode,
        in type: StructType,
        site: FuzzSite
    ) -> WireNode {
        guard case .key(let key)? = steps.first,
            let field = type.fields.first(where: { $0.key == key })
        else { return node }
        var pairs: [WireNode.Pair] = []
        if case .map(let present) = node { pairs = present }
        if pairs.firstIndex(where: { $0.key == .string(key) }) == nil {
            pairs.append(.init(key: .string(key), value: value(field.type, field, 1)))
        }
        guard let index = pairs.firstIndex(where: { $0.key == .string(key) }) else { return node }
        let rest = steps.dropFirst()
        if rest.isEmpty {
            switch change {
            case .removed: pairs.remove(at: index)
            case .twice: pairs.append(pairs[index])
            default: pairs[index].value = realize(change, site)
            }
        } else {
            pairs[index].value = put(
                change,
                at: rest,
                within: pairs[index].value,
                field.type,
                field,
                site: site
            )
        }
        return .map(pairs)
    }

    private mutating func put(
        _ change: Edge.Change,
        at steps: ArraySlice<SiteStep>,
        within node: WireNode,
        _ type: WireType,
        _ field: Field,
        site: FuzzSite
    ) -> WireNode {
        guard let step = steps.first else { return realize(change, site) }
        let rest = steps.dropFirst()
        switch (type, step) {
        case (.packed(let inner), _):
            return put(change, at: steps, within: node, inner, field, site: site)
        case (.named(let name), _):
            guard let inner = specification.structType(named: name) else { return node }
            return put(change, at: steps, of: node, in: inner, site: site)
        case (.list(let item), .item):
            var items: [WireNode] = []
            if case .array(let present) = node { items = present }
            if items.isEmpty { items = [value(item, field, 2)] }
            items[0] = put(change, at: rest, within: items[0], item, field, site: site)
            return .array(items)
        case (.map, _), (.names, _):
            var pairs: [WireNode.Pair] = []
            if case .map(let present) = node { pairs = present }
            if pairs.isEmpty, case .map(let made) = value(type, field, 2) { pairs = made }
            guard !pairs.isEmpty else { return node }
            if step == .entryKey {
                pairs[0].key = put(change, at: rest, within: pairs[0].key, .any, field, site: site)
            } else {
                let inner: WireType =
                    switch type {
                    case .map(_, let inner), .names(let inner): inner
                    default: .any
                    }
                pairs[0].value = put(
                    change,
                    at: rest,
                    within: pairs[0].value,
                    inner,
                    field,
                    site: site
                )
            }
            return .map(pairs)
        default: return node
        }
    }

    private mutating func realize(_ change: Edge.Change, _ site: FuzzSite) -> WireNode {
        switch change {
        case .value(let node): return node
        case .digits: return text(of: id(site.type))
        case .foreign: return foreign()
        case .copies(let count): return copies(count, of: site)
        case .largest: return largest(site.type, site.field, depth: 0)
        case .removed, .twice: return .null
        }
    }

    private mutating func foreign() -> WireNode {
        let other = known.accounts[random.below(known.accounts.count)]
        guard let chat = other.chats.isEmpty ? nil : random.pick(other.chats) else {
            return .int(other.userID)
        }
        return random.oneIn(2) || chat.messages.isEmpty
            ? .int(chat.id) : .int(random.pick(chat.messages))
    }

    /// Returns `count` copies of one valid item, or as many as fit into the frame.
    private mutating func copies(_ count: Int, of site: FuzzSite) -> WireNode {
        switch site.type {
        case .list(let item):
            let one = value(item, site.field, 3)
            let size = max(1, WireEncoder.encode(one).count)
            return .list(of: one, count: min(count, room / size))
        case .map, .names:
            guard case .map(let made) = value(site.type, site.field, 3), let one = made.first else {
                return .map([])
            }
            let size = max(2, WireEncoder.encode(.map([one])).count)
            return .map(of: one, count: min(count, room / size))
        default: return .null
        }
    }
}
