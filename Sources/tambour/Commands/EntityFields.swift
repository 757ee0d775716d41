import TambourClient
import TambourProtocol

/// Parses and describes the fields of one entity type as users type them on the command line.
struct EntityFields {
    private let kind: EntitySchema.Kind

    private static let schema = EntitySchema.standard(.standard)
    private static let kinds = schema.types.compactMap { schema[$0] }.sorted {
        let (one, two) = (schema.depth(of: $0.type), schema.depth(of: $1.type))
        return (one, $0.type.rawValue) < (two, $1.type.rawValue)
    }

    /// The names of the types, parents before children.
    static let types = kinds.map(\.type.rawValue)

    /// The help text that lists the types with their parents and fields.
    static let help =
        "The types and their fields:\n\n"
        + kinds.map { kind in
            let parent = kind.parent.map { ", below \(named($0))" } ?? ""
            return "  \(kind.type.rawValue)\(parent): \(Self(kind).described)"
        }.joined(separator: "\n")

    var type: EntityType { kind.type }

    private init(_ kind: EntitySchema.Kind) { self.kind = kind }

    /// - Throws: `Failure` for an unknown type. Its message lists the known types.
    init(_ type: String) throws {
        guard let kind = Self.schema[EntityType(type)] else {
            let list = Self.types.joined(separator: ", ")
            throw Failure("There is no type “\(type)” of entities. The types are: \(list)")
        }
        self.kind = kind
    }

    /// The names of the fields that a user can type, each with the kind of its value.
    private var described: String {
        kind.fields.sorted { $0.key < $1.key }.compactMap { name, kind in
            switch kind {
            case .string: name
            case .int: "\(name) (integer)"
            case .double: "\(name) (number)"
            case .bool: "\(name) (true or false)"
            case .list: "\(name) (words separated by commas)"
            case .bytes, .map: nil
            }
        }.joined(separator: ", ")
    }

    /// Parses words of the form `NAME=VALUE`. The type of the entity determines the kinds of its
    /// fields.
    ///
    /// - Throws: `Failure` for a word without `=`, an unknown field or a wrong value. For an
    ///   unknown field or a wrong value, the message lists the fields of the type.
    func values(_ words: [String]) throws -> [String: FieldValue] {
        var fields: [String: FieldValue] = [:]
        for word in words {
            guard let sign = word.firstIndex(of: "=") else {
                throw Failure("“\(word)” is not of the form NAME=VALUE")
            }
            let name = String(word[..<sign])
            let text = String(word[word.index(after: sign)...])
            guard let kind = kind.fields[name] else {
                throw Failure("\(title) has no field “\(name)”. Its fields are: \(described)")
            }
            guard let value = FieldValue(typed: text, as: kind) else {
                throw Failure(
                    "“\(text)” cannot be the value of \(name). The fields of \(Self.named(type)) are: \(described)"
                )
            }
            fields[name] = value
        }
        return fields
    }

    /// - Throws: `Failure` unless an entity of this type can be below `parent`.
    func check(parent: EntityID?, _ client: Client) async throws {
        guard let wanted = kind.parent else {
            if parent == nil { return }
            throw Failure("\(title) is at the top of the tree, and takes no --below")
        }
        let rule = "\(title) belongs below \(Self.named(wanted))"
        guard let parent else {
            throw Failure("\(rule): name it with --below ID. `tambour entities` lists the ids")
        }
        guard let found = try await client.entity(parent) else {
            throw Failure("There is no entity \(parent.shown): `tambour entities` lists them")
        }
        let type = found.entity.type
        guard type == wanted else {
            throw Failure("\(rule), and \(parent.shown) is \(Self.named(type))")
        }
    }

    /// The name of the type with its article, to begin a sentence.
    private var title: String {
        let name = Self.named(type)
        return name.prefix(1).uppercased() + name.dropFirst()
    }

    private static func named(_ type: EntityType) -> String {
        let isVowel = type.rawValue.first.map { "aeiou".contains($0) } ?? false
        return "\(isVowel ? "an" : "a") \(type.rawValue)"
    }
}
