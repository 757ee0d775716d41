/// Everything `protocol-spec/` says, as values.
///
/// Loaded by `SpecificationLoader`.
struct Specification: Sendable {
    var version = 1
    /// First bytes of a header that are read, and the one that is written.
    var acceptedVersions: [Int] = []
    var writtenVersion = 0
    var idRanges: [IDRange] = []
    var states: [Documented] = []
    var capabilities: [Documented] = []
    var dialects: [Dialect] = []
    var features: [Feature] = []
    var buckets: [RateBucketEntry] = []
    var limits: [Limit] = []
    var errors: [ErrorCode] = []
    var enums: [EnumType] = []
    var structs: [StructType] = []
    var families: [Family] = []
    var examples: [ExampleFile] = []
    var chapters: [Chapter] = []
    var flows: [Flow] = []
    var roles = RoleSpecification()
    var entities: [EntitySpecification] = []

    /// What decides whether something is written: capabilities, then dialects.
    var gates: [Documented] { capabilities + dialects.map(\.documented) }

    /// Copies the fields of the object under `key` of a struct beside it.
    mutating func copyFields(of key: String, in type: String, dialect: String?) {
        guard let index = structs.firstIndex(where: { $0.name == type }),
            case .named(let name)? = structs[index].fields.first(where: { $0.key == key })?.type
        else { return }
        for field in structType(named: name)?.fields ?? [] {
            var copy = field
            copy.copyOf = [key, field.key]
            copy.capability = dialect
            copy.doc = "As in `\(key)`."
            copy.why = nil
            copy.isRequired = false
            copy.defaultValue = nil
            structs[index].fields.append(copy)
        }
    }

    func isDialect(_ name: String) -> Bool { dialects.contains { $0.name == name } }

    /// A dialect and those that it builds on, itself first.
    func dialects(in name: String) -> [Dialect] {
        var found: [Dialect] = []
        var next: String? = name
        while let name = next, let dialect = dialects.first(where: { $0.name == name }),
            !found.contains(where: { $0.name == name })
        {
            found.append(dialect)
            next = dialect.base
        }
        return found
    }

    /// A range opcode numbers may lie in; both ends belong to it.
    struct IDRange: Sendable {
        var name: String
        var from: Int
        var through: Int
    }

    /// A name with its meaning: a state or capability.
    struct Documented: Sendable {
        var name: String
        var since: Int
        var doc: String
        var origin: Origin
    }

    /// How the server writes for some clients, beside their capabilities.
    struct Dialect: Sendable {
        var documented: Documented
        /// The dialect that it builds on: everything of that one holds in it, too.
        var base: String?
        /// Numbers that mean something else in it, and answer `proto.opcode` there.
        var movedOpcodes: [Int]

        var name: String { documented.name }
    }

    /// What the server may switch for a client build that has code for it.
    struct Feature: Sendable {
        var documented: Documented
        /// Names of those that answer `proto.opcode` where it is off.
        var opcodes: [String]

        var name: String { documented.name }
    }

    /// Everything that is a map with known keys: objects and payloads.
    var maps: [StructType] {
        structs
            + families.flatMap(\.opcodes).flatMap {
                [$0.request, $0.reply, $0.push].compactMap(\.self)
            }
    }

    struct Limit: Sendable {
        /// How a later release may change the value.
        enum Change: String, CaseIterable, Sendable {
            /// Only upwards: below it lies what clients already send or wait for.
            case wider
            /// Only downwards: above it lies what clients cannot take.
            case narrower
            /// Either way: clients cannot tell.
            case any
            /// Not at all: clients count on the number itself.
            case never
        }

        var name: String
        var value: Int
        /// The largest legal override, nil where any is legal.
        var max: Int?
        var change = Change.wider
        var unit: String
        var reason: String
        var since: Int
        var origin: Origin
    }

    struct ErrorCode: Sendable {
        enum Class: String, Sendable { case soft, hard }
        enum Retry: String, CaseIterable, Sendable {
            case never, later
            case afterLogin = "after-login"
            case refresh
        }

        var code: String
        var swiftName: String
        var errorClass: Class
        var retry: Retry
        /// Whether any opcode may answer it.
        var isCommon: Bool
        var message: String?
        /// What people read, and what a dialog about it is headed.
        var texts: Texts?
        var title: Texts?
        var when: String
        var since: Int
        var origin: Origin

        /// The same in each language that refusals are told in.
        struct Texts: Sendable {
            static let languages = ["en", "ru"]

            /// By language.
            var words: [String: String]
        }
    }

    /// Opcodes of one subject: one file under `opcodes/`.
    struct Family: Sendable {
        var name: String
        var doc: String
        var opcodes: [OpcodeEntry]
        var known: [KnownOpcode]
        var origin: Origin
    }

    /// A number with a name that is not served.
    struct KnownOpcode: Sendable {
        var number: Int
        var name: String
        var direction: Direction
        var origin: Origin
    }

    /// One line about how much there is.
    var summary: String {
        let opcodes = families.flatMap(\.opcodes)
        let examples = examples.flatMap(\.examples)
        return
            "\(opcodes.count) opcodes served, \(families.flatMap(\.known).count) known, \(structs.count) objects, "
            + "\(limits.count) limits, \(errors.count) errors, \(examples.count) examples with "
            + "\(examples.flatMap(\.accepts).count) other encodings and \(examples.flatMap(\.rejects).count) refusals, "
            + "\(requirements.count) requirements, \(flows.count) flows"
    }

    func limit(named name: String) -> Limit? { limits.first { $0.name == name } }
    func structType(named name: String) -> StructType? { structs.first { $0.name == name } }
    func enumType(named name: String) -> EnumType? { enums.first { $0.name == name } }
    func opcode(named name: String) -> OpcodeEntry? {
        families.lazy.flatMap(\.opcodes).first { $0.name == name }
    }
}

/// Where something was read from, for messages.
struct Origin: Equatable, Sendable, CustomStringConvertible {
    var file: String
    var line: Int
    var description: String {
        let isOurs = file.hasSuffix(".yaml") || file.hasPrefix("prose/")
        let path = isOurs ? "protocol-spec/\(file)" : file
        return line > 0 ? "\(path):\(line)" : path
    }
}

/// Something wrong with the specification.
struct Problem: Error, Equatable, CustomStringConvertible {
    var origin: Origin
    var text: String
    var description: String { "\(origin): \(text)" }
}

enum Direction: String, CaseIterable, Sendable {
    case clientToServer, serverToClient, both
}

/// A way out for something that should no longer be used.
struct Deprecation: Decodable, Sendable {
    /// The release that said so.
    var since: Int
    /// What to use instead: an opcode's name, or the key of a field beside it.
    var replacement: String
    /// The release that may stop serving it; its name or key is never used again.
    var sunset: Int
}

/// A served opcode or push.
struct OpcodeEntry: Sendable {
    enum Kind: String, CaseIterable, Sendable { case session, login, query, command }
    enum Idempotency: String, CaseIterable, Sendable { case safe, idempotent, keyed, unsafe }

    var number: Int
    var name: String
    /// The stem of the Swift type names: `MsgSend` of `MsgSendRequest`.
    var swiftStem: String
    var family: String
    var direction: Direction
    var since: Int
    var doc: String
    var states: [String]
    var kind: Kind?
    var idempotency: Idempotency?
    var key: String?
    /// What a request is paid from; nil for pushes.
    var cost: CostEntry?
    /// The capability without which a client is not sent the push.
    var capability: String?
    var errors: [String]
    var effects: [Effect]
    var edges: [Edge]
    var request: StructType?
    var reply: StructType?
    var push: StructType?
    var deprecated: Deprecation?
    var origin: Origin

    struct Effect: Sendable {
        var push: String
        var to: String
        var when: String
    }
}

/// A MessagePack map with known keys.
struct StructType: Sendable {
    enum Role: Sendable { case object, payload, request, reply, push }

    var name: String
    var role: Role
    var doc: String
    var since: Int
    /// The limit of a whole encoded object, which the server keeps where it stores one.
    var limitBytes: String?
    var fields: [Field]
    var origin: Origin

    /// The field that is read under a key.
    func field(under key: String) -> Field? {
        fields.first { $0.key == key || $0.aliases.contains(key) }
    }

    /// Those with a property.
    var properties: [Field] { fields.filter { !$0.isCopy } }
}

struct Field: Sendable {
    var key: String
    var swiftName: String
    var type: WireType
    var isRequired: Bool
    var defaultValue: DefaultValue?
    /// Names of limits: UTF-16 units of a text; bytes of a text, string, bytes or `any`; items of each
    /// list and map, the outermost first.
    var limitUnits: String?
    var limitBytes: String?
    var limitItems: [String] = []
    /// The limit of the whole encoded field, which the server keeps where it builds or stores one.
    var totalBytes: String?
    /// What a request means that names one thing twice.
    var duplicates: Duplicates?
    /// Who checks an `any`.
    var anyCheck = AnyCheck.reader
    /// Whether the server cuts the list or map so that the reply holds at most `maxReplyBytes`.
    var isPage = false
    /// Fields that the objects in it never have.
    var without: [String] = []
    /// Other keys that the field is read under.
    var aliases: [String] = []
    /// Keys from the object on to the field whose value is written under this key too; empty for a field of
    /// its own. A copy has no property, and is not read.
    var copyOf: [String] = []
    /// The capability or dialect without which the field is not sent.
    var capability: String?
    /// How some dialects write it otherwise.
    var forms: [DialectForm] = []
    var isSensitive: Bool
    var since: Int
    var doc: String
    /// Why it is there, where `doc` does not make that plain.
    var why: String?
    var deprecated: Deprecation?
    var origin: Origin

    var isCopy: Bool { !copyOf.isEmpty }

    /// Dialects in which it is not written.
    var absentIn: [String] { forms.filter { $0.change == .absent }.map(\.dialect) }

    /// Whether the Swift property may be nil.
    var isOptional: Bool { !isRequired && defaultValue == nil }

    /// Whether it is in every packet, whose bytes do not say in which dialect they are.
    var isAlwaysThere: Bool { isRequired && absentIn.isEmpty }

    /// The limit of the items of a list or map that lies in `level` others of the field.
    func limitItems(at level: Int) -> String? {
        limitItems.indices.contains(level) ? limitItems[level] : nil
    }

    /// Names of all limits.
    var limitNames: [String] {
        [limitUnits, limitBytes].compactMap(\.self) + limitItems
            + [totalBytes].compactMap(\.self)
    }
}

/// How a dialect writes a field otherwise.
struct DialectForm: Equatable, Sendable {
    enum Change: Equatable, Sendable {
        /// Not at all.
        case absent
        /// Some strings as others.
        case words([String: String])
        /// With this before the text.
        case prefix(String)
        /// Without the items of the list whose field `key` is this number.
        case leavesOut(key: String, value: Int)
    }

    var dialect: String
    var change: Change

    /// In one line, as the specification says it.
    var text: String {
        switch change {
        case .absent: "absent"
        case .words(let words):
            words.sorted { $0.key < $1.key }.map { "\($0.key) as \($0.value)" }.joined(
                separator: ", "
            )
        case .prefix(let prefix): "after \(prefix)"
        case .leavesOut(let key, let value): "without items whose \(key) is \(value)"
        }
    }
}

/// What a repeated key of a map, or a repeated item of a list, means in a request.
enum Duplicates: String, CaseIterable, Sendable {
    /// The last value of a key counts; a repeated item counts once.
    case merged
    /// The request is refused.
    case refused
    /// Each is taken as it comes; the text of the field says what that means.
    case kept
}

/// Who checks that every client can decode the values of an `any`.
enum AnyCheck: String, CaseIterable, Sendable {
    /// The reader refuses the request.
    case reader
    /// The handler, which answers about each value by itself.
    case handler
    /// Nobody: the value is stepped over, never stored and never sent.
    case skipped
}

enum DefaultValue: Equatable, Sendable {
    case bool(Bool)
    case int(Int64)
    case string(String)
    case emptyList
    case emptyMap
}

/// A set of strings.
///
/// An open one carries unknown strings through; a closed one refuses them.
struct EnumType: Sendable {
    var name: String
    var isOpen: Bool
    var doc: String
    var since: Int
    var values: [Value]
    var origin: Origin

    struct Value: Sendable {
        var value: String
        var swiftName: String
        /// Other names that it is read under.
        var aliases: [String] = []
        /// The capability without which it does not go out.
        var capability: String?
        /// The value that goes out instead; nil leaves out what holds it.
        var fallback: String?
        var doc: String
    }
}
