import Foundation
import TambourClient
import TambourProtocol

/// Converts the values of fields from and to the text that commands read and print.
extension FieldValue {
    init?(typed text: String, as kind: EntitySchema.FieldKind) {
        if text.isEmpty {
            self = .null
            return
        }
        let value: FieldValue? =
            switch kind {
            case .int: Int64(text).map { .int($0) }
            case .double: Double(text).map { .double($0) }
            case .bool: Bool(text).map { .bool($0) }
            case .list: .list(text.split(separator: ",").map { .string(String($0)) })
            // A user cannot type values of these kinds.
            case .bytes, .map: nil
            case .string: .string(text)
            }
        guard let value else { return nil }
        self = value
    }

    fileprivate var text: String {
        switch self {
        case .null: "nothing"
        case .bool(let value): "\(value)"
        case .int(let value): "\(value)"
        case .double(let value): "\(value)"
        case .string(let text): printable(text)
        case .bytes(let bytes): "\(bytes.count) bytes"
        case .list(let values): values.map(\.text).joined(separator: ",")
        case .map(let fields): fields.text
        }
    }
}

extension [String: FieldValue] {
    fileprivate var text: String {
        sorted { $0.key < $1.key }
            .map { "\(printable($0.key))=\($0.value.text)" }
            .joined(separator: " ")
    }
}

extension EntityID {
    /// The id as a user types it.
    var shown: String {
        switch self {
        case .server: description
        case .local(let number): "l\(number)"
        }
    }
}

extension LocalEntity {
    func line(_ ink: Ink = .output) -> String {
        let mark =
            switch state {
            case .synced: ""
            case .pending: "  " + ink(.notice, "(waiting)")
            case .conflict: "  " + ink(.failure, "(conflict)")
            }
        let id = ink(.faint, entity.id.shown)
        let words = [id, printable(entity.type.rawValue), entity.fields.text]
        return words.filter { !$0.isEmpty }.joined(separator: "  ") + mark
    }
}

extension Conflict {
    /// The conflict in several lines.
    var text: String {
        let theirText =
            switch theirs {
            case nil: "unknown to the server"
            case let theirs? where theirs.isDeleted: "deleted"
            case let theirs?: theirs.fields.text
            }
        let mineText =
            switch mine.kind {
            case .delete: "deleted"
            case .create, .update: mine.fields.text
            }
        return """
            \(id.shown)  \(printable(type.rawValue))  \(kind.words)
              mine:   \(mineText)
              theirs: \(theirText)
              choices: \(offered.joined(separator: ", "))
            """
    }

    /// The choices that are possible for the conflict, in the order in which the help lists them.
    fileprivate var offered: [String] {
        Choice.allCases.filter { choices.contains($0.entityChoice) }.map(\.rawValue)
    }
}

extension Conflict.Kind {
    fileprivate var words: String {
        switch self {
        case .updateUpdate: "changed here and elsewhere"
        case .updateDelete: "changed here, deleted elsewhere"
        case .deleteUpdate: "deleted here, changed elsewhere"
        case .duplicate: "created here and elsewhere under the same name"
        case .parentDeleted: "its parent was deleted elsewhere"
        case .rejected(let error, let path): printable("refused by the server: \(error) at \(path)")
        }
    }
}

/// The value of a field as it is written in JSON.
private struct FieldJSON: Encodable {
    let value: FieldValue

    init(_ value: FieldValue) { self.value = value }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        switch value {
        case .bool(let value): try container.encode(value)
        // Writes a large integer as a string. Many programs read numbers as doubles, which cannot
        // represent it exactly.
        case .int(let value) where value.magnitude >= 1 << 53: try container.encode("\(value)")
        case .int(let value): try container.encode(value)
        case .double(let value) where value.isFinite: try container.encode(value)
        case .null, .double: try container.encodeNil()
        case .string(let text): try container.encode(text)
        case .bytes(let bytes): try container.encode(Data(bytes).base64EncodedString())
        case .list(let values): try container.encode(values.map(Self.init))
        case .map(let fields): try container.encode(fields.mapValues(Self.init))
        }
    }
}

/// An entity, described in `docs/schema/entity.json`.
struct EntityLine: JSONLine {
    private let id: String
    private let parent: String?
    private let type: String
    private let version: Int64
    private let modified: Int64
    private let state: String
    private let fields: [String: FieldJSON]

    enum CodingKeys: CodingKey, CaseIterable {
        case id, parent, type, version, modified, state, fields
    }

    init(_ local: LocalEntity) {
        id = local.entity.id.shown
        parent = local.entity.parent?.shown
        type = local.entity.type.rawValue
        version = local.entity.version
        modified = local.entity.modified
        state = "\(local.state)"
        fields = local.entity.fields.mapValues(FieldJSON.init)
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(id, forKey: .id)
        // `encode` writes null for nil. `encodeIfPresent` would omit the key.
        try container.encode(parent, forKey: .parent)
        try container.encode(type, forKey: .type)
        try container.encode(version, forKey: .version)
        try container.encode(modified, forKey: .modified)
        try container.encode(state, forKey: .state)
        try container.encode(fields, forKey: .fields)
    }
}

/// A conflict, described in `docs/schema/conflict.json`.
struct ConflictLine: JSONLine {
    private let id: String
    private let type: String
    private let kind: String
    private let mine: [String: FieldJSON]?
    private let theirs: [String: FieldJSON]?
    private let choices: [String]
    private let error: String?
    private let path: String?

    enum CodingKeys: CodingKey, CaseIterable {
        case id, type, kind, mine, theirs, choices, error, path
    }

    init(_ conflict: Conflict) {
        id = conflict.id.shown
        type = conflict.type.rawValue
        var refusal: (error: String, path: String)?
        switch conflict.kind {
        case .updateUpdate: kind = "updateUpdate"
        case .updateDelete: kind = "updateDelete"
        case .deleteUpdate: kind = "deleteUpdate"
        case .duplicate: kind = "duplicate"
        case .parentDeleted: kind = "parentDeleted"
        case .rejected(let error, let path):
            kind = "rejected"
            refusal = (error, path)
        }
        let change = conflict.mine
        mine = change.kind == .delete ? nil : change.fields.mapValues(FieldJSON.init)
        let copy = conflict.theirs.flatMap { $0.isDeleted ? nil : $0 }
        theirs = copy?.fields.mapValues(FieldJSON.init)
        choices = conflict.offered
        error = refusal?.error
        path = refusal?.path
    }
}
