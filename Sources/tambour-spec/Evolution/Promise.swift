/// One promise of a release, in flat form for the rules.
struct Promise: Sendable {
    enum Kind: String, CaseIterable, Sendable {
        case framing, version, state, capability, feature, limit, error
        case enumeration, value, object, field
        case roleBit, roleCell
        case entity, entityField
        case opcode, opcodeState, opcodeError, effect, range, known
        case requirement
    }

    /// A property of a thing; its kind determines which of these it has.
    enum Fact: String, CaseIterable, Sendable {
        case since, written
        case number, name, direction, kind, idempotency, key, capability, form
        case type, presence, `default`, limit, limitBytes, limitItems, duplicates, checkedBy
        case change, unit, value, max
        case `class`, retry, common, message
        case open, fallback, opcodes, level, text
        case from, through, to, when
        case replacement, sunset
    }

    /// Who reads the thing.
    struct Flow: OptionSet, Sendable {
        let rawValue: Int
        /// Clients send it: what they send today must stay readable.
        static let toServer = Flow(rawValue: 1)
        /// The server sends it: today's clients must be able to read it.
        static let toClient = Flow(rawValue: 2)
        static let both: Flow = [.toServer, .toClient]
    }

    var kind: Kind
    /// Identifies the thing across all releases.
    var id: String
    /// The name for people.
    var title: String
    /// The id of the thing it belongs to; when that was added or removed, its parts are not
    /// compared.
    var owner: String?
    var facts: [Fact: String]
    var flow = Flow.both
    var doc: String
    /// Where the specification declares it, or the thing it belongs to.
    var origin: Origin

    subscript(fact: Fact) -> String? { facts[fact] }
    func number(_ fact: Fact) -> Int? { facts[fact].flatMap { Int($0) } }
}
