import ArgumentParser
import Foundation
import TambourClient
import TambourProtocol

struct Entities: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Edits notes, preferences and measurements, which all devices share.",
        discussion: """
            Entities are small records that an app or a script stores beside the messages, such as notes about a person or a series \
            of weights. They can be edited offline. They form a tree: an account, such as a household; below it profiles; below a \
            profile notes, preferences and measurements. If two devices change the same entity, `conflicts` shows both versions, and \
            `resolve` chooses one. An id is a number, or l and a number until the server has assigned one.

            EXAMPLES
              tambour entities add account name=Home
              tambour entities add profile --below 12 name=Alice
              tambour entities add note --below 13 title=Doctor "text=Friday, ten o'clock"
              tambour entities set 14 text=Monday
            """,
        subcommands: [
            List.self, Add.self, Set.self, Remove.self, Series.self, Conflicts.self, Resolve.self,
        ],
        defaultSubcommand: List.self
    )

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Lists all entities, children below their parents."
        )

        @OptionGroup var place: Place
        @Flag(help: "Prints a line of JSON for each entity (docs/schema/entity.json).")
        var json = false

        func run() async throws {
            try await place.run { client in
                for (depth, local) in try await client.entityTree() {
                    let indent = String(repeating: "  ", count: depth)
                    try say(json ? EntityLine(local).json : indent + local.line())
                }
            }
        }
    }

    struct Add: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Creates an entity, and prints its id.",
            discussion: EntityFields.help
        )

        @OptionGroup var place: Place
        @Argument(
            help: "The type: account, profile, note, preference or measurement.",
            completion: .list(EntityFields.types)
        )
        var type: String
        @Option(help: ArgumentHelp("The id of its parent.", valueName: "id"))
        var below: String?
        @Argument(help: "Fields as NAME=VALUE.")
        var fields: [String] = []

        func run() async throws {
            let kind = try EntityFields(type)
            let fields = try kind.values(fields)
            try await place.run { client in
                let parent = try below.map { try entityID($0) }
                try await kind.check(parent: parent, client)
                let id = try await client.createEntity(kind.type, below: parent, fields: fields)
                try say(id.shown)
            }
        }
    }

    struct Set: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Changes fields of an entity; NAME= removes a field.",
            discussion: EntityFields.help
        )

        @OptionGroup var place: Place
        @Argument(help: "The id of the entity.")
        var id: String
        @Argument(help: "Fields as NAME=VALUE.")
        var fields: [String]

        func run() async throws {
            try await place.run { client in
                let id = try entityID(id)
                guard let local = try await client.entity(id) else {
                    throw Failure(
                        "There is no entity \(id.shown): `tambour entities` lists them"
                    )
                }
                let values = try EntityFields(local.entity.type.rawValue).values(fields)
                try await client.updateEntity(id, fields: values)
            }
        }
    }

    struct Remove: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "rm",
            abstract: "Deletes an entity and everything below it."
        )

        @OptionGroup var place: Place
        @Argument(help: "The id of the entity.")
        var id: String

        func run() async throws {
            try await place.run { try await $0.deleteEntity(try entityID(id)) }
        }
    }

    struct Series: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Lists the measurements of a profile between two times."
        )

        @OptionGroup var place: Place
        @Argument(help: "The id of the profile.")
        var id: String
        @Option(help: "The first time, in Unix milliseconds.")
        var from: Int64 = 0
        @Option(help: "The last time, in Unix milliseconds.")
        var to = Int64.max
        @Flag(help: "Prints a line of JSON for each entity (docs/schema/entity.json).")
        var json = false

        func validate() throws {
            guard from <= to else { throw ValidationError("--from is later than --to.") }
        }

        func run() async throws {
            try await place.run { client in
                let elements = try await client.elements(
                    of: .measurement,
                    below: try entityID(id),
                    in: from...to
                )
                for element in elements {
                    try say(json ? EntityLine(element).json : element.line())
                }
            }
        }
    }

    struct Conflicts: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Lists conflicts. Exit code 1: a conflict waits for `resolve`."
        )

        @OptionGroup var place: Place
        @Flag(help: "Prints a line of JSON for each conflict (docs/schema/conflict.json).")
        var json = false

        func run() async throws {
            let conflicts = try await place.run { client in
                let conflicts = try await client.entityConflicts()
                for conflict in conflicts {
                    try say(json ? ConflictLine(conflict).json : conflict.text)
                }
                return conflicts
            }
            if !conflicts.isEmpty { throw ExitCode(1) }
        }
    }

    struct Resolve: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Resolves a conflict.",
            discussion: """
                mine applies this device's change to the server's version. theirs discards the change. both keeps the server's \
                version, and stores this device's version as a separate entity. `tambour entities conflicts` shows which choices a \
                conflict offers.
                """
        )

        @OptionGroup var place: Place
        @Argument(help: "The id of the entity.")
        var id: String
        @Argument(help: "The version to keep.")
        fileprivate var choice: Choice
        @Option(
            help: ArgumentHelp(
                "The new parent for mine, if its parent is deleted.",
                valueName: "id"
            )
        )
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

    /// The options of all subcommands: the account, and how long to wait for the server.
    struct Place: ParsableArguments {
        @OptionGroup var account: AccountOptions

        @Option(
            help: ArgumentHelp(
                "How long to wait for the server; 0 works offline.",
                valueName: "seconds"
            )
        )
        var wait: Seconds = 10

        /// Waits for changes from other devices, runs `body`, and waits until the changes of `body`
        /// have reached the server. `wait` limits each of the two waits.
        ///
        /// - Throws: `ExitCode(2)` when changes are still queued at the end, unless `wait` is 0.
        @discardableResult
        func run<Value>(_ body: (Client) async throws -> Value) async throws -> Value {
            let client = try account.signedIn()
            _ = try await client.entityConflicts()
            if wait.count > 0 {
                client.start()
                await client.waitForEntities(within: wait.duration) { true }
            }
            let value: Value
            do {
                value = try await body(client)
            } catch {
                await client.stop()
                throw error
            }
            if wait.count > 0 {
                await client.waitForEntities(within: wait.duration) {
                    try await client.pendingEntityChanges() == 0
                }
            }
            let waits = try await client.pendingEntityChanges() > 0
            await client.stop()
            if waits, wait.count > 0 {
                remark("Some changes wait for the server; the next `tambour entities` sends them.")
                throw ExitCode(2)
            }
            return value
        }
    }
}

/// The choices that the user can give to `resolve`.
enum Choice: String, ExpressibleByArgument, CaseIterable {
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

private func entityID(_ text: String) throws -> EntityID {
    guard let id = EntityID(text.hasPrefix("l") ? "#\(text)" : text) else {
        throw Failure(
            "“\(text)” cannot be the id of an entity: an id is a number, or l and a number"
        )
    }
    return id
}

extension Client {
    /// Returns the entities below `parent` and their depths. If `parent` is nil, returns all
    /// entities. Parents precede their children.
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

    /// Waits until this device has the same entities as the server and `holds` returns true. Stops
    /// waiting when `limit` has passed.
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
        await telling(limit) {
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
}
