import Foundation

/// The promises of a release, from `released/<version>/surface.json` or from the current
/// specification.
///
/// Both pass through the same JSON form, so the comparison covers exactly what is frozen.
struct Surface: Decodable, Sendable {
    struct Framing: Decodable, Sendable {
        var accepted: [Int]
        var written: Int
    }

    struct Range: Decodable, Sendable {
        var name: String
        var from: Int
        var through: Int
    }

    struct Named: Decodable, Sendable {
        var name: String
        var since: Int
        var doc: String
        /// For a feature, the opcodes that answer `proto.opcode` where it is off.
        var opcodes: [String]?
    }

    struct Limit: Decodable, Sendable {
        var name: String
        var value: Int
        /// The largest legal override.
        var max: Int?
        var change: String
        var unit: String
        var reason: String
        var since: Int
    }

    struct ErrorCode: Decodable, Sendable {
        var code: String
        var `class`: String
        var retry: String
        var common: Bool
        var message: String?
        var when: String
        var since: Int
    }

    struct Enumeration: Decodable, Sendable {
        struct Value: Decodable, Sendable {
            var value: String
            var doc: String
            var capability: String?
            var fallback: String?
        }

        var name: String
        var open: Bool
        var since: Int
        var doc: String
        var values: [Value]
    }

    struct Object: Decodable, Sendable {
        var name: String
        var since: Int
        var doc: String
        var fields: [Field]
    }

    struct Field: Decodable, Sendable {
        var key: String
        var type: String
        var since: Int
        var doc: String
        var required: Bool?
        var `default`: Default?
        var limit: String?
        var limitBytes: String?
        var limitItems: LimitNames?
        var duplicates: String?
        var checkedBy: String?
        var capability: String?
        var dialect: String?
        /// How each dialect writes the field differently, in words.
        var inDialect: [String: String]?
        var deprecated: Deprecation?
    }

    /// The limit of a list or map, or one for each level, outermost first.
    struct LimitNames: Decodable, Sendable {
        var names: [String]

        init(from decoder: any Decoder) throws {
            let container = try decoder.singleValueContainer()
            if let name = try? container.decode(String.self) {
                names = [name]
            } else {
                names = try container.decode([String].self)
            }
        }
    }

    /// The meaning of an absent field, as text.
    struct Default: Decodable, Sendable {
        var text: String

        init(from decoder: any Decoder) throws {
            if let container = try? decoder.singleValueContainer() {
                if let bool = try? container.decode(Bool.self) {
                    text = "\(bool)"
                    return
                }
                if let int = try? container.decode(Int64.self) {
                    text = "\(int)"
                    return
                }
                if let string = try? container.decode(String.self) {
                    text = "\"\(string)\""
                    return
                }
            }
            // A default list or map is always empty.
            text = (try? decoder.unkeyedContainer()) != nil ? "[]" : "{}"
        }
    }

    struct Effect: Decodable, Sendable {
        var push: String
        var to: String
        var when: String
    }

    struct Opcode: Decodable, Sendable {
        var opcode: Int
        var name: String
        var direction: Direction
        var since: Int
        var doc: String
        var states: [String]
        var kind: String?
        var idempotency: String?
        var key: String?
        /// The capability without which the push is not sent.
        var capability: String?
        var errors: [String]
        var effects: [Effect]
        var request: [Field]?
        var reply: [Field]?
        var push: [Field]?
        var deprecated: Deprecation?
    }

    struct Known: Decodable, Sendable {
        var opcode: Int
        var name: String
        var direction: Direction
    }

    /// A permission of an administrator or an option of a chat.
    struct Bit: Decodable, Sendable {
        var name: String
        var bit: Int
        var since: Int
        var doc: String
    }

    struct Action: Decodable, Sendable {
        var name: String
        var since: Int
        var doc: String
        /// By kind, then by role.
        var cells: [String: [String: String]]
    }

    struct Roles: Decodable, Sendable {
        var permissions: [Bit]
        var options: [Bit]
        var actions: [Action]
    }

    /// A type of entities that devices edit offline.
    struct Entity: Decodable, Sendable {
        struct Field: Decodable, Sendable {
            var name: String
            var type: String
            var since: Int
            var doc: String
        }

        var name: String
        var since: Int
        var doc: String
        /// The rules that devices rely on, in one line.
        var rules: String
        var fields: [Field]
    }

    struct Family: Decodable, Sendable {
        var name: String
        var doc: String
        var opcodes: [Opcode]
        var known: [Known]
    }

    struct Requirement: Decodable, Sendable {
        var id: String
        var level: String
        var text: String
        var title: String?
        var chapter: String?
        var opcode: String?
    }

    var version: Int
    var framing: Framing
    var idRanges: [Range]
    var states: [Named]
    var capabilities: [Named]
    var dialects: [Named]?
    var features: [Named]
    var limits: [Limit]
    var errors: [ErrorCode]
    var enums: [Enumeration]
    var structs: [Object]
    var roles: Roles
    /// Absent in releases frozen before entities existed.
    var entities: [Entity]?
    var families: [Family]
    var requirements: [Requirement]

    /// - Throws: `DecodingError` if the text is not a surface.
    init(json: String) throws {
        self = try JSONDecoder().decode(Surface.self, from: Data(json.utf8))
    }

    init(of specification: Specification) {
        do {
            self = try Surface(json: ProtocolBundle(specification: specification).surface())
        } catch {
            preconditionFailure("the bundle lacks what a surface holds: \(error)")
        }
    }
}

extension Direction: Decodable {}
