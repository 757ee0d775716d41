/// The contents of `protocol-spec/` as values.
///
/// Loaded by `SpecificationLoader`.
struct Specification: Sendable {
    var version = 1
    /// The values that a reader accepts as the first byte of a header. `writtenVersion` is the
    /// value that writers use.
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

    /// The capabilities and then the dialects. Each of them can determine whether a value is
    /// written.
    var gates: [Documented] { capabilities + dialects.map(\.documented) }

    /// Adds a copy of each field of the object under `key` to the struct `type`.
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

    /// A name and its meaning, for example of a state or a capability.
    struct Documented: Sendable {
        var name: String
        var since: Int
        var doc: String
        var origin: Origin
    }

    /// A variant of the server's encoding for some clients, in addition to their capabilities.
    struct Dialect: Sendable {
        var documented: Documented
        /// The dialect that this dialect builds on. Clients of this dialect get the changes of
        /// both.
        var base: String?
        /// The opcode numbers that have another meaning in the dialect. If a client of the dialect
        /// sends such a number, the server answers with `proto.opcode`.
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
        /// How a later release may change the value.
        enum Change: String, CaseIterable, Sendable {
            /// A later release may only raise the value: clients already send or expect values up
            /// to the current one.
            case wider
            /// A later release may only lower the value: clients cannot accept larger values.
            case narrower
            /// A later release may raise or lower the value: clients cannot notice the change.
            case any
            /// The value must not change: clients rely on the number itself.
            case never
        }

        var name: String
        var value: Int
        /// The maximum value to which the limit may be set; nil if any value is legal.
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
        /// Whether the server may answer a request of any opcode with this error.
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

    /// An opcode number whose name is known, but which the server does not serve.
    struct KnownOpcode: Sendable {
        var number: Int
        var name: String
        var direction: Direction
        var origin: Origin
    }

    /// A line that states how many entries of each kind the specification has.
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

/// The place of a value in the YAML, as messages show it.
struct Origin: Equatable, Sendable, CustomStringConvertible {
    var file: String
    var line: Int
    var description: String {
        let isOurs = file.hasSuffix(".yaml") || file.hasPrefix("prose/")
        let path = isOurs ? "protocol-spec/\(file)" : file
        return line > 0 ? "\(path):\(line)" : path
    }
}

/// A mistake in the specification, and its place.
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
    /// The release that may stop serving the opcode or field. The name or key of the opcode or
    /// field is never reused.
    var sunset: Int
}

/// An opcode that the server serves: a request, a push, or both.
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
    /// The name of the limit for the bytes of a whole encoded object. The server enforces this
    /// limit when it stores an object.
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
    /// The names of three kinds of limits. `limitUnits` limits the UTF-16 units of a text.
    /// `limitBytes` limits the bytes of a text, a string, bytes or an `any`. `limitItems` limits
    /// the items of each list and map, outermost first.
    var limitUnits: String?
    var limitBytes: String?
    var limitItems: [String] = []
    /// The name of the limit for the whole encoded field. The server enforces this limit when it
    /// builds or stores a value.
    var totalBytes: String?
    /// What the server does if a request repeats a key or an item.
    var duplicates: Duplicates?
    /// Which code checks an `any`.
    var anyCheck = AnyCheck.reader
    /// Whether the field is a page: a list or map that the server shortens until the reply has at
    /// most `maxReplyBytes`.
    var isPage = false
    /// The keys that objects in this field never contain.
    var without: [String] = []
    /// Alternative keys that readers accept for the field.
    var aliases: [String] = []
    /// For a copy of another field: the path of keys to that other field, whose value is also
    /// written under this key. Empty for an ordinary field. A copy has no property, and readers
    /// ignore it.
    var copyOf: [String] = []
    /// The capability or dialect that a client needs to receive the field.
    var capability: String?
    /// The forms of the field in the dialects that write the field differently.
    var forms: [DialectForm] = []
    var isSensitive: Bool
    var since: Int
    var doc: String
    /// The reason why the field exists, if `doc` does not explain it.
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

    /// Returns the name of the limit for the items of the list or map at a nesting level. Level 0
    /// is the outermost one.
    func limitItems(at level: Int) -> String? {
        limitItems.indices.contains(level) ? limitItems[level] : nil
    }

    /// The names of all limits of the field.
    var limitNames: [String] {
        [limitUnits, limitBytes].compactMap(\.self) + limitItems
            + [totalBytes].compactMap(\.self)
    }
}

/// The way in which a dialect writes a field differently.
struct DialectForm: Equatable, Sendable {
    enum Change: Equatable, Sendable {
        /// The field is omitted.
        case absent
        /// Some strings are replaced by other strings.
        case words([String: String])
        /// The dialect puts this text before the value.
        case prefix(String)
        /// The list lacks the items whose field `key` has this value.
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

/// What the server does if a request repeats a key of a map or an item of a list.
enum Duplicates: String, CaseIterable, Sendable {
    /// Of a repeated key, the last value counts. A repeated item counts once.
    case merged
    /// The request is rejected.
    case refused
    /// Every repetition counts. The documentation of the field explains the effect.
    case kept
}

/// Which code checks whether every client can decode the values of an `any`.
enum AnyCheck: String, CaseIterable, Sendable {
    /// The reader checks the values, and rejects the whole request.
    case reader
    /// The handler checks the values, and answers for each value separately.
    case handler
    /// No code checks the value, because the reader skips it. The server does not store or send it.
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
        /// The value that the server writes for clients without the capability. If there is no
        /// fallback, the server omits the object that contains the value.
        var fallback: String?
        var doc: String
    }
}
