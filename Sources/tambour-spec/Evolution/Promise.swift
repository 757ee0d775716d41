/// One promise of a release, such as an opcode, a field or a limit. The rules compare the promises
/// of two releases.
struct Promise: Sendable {
    enum Kind: String, CaseIterable, Sendable {
        case framing, version, state, capability, feature, limit, error
        case enumeration, value, object, field
        case roleBit, roleCell
        case entity, entityField
        case opcode, opcodeState, opcodeError, effect, range, known
        case requirement
    }

    /// A property of a promise. The kind of the promise determines which properties it has.
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

    /// Which side sends the declared value: clients, the server, or both.
    struct Flow: OptionSet, Sendable {
        let rawValue: Int
        /// Clients send the value. The server must still read the values that today's clients send.
        static let toServer = Flow(rawValue: 1)
        /// The server sends the value. Today's clients must be able to read it.
        static let toClient = Flow(rawValue: 2)
        static let both: Flow = [.toServer, .toClient]
    }

    var kind: Kind
    /// Identifies the promise in all releases.
    var id: String
    /// The name that messages and release notes show.
    var title: String
    /// The id of the promise that contains this one. If the containing promise was added or
    /// removed, its parts are not compared.
    var owner: String?
    var facts: [Fact: String]
    var flow = Flow.both
    var doc: String
    /// The place in the specification where the promise, or the declaration that contains it, is
    /// declared.
    var origin: Origin

    subscript(fact: Fact) -> String? { facts[fact] }
    func number(_ fact: Fact) -> Int? { facts[fact].flatMap { Int($0) } }
}
