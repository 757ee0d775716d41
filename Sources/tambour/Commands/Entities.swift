import ArgumentParser
import Foundation
import TambourClient
import TambourProtocol

struct Entities: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Keeps notes, preferences and measurements, the same on all devices.",
        discussion: """
            Entities form a tree: account, profile, and below it notes, preferences and measurements. They are edited offline \
            like everything else; where two devices collide, `conflicts` shows both sides until `resolve` chooses. An id \
            is a number, or as l7 while the server has not given one.
            """,
        subcommands: [
            List.self, Add.self, Set.self, Remove.self, Series.self, Conflicts.self, Resolve.self,
        ],
        defaultSubcommand: List.self
    )

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Shows all entities.")

        @OptionGroup var place: Place
        @Flag(help: "Prints a line of JSON for each entity (docs/schema/entity.json).")
        var json = false

        func run() async throws {
            try await place.run { client in
                for (depth, local) in try await client.entityTree() {
                    let indent = String(repeating: "  ", count: depth)
                    try say(json ? local.json : indent + local.line)
                }
            }
        }
    }

    struct Add: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Creates an entity and says its id."
        )

        @OptionGroup var place: Place
        @Argument(help: "The type: account, profile, note, preference or measurement.")
        var type: String
        @Option(help: "The id of what it stands below.")
        var below: String?
        @Argument(help: "Fields as NAME=VALUE.")
        var fields: [String] = []

        func run() async throws {
            let type = EntityType(type)
            let fields = try fieldValues(fields, of: type)
            try await place.run { client in
                let parent = try below.map { try entityID($0) }
                try say(try await client.createEntity(type, below: parent, fields: fields).shown)
            }
        }
    }

    struct Set: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Gives fields of an entity other values; NAME= takes one away."
        )

        @OptionGroup var place: Place
        @Argument var id: String
        @Argument(help: "Fields as NAME=VALUE.")
        var fields: [String]

        func run() async throws {
            try await place.run { client in
                let id = try entityID(id)
                guard let local = try await client.entity(id) else {
                    throw Failure("there is no entity \(id.shown)")
                }
                let values = try fieldValues(fields, of: local.entity.type)
                try await client.updateEntity(id, fields: values)
            }
        }
    }

    struct Remove: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "rm",
            abstract: "Deletes an entity and what stands below it."
        )

        @OptionGroup var place: Place
        @Argument var id: String

        func run() async throws {
            try await place.run { try await $0.deleteEntity(try entityID(id)) }
        }
    }

    struct Series: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Shows the measurements of a profile from one time to another."
        )

        @OptionGroup var place: Place
        @Argument(help: "The id of the profile.")
        var id: String
        @Option(help: "The first, Unix milliseconds.")
        var from: Int64 = 0
        @Option(help: "The last, Unix milliseconds.")
        var to = Int64.max
        @Flag(help: "Prints a line of JSON for each entity (docs/schema/entity.json).")
        var json = false

        func validate() throws {
            guard from <= to else { throw ValidationError("--from is behind --to") }
        }

        func run() async throws {
            try await place.run { client in
                let elements = try await client.elements(
                    of: .measurement,
                    below: try entityID(id),
                    in: from...to
                )
                for element in elements { try say(json ? element.json : element.line) }
            }
        }
    }

    struct Conflicts: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Shows what waits for a choice; ends with 1 when something does."
        )

        @OptionGroup var place: Place

        func run() async throws {
            let conflicts = try await place.run { client in
                let conflicts = try await client.entityConflicts()
                for conflict in conflicts { try say(conflict.text) }
                return conflicts
            }
            if !conflicts.isEmpty { throw ExitCode(1) }
        }
    }

    struct Resolve: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Ends a conflict: mine is made on top of theirs, theirs stays, or both do."
        )

        @OptionGroup var place: Place
        @Argument var id: String
        @Argument(help: "mine, theirs or both.")
        fileprivate var choice: Choice
        @Option(help: "Below what mine goes, when its parent is gone.")
        var below: String?

        func run() async throws {
            try await place.run { client in
                try await client.resolveConflict(
                    try entityID(id),
                    choice.entityChoice,
                    below: try below.map { try entityID($0) }
                )
            }
        }
    }

    /// The account, and the time limit for the server.
    struct Place: ParsableArguments {
        @OptionGroup var account: AccountOptions

        @Option(help: "How long to wait for the server, in seconds; 0 works offline.")
        var wait = 10

        /// Waits for changes from other devices, runs `body`, and waits until its changes have
        /// reached the server. `wait` limits both waits.
        ///
        /// - Throws: `ExitCode(2)` when changes are still queued after `body` has run.
        @discardableResult
        func run<Value>(_ body: (Client) async throws -> Value) async throws -> Value {
            let client = try account.signedIn()
            _ = try await client.entityConflicts()
            if wait > 0 {
                client.start()
                await client.waitForEntities(within: .seconds(wait)) { true }
            }
            let value: Value
            do {
                value = try await body(client)
            } catch {
                await client.stop()
                throw error
            }
            if wait > 0 {
                await client.waitForEntities(within: .seconds(wait)) {
                    try await client.pendingEntityChanges() == 0
                }
            }
            let waits = try await client.pendingEntityChanges() > 0
            await client.stop()
            if waits, wait > 0 {
                remark("Some changes wait to be sent.")
                throw ExitCode(2)
            }
            return value
        }
    }
}

/// The choices of `resolve`.
private enum Choice: String, ExpressibleByArgument, CaseIterable {
    case mine
    case theirs
    case both

    var entityChoice: EntityChoice {
        switch self {
        case .mine: .mine
        case .theirs: .theirs
        case .both: .both
        }
    }
}

// MARK: - Parsing and formatting

private func entityID(_ text: String) throws -> EntityID {
    guard let id = EntityID(text.hasPrefix("l") ? "#\(text)" : text) else {
        throw Failure("“\(text)” is no id of an entity")
    }
    return id
}

/// Parses words of the form `NAME=VALUE`. The type of the entity determines the kinds of its
/// fields.
private func fieldValues(
    _ words: [String],
    of type: EntityType
) throws -> [String: FieldValue] {
    var fields: [String: FieldValue] = [:]
    for word in words {
        guard let sign = word.firstIndex(of: "=") else {
            throw Failure("“\(word)” is not NAME=VALUE")
        }
        let name = String(word[..<sign])
        let text = String(word[word.index(after: sign)...])
        guard let value = FieldValue(typed: text, as: EntitySchema.kind(of: name, in: type)) else {
            throw Failure("“\(text)” is no value of \(name)")
        }
        fields[name] = value
    }
    return fields
}

extension EntitySchema {
    /// Returns the kind of a field; nil for an unknown field, which the library reports.
    fileprivate static func kind(of field: String, in type: EntityType) -> FieldKind? {
        standard(.standard)[type]?.fields[field]
    }
}

extension FieldValue {
    fileprivate init?(typed text: String, as kind: EntitySchema.FieldKind?) {
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
            case .bytes, .map: nil
            case .string, nil: .string(text)
            }
        guard let value else { return nil }
        self = value
    }

    fileprivate var json: Any {
        switch self {
        case .null: NSNull()
        case .bool(let value): value
        // Many programs read numbers as doubles, which would change a large integer.
        case .int(let value): value.magnitude < 1 << 53 ? value : "\(value)"
        case .double(let value): value.isFinite ? value : NSNull()
        case .string(let text): text
        case .bytes(let bytes): Data(bytes).base64EncodedString()
        case .list(let values): values.map(\.json)
        case .map(let fields): fields.mapValues(\.json)
        }
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
    fileprivate var shown: String {
        switch self {
        case .server: description
        case .local(let number): "l\(number)"
        }
    }
}

extension LocalEntity {
    fileprivate var line: String {
        let mark =
            switch state {
            case .synced: ""
            case .pending: "  (waiting)"
            case .conflict: "  (conflict)"
            }
        let words = [entity.id.shown, printable(entity.type.rawValue), entity.fields.text]
        return words.filter { !$0.isEmpty }.joined(separator: "  ") + mark
    }

    fileprivate var json: String {
        let values: [String: Any] = [
            "id": entity.id.shown, "type": entity.type.rawValue,
            "parent": entity.parent?.shown ?? NSNull(), "version": entity.version,
            "modified": entity.modified, "state": "\(state)",
            "fields": entity.fields.mapValues(\.json),
        ]
        let options: JSONSerialization.WritingOptions = [.sortedKeys, .withoutEscapingSlashes]
        let data = try? JSONSerialization.data(withJSONObject: values, options: options)
        return data.map(jsonLine) ?? "{}"
    }
}

extension Conflict {
    fileprivate var text: String {
        let theirText =
            switch theirs {
            case nil: "gone"
            case let theirs? where theirs.isDeleted: "deleted"
            case let theirs?: theirs.fields.text
            }
        let mineText =
            switch mine.kind {
            case .delete: "deleted"
            case .create, .update: mine.fields.text
            }
        let order: [(EntityChoice, String)] = [
            (.mine, "mine"), (.theirs, "theirs"), (.both, "both"),
        ]
        let offered = order.filter { choices.contains($0.0) }.map(\.1).joined(separator: ", ")
        return """
            \(id.shown)  \(printable(type.rawValue))  \(kind.words)
              mine:   \(mineText)
              theirs: \(theirText)
              choose: \(offered)
            """
    }
}

extension Conflict.Kind {
    fileprivate var words: String {
        switch self {
        case .updateUpdate: "changed here and elsewhere"
        case .updateDelete: "changed here, deleted elsewhere"
        case .deleteUpdate: "deleted here, changed elsewhere"
        case .duplicate: "there is another one of that name"
        case .parentDeleted: "what it stands below was deleted elsewhere"
        case .rejected(let error, let path): printable("refused: \(error) at \(path)")
        }
    }
}

extension Client {
    /// Returns all entities with their depths, parents before children.
    fileprivate func entityTree(
        below parent: EntityID? = nil,
        depth: Int = 0
    ) async throws -> [(depth: Int, local: LocalEntity)] {
        var found: [(Int, LocalEntity)] = []
        for local in try await entities(below: parent) {
            found.append((depth, local))
            found += try await entityTree(below: local.entity.id, depth: depth + 1)
        }
        return found
    }

    /// Waits until the entities match the server's and `holds` returns true.
    fileprivate func waitForEntities(
        within limit: Duration,
        until holds: @escaping @Sendable () async throws -> Bool
    ) async {
        let changes = changes()
        let states = states()
        @Sendable func isDone() async -> Bool {
            guard await isEntitySyncDone() else { return false }
            return (try? await holds()) ?? false
        }
        await withTaskGroup(of: Void.self) { group in
            group.addTask {
                if await isDone() { return }
                for await _ in changes where await isDone() { return }
            }
            group.addTask {
                for await _ in states where await isDone() { return }
            }
            group.addTask { try? await Task.sleep(for: limit) }
            await group.next()
            group.cancelAll()
        }
    }
}
