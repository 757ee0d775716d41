/// The contents of `protocol-spec/` as values.
///
/// Loaded by `SpecificationLoader`.
struct Specification: Sendable {
    var version = 1
    /// The accepted first bytes of a header; `writtenVersion` is the byte that writers use.
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

    /// The names that control whether a value is written: capabilities, then dialects.
    var gates: [Documented] { capabilities + dialects.map(\.documented) }

    /// Copies the fields of the object under `key` into the struct `type` itself.
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

    /// Returns a dialect and the dialects that it builds on, starting with the dialect itself.
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

    /// A range of opcode numbers, including both ends.
    struct IDRange: Sendable {
        var name: String
        var from: Int
        var through: Int
    }

    /// A name with its meaning, for example a state or capability.
    struct Documented: Sendable {
        var name: String
        var since: Int
        var doc: String
        var origin: Origin
    }

    /// A variant of the server's encoding for some clients, in addition to their capabilities.
    struct Dialect: Sendable {
        var documented: Documented
        /// The dialect that this dialect builds on; both apply.
        var base: String?
        /// Numbers with another meaning in the dialect. The server answers clients of the dialect
        /// that send these numbers with `proto.opcode`.
        var movedOpcodes: [Int]

        var name: String { documented.name }
    }

    /// A feature that the server may enable for client builds that implement it.
    struct Feature: Sendable {
        var documented: Documented
        /// The names of the opcodes that the server answers with `proto.opcode` while the feature
        /// is off.
        var opcodes: [String]

        var name: String { documented.name }
    }

    /// All maps with known keys: objects and payloads.
    var maps: [StructType] {
        structs
            + families.flatMap(\.opcodes).flatMap {
                [$0.request, $0.reply, $0.push].compactMap(\.self)
            }
    }

    struct Limit: Sendable {
        /// The permitted change of the value in a later release.
        enum Change: String, CaseIterable, Sendable {
            /// Only upwards: clients already send or expect values up to the current value.
            case wider
            /// Only downwards: clients cannot accept larger values.
            case narrower
            /// Both ways: clients cannot notice the change.
            case any
            /// No change: clients rely on the number itself.
            case never
        }

        var name: String
        var value: Int
        /// The maximum legal override; nil if any override is legal.
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
        /// Whether a request of any opcode may be answered with this error.
        var isCommon: Bool
        var message: String?
        /// The text for users, and the title of a dialog about the error.
        var texts: Texts?
        var title: Texts?
        var when: String
        var since: Int
        var origin: Origin

        /// A text in each language of the error messages.
        struct Texts: Sendable {
            static let languages = ["en", "ru"]

            /// The text by language.
            var words: [String: String]
        }
    }

    /// The opcodes of one subject, from one file under `opcodes/`.
    struct Family: Sendable {
        var name: String
        var doc: String
        var opcodes: [OpcodeEntry]
        var known: [KnownOpcode]
        var origin: Origin
    }

    /// A number with a known name that the server does not serve.
    struct KnownOpcode: Sendable {
        var number: Int
        var name: String
        var direction: Direction
        var origin: Origin
    }

    /// One line with the number of entries of each kind.
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

/// The place of a value in the YAML, for messages.
struct Origin: Equatable, Sendable, CustomStringConvertible {
    var file: String
    var line: Int
    var description: String {
        let isOurs = file.hasSuffix(".yaml") || file.hasPrefix("prose/")
        let path = isOurs ? "protocol-spec/\(file)" : file
        return line > 0 ? "\(path):\(line)" : path
    }
}

/// A mistake in the specification, with its place.
struct Problem: Error, Equatable, CustomStringConvertible {
    var origin: Origin
    var text: String
    var description: String { "\(origin): \(text)" }
}

enum Direction: String, CaseIterable, Sendable {
    case clientToServer, serverToClient, both
}

/// The deprecation of an opcode or a field.
struct Deprecation: Decodable, Sendable {
    /// The release that introduced the deprecation.
    var since: Int
    /// The replacement: an opcode's name, or the key of a field in the same struct.
    var replacement: String
    /// The release that may stop serving the opcode or field; its name or key is never reused.
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
    /// The cost of a request; nil for pushes.
    var cost: CostEntry?
    /// The capability that a client needs to receive the push.
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
    /// The limit of a whole encoded object; the server enforces it when it stores an object.
    var limitBytes: String?
    var fields: [Field]
    var origin: Origin

    /// Returns the field that readers accept under a key.
    func field(under key: String) -> Field? {
        fields.first { $0.key == key || $0.aliases.contains(key) }
    }

    /// The fields that have a Swift property.
    var properties: [Field] { fields.filter { !$0.isCopy } }
}

struct Field: Sendable {
    var key: String
    var swiftName: String
    var type: WireType
    var isRequired: Bool
    var defaultValue: DefaultValue?
    /// Names of limits: the UTF-16 units of a text, the bytes of a text, string, bytes or `any`,
    /// and the items of each list and map, outermost first.
    var limitUnits: String?
    var limitBytes: String?
    var limitItems: [String] = []
    /// The limit of the whole encoded field; the server enforces it when it builds or stores a
    /// value.
    var totalBytes: String?
    /// The handling of a request that repeats a key or an item.
    var duplicates: Duplicates?
    /// The code that checks an `any`.
    var anyCheck = AnyCheck.reader
    /// Whether the server shortens the list or map so that the reply has at most `maxReplyBytes`.
    var isPage = false
    /// Fields that objects in this field never have.
    var without: [String] = []
    /// Alternative keys that readers accept for the field.
    var aliases: [String] = []
    /// The path of keys to the field whose value is also written under this key; empty for an
    /// ordinary field. A copy has no property and is not read.
    var copyOf: [String] = []
    /// The capability or dialect that a client needs to receive the field.
    var capability: String?
    /// The forms of the field in dialects that write it differently.
    var forms: [DialectForm] = []
    var isSensitive: Bool
    var since: Int
    var doc: String
    /// The reason for the field, if `doc` does not make it plain.
    var why: String?
    var deprecated: Deprecation?
    var origin: Origin

    var isCopy: Bool { !copyOf.isEmpty }

    /// The dialects that omit the field.
    var absentIn: [String] { forms.filter { $0.change == .absent }.map(\.dialect) }

    /// Whether the Swift property may be nil.
    var isOptional: Bool { !isRequired && defaultValue == nil }

    /// Whether the field is present in every packet of every dialect.
    var isAlwaysThere: Bool { isRequired && absentIn.isEmpty }

    /// Returns the name of the item limit of the list or map at a nesting level; 0 is the outermost
    /// level.
    func limitItems(at level: Int) -> String? {
        limitItems.indices.contains(level) ? limitItems[level] : nil
    }

    /// The names of all limits of the field.
    var limitNames: [String] {
        [limitUnits, limitBytes].compactMap(\.self) + limitItems
            + [totalBytes].compactMap(\.self)
    }
}

/// A dialect's different form of a field.
struct DialectForm: Equatable, Sendable {
    enum Change: Equatable, Sendable {
        /// The field is omitted.
        case absent
        /// Some strings are replaced by other strings.
        case words([String: String])
        /// This text precedes the value.
        case prefix(String)
        /// The list omits the items whose field `key` has this number.
        case leavesOut(key: String, value: Int)
    }

    var dialect: String
    var change: Change

    /// A description of the form in one line.
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

/// The handling of a repeated key of a map, or a repeated item of a list, in a request.
enum Duplicates: String, CaseIterable, Sendable {
    /// The last value of a key counts; a repeated item counts once.
    case merged
    /// The request is rejected.
    case refused
    /// Every repetition counts; the documentation of the field explains it.
    case kept
}

/// The code that checks that every client can decode the values of an `any`.
enum AnyCheck: String, CaseIterable, Sendable {
    /// The reader rejects the request.
    case reader
    /// The handler checks, and answers for each value separately.
    case handler
    /// No check: the value is skipped, never stored and never sent.
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
/// An open enumeration accepts unknown strings; a closed enumeration rejects them.
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
        /// Alternative names that readers accept for the value.
        var aliases: [String] = []
        /// The capability that a client needs to receive the value.
        var capability: String?
        /// The value that is written instead. Without a fallback, the object that contains the
        /// value is omitted.
        var fallback: String?
        var doc: String
    }
}
