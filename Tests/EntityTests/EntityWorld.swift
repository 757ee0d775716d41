import TambourClient
import TambourProtocol
import TambourServer
import TambourTesting

/// One server and several devices of one user. The user edits on all devices, mostly offline.
///
/// `play` performs one step. After about one step in four, it also checks the device.
/// `comeTogether` brings all devices online and lets the user resolve conflicts. After that, all
/// copies must be equal, and no text may be lost.
struct EntityWorld {
    /// The parameters of a test case that are not steps.
    struct Setting: CustomStringConvertible {
        var schema: Int
        var skews: [Int64]
        var seed: UInt64

        var description: String {
            "schema \(schema) \(Schemas.all[schema].title), clocks ahead by \(skews) ms"
        }
    }

    struct Step: CustomStringConvertible {
        var device: Int
        var action: Action
        /// Selects the target of the action. The index of the target among the candidates is this
        /// number modulo the number of candidates.
        var target: Int
        var detail: Int

        var description: String { "device \(device): \(action), \(target), \(detail)" }
    }

    enum Action: CaseIterable {
        case create
        case update
        case delete
        case restore
        case resolve
        case push
        case pushTwice
        case sendOnly
        case loseRequest
        case receiveReply
        case drop
        case pull
        case holdPage
        case receivePage
        case restart
        case wait
    }

    private(set) var server: EntityServer
    private(set) var devices: [Device]
    private let schema: EntitySchema
    private var now: Int64 = 1_700_000_000_000
    private var random: SeededGenerator
    private var tokens: [String: Token] = [:]
    private var nextToken = 0

    /// A text that the user has written into an entity whose policy forbids silent loss. Such a
    /// text must not be lost.
    private struct Token {
        var device: Int
        var uiKey: Int64
        var field: String
        /// The entities above the text that the user has deleted later. If one of them is still
        /// deleted in the end, the text may be lost.
        var deletedAbove: Set<EntityID> = []
    }

    /// The number of resolved conflicts, by the kind of conflict and the way of resolving it.
    private(set) var census: [String: Int] = [:]

    init(_ setting: Setting) {
        self = Self.starts[setting.schema]
        devices.removeSubrange(setting.skews.count...)
        for (index, skew) in setting.skews.enumerated() { devices[index].skew = skew }
        random = SeededGenerator(seed: setting.seed)
    }

    /// For each schema, three devices that all hold a small tree.
    private static let starts = Schemas.all.map { pair in
        var world = EntityWorld(pair)
        do {
            try world.create(.account, below: nil, ["name": .string("t0")], on: 0)
            for name in ["t1", "t2"] {
                let account = world.shown(on: 0)[0].entity.id
                try world.create(
                    .profile,
                    below: account,
                    ["name": .string(name), "colour": .null],
                    on: 0
                )
            }
            let profile = world.shown(on: 0)[1].entity.id
            try world.create(.note, below: profile, ["title": .string("t3")], on: 0)
            try world.create(.note, below: profile, ["title": .string("t4")], on: 0)
            let fields = ["key": FieldValue.string("k0"), "value": .string("t5")]
            try world.create(.preference, below: profile, fields, on: 0)
            try world.comeTogether()
        } catch {
            preconditionFailure("\(error)")
        }
        world.nextToken = 5
        return world
    }

    private init(_ pair: Schemas.Pair) {
        schema = pair.client
        server = EntityServer(schema: pair.server)
        devices = (1...3).map { Device(number: $0, schema: pair.client, skew: 0) }
        random = SeededGenerator(seed: 0)
    }

    static func makeCase(
        steps count: ClosedRange<Int>,
        _ random: inout SeededGenerator
    ) -> (Setting, [Step]) {
        let skews: [Int64] = [0, 0, 3_000, -3_000, 31_536_000_000]
        let devices = 2 + random.below(2)
        let setting = Setting(
            schema: random.below(Schemas.all.count),
            skews: (0..<devices).map { _ in skews[random.below(skews.count)] },
            seed: random.next()
        )
        let length = count.lowerBound + random.below(count.count)
        let steps = (0..<length).map { _ in
            Step(
                device: random.below(devices),
                action: actions[random.below(actions.count)],
                target: random.below(1 << 20),
                detail: random.below(1 << 20)
            )
        }
        return (setting, steps)
    }

    /// The actions to choose from. Actions that should be frequent are listed several times.
    private static let actions =
        Action.allCases
        + [.create, .create, .create, .update, .update, .update, .update, .delete]
        + [.push, .push, .pull]

    // MARK: Steps

    mutating func play(_ step: Step) throws {
        now += 1
        let index = step.device
        switch step.action {
        case .create: try create(on: index, step)
        case .update: try update(on: index, step)
        case .delete: try delete(on: index, step)
        case .restore: try restore(on: index, step)
        case .resolve: try resolve(on: index, step)
        case .push:
            _ = devices[index].send(to: &server, isLost: false, now: now)
            try devices[index].receiveReply(now: now)
        case .pushTwice:
            try devices[index].sendTwice(to: &server, now: now)
            try devices[index].receiveReply(now: now)
        case .sendOnly: _ = devices[index].send(to: &server, isLost: false, now: now)
        case .loseRequest: _ = devices[index].send(to: &server, isLost: true, now: now)
        case .receiveReply: try devices[index].receiveReply(now: now)
        case .drop: devices[index].drop()
        case .pull: devices[index].pull(from: server, isHeld: false)
        case .holdPage: devices[index].pull(from: server, isHeld: true)
        case .receivePage: devices[index].receivePage(step.target)
        case .restart:
            try check(devices[index])
            devices[index].restart()
        case .wait: now += Int64(step.detail % 10_000)
        }
        // The database must follow every call. It is enough to check this after about one step in
        // four, which is faster.
        if step.detail % 4 == 0 { try check(devices[index]) }
    }

    /// Returns the shown entities, parents first.
    private func shown(on index: Int) -> [LocalEntity] {
        var found: [LocalEntity] = []
        var parents: [EntityID?] = [nil]
        while let parent = parents.popLast() {
            for entity in devices[index].entities.entities(below: parent) {
                found.append(entity)
                parents.append(entity.entity.id)
            }
        }
        return found
    }

    private mutating func create(on index: Int, _ step: Step) throws {
        let all = shown(on: index)
        let parents = all.filter { [.account, .profile].contains($0.entity.type) }
        guard !parents.isEmpty, step.target % 8 != 0 else {
            return try create(.account, below: nil, ["name": text(step)], on: index)
        }
        let parent = parents[step.target % parents.count].entity
        if parent.type == .account {
            try create(.profile, below: parent.id, profile(step), on: index)
        } else {
            switch step.detail % 5 {
            case 0, 1:
                try create(.note, below: parent.id, note(step), on: index)
            case 2, 3:
                let fields = ["key": FieldValue.string("k\(step.target % 2)"), "value": text(step)]
                try create(.preference, below: parent.id, fields, on: index)
            default:
                try create(.measurement, below: parent.id, ["at": .int(now)], on: index)
            }
        }
    }

    private mutating func create(
        _ type: EntityType,
        below parent: EntityID?,
        _ fields: [String: FieldValue],
        on index: Int
    ) throws {
        var id: EntityID?
        let error = devices[index].perform { [now] entities throws(LocalEntityError) in
            let creation = try entities.create(
                type,
                below: parent,
                fields: fields,
                at: now + Int64(index)
            )
            id = creation.id
            return creation.rows
        }
        if let error { throw Fault("create \(type.rawValue): \(error)") }
        if let id { watch(fields, of: id, on: index) }
    }

    private mutating func update(on index: Int, _ step: Step) throws {
        let all = shown(on: index).filter { $0.entity.type != .measurement }
        guard !all.isEmpty else { return }
        let entity = all[step.target % all.count]
        var fields: [String: FieldValue]
        switch entity.entity.type {
        case .account: fields = ["name": text(step)]
        case .profile: fields = profile(step)
        case .note: fields = note(step)
        default: fields = ["value": text(step)]
        }
        if fields.count > 1, step.detail % 3 > 0 {
            fields[fields.keys.sorted()[step.detail % fields.count]] = nil
        }
        if step.detail % 17 == 0, let name = fields.keys.min() { fields[name] = .null }
        let time = now + devices[index].skew
        let error = devices[index].perform { entities throws(LocalEntityError) in
            try entities.update(entity.entity.id, fields: fields, at: time)
        }
        if let error { throw Fault("update: \(error)") }
        watch(fields, of: entity.entity.id, on: index)
    }

    private mutating func delete(on index: Int, _ step: Step) throws {
        let all = shown(on: index).filter { $0.entity.type != .measurement }
        guard !all.isEmpty else { return }
        let entity = all[step.target % all.count]
        let gone = family(of: entity.entity.id, on: index)
        let time = now + devices[index].skew
        let error = devices[index].perform { entities throws(LocalEntityError) in
            try entities.delete(entity.entity.id, at: time)
        }
        switch error {
        case nil:
            // If updates win over deletions, an update from another device may restore the entity
            // without the texts below it. The final state then contains no deletion that explains
            // their loss, so the texts are no longer watched.
            let mayReturn = schema[entity.entity.type]?.deletion == .updateWins
            unwatch(on: index) { token, _ in
                token.uiKey == entity.uiKey || mayReturn && gone.contains(token.uiKey)
            }
            for (text, token) in tokens where token.device == index && gone.contains(token.uiKey) {
                tokens[text]?.deletedAbove.insert(entity.entity.id)
            }
        case .refused(let refusal) where refusal.error == .childrenRemain: break
        case .some(let error): throw Fault("delete: \(error)")
        }
    }

    private mutating func restore(on index: Int, _ step: Step) throws {
        let deleted = devices[index].entities.rows.updates.filter { $0.change.kind == .delete }
        guard !deleted.isEmpty else { return }
        let update = deleted[step.target % deleted.count]
        var fields = update.change.base?.fields ?? [:]
        guard let name = fields.keys.filter({ $0 != "key" }).max() else { return }
        fields[name] = text(step)
        let time = now + devices[index].skew
        let error = devices[index].perform { entities throws(LocalEntityError) in
            try entities.restore(update.id, fields: fields, at: time)
        }
        switch error {
        case nil:
            watch(fields, of: update.id, on: index)
            for (text, token) in tokens where token.device == index {
                tokens[text]?.deletedAbove.remove(update.id)
            }
        // These errors are expected if the entity is below a deleted entity, or was already
        // restored after the frozen deletion.
        case .notFound, .notDeleted: break
        case .some(let error): throw Fault("restore: \(error)")
        }
    }

    private mutating func resolve(on index: Int, _ step: Step) throws {
        let conflicts = devices[index].entities.conflicts
        guard !conflicts.isEmpty else { return }
        let conflict = conflicts[step.target % conflicts.count]
        let choices = [EntityChoice.mine, .theirs, .both].filter(conflict.choices.contains)
        try resolve(conflict, choices[step.detail % choices.count], on: index)
    }

    private mutating func resolve(
        _ conflict: Conflict,
        _ choice: EntityChoice,
        on index: Int
    ) throws {
        var choice = choice
        var parent: EntityID?
        if conflict.kind == .parentDeleted, choice == .mine {
            let type = schema[conflict.type]?.parent
            parent = shown(on: index).first { $0.entity.type == type }?.entity.id
            if parent == nil { choice = .theirs }
        }
        let rows = devices[index].entities.rows.entities
        let mine = rows.first { $0.id == conflict.id }?.uiKey
        let theirs = rows.first { $0.id == conflict.theirs?.id }?.uiKey
        let gone = family(of: conflict.id, on: index)
        let time = now + devices[index].skew
        let error = devices[index].perform { [choice, parent] entities throws(LocalEntityError) in
            try entities.resolve(conflict.id, choice, below: parent, at: time)
        }
        if let error { throw Fault("resolve \(conflict.kind) as \(choice): \(error)") }
        census["\(conflict.kind) \(choice)", default: 0] += 1
        let written = Set(conflict.mine.fields.values)
        switch (choice, conflict.kind) {
        case (.theirs, _):
            unwatch(on: index) { token, text in
                token.uiKey == mine && written.contains(.string(text))
            }
            if conflict.mine.kind == .create, conflict.kind != .duplicate {
                unwatch(on: index) { token, _ in gone.contains(token.uiKey) }
            }
        case (.mine, .duplicate):
            unwatch(on: index) { token, _ in
                token.uiKey == theirs && conflict.mine.fields[token.field] != nil
            }
        case (.both, _):
            follow(written, on: index)
        default: break
        }
        if conflict.kind == .duplicate, let mine, let theirs {
            for (text, token) in tokens where token.device == index && token.uiKey == theirs {
                tokens[text]?.uiKey = mine
            }
        }
    }

    // MARK: Texts of the user

    private mutating func text(_ step: Step) -> FieldValue {
        nextToken += 1
        // Some texts exceed the server's limit.
        let tail = step.detail % 23 == 0 ? String(repeating: "x", count: 90) : ""
        return .string("t\(nextToken)\(tail)")
    }

    private mutating func profile(_ step: Step) -> [String: FieldValue] {
        ["name": text(step), "colour": text(step)]
    }

    private mutating func note(_ step: Step) -> [String: FieldValue] {
        ["title": text(step), "body": text(step)]
    }

    private mutating func watch(_ fields: [String: FieldValue], of id: EntityID, on index: Int) {
        let id = devices[index].entities.current(id)
        guard let row = devices[index].entities.rows.entities.first(where: { $0.id == id }) else {
            return
        }
        unwatch(on: index) { token, _ in token.uiKey == row.uiKey && fields[token.field] != nil }
        guard schema[row.type]?.policy.contest == .cas else { return }
        for (name, value) in fields {
            guard case .string(let text) = value, text.hasPrefix("t") else { continue }
            tokens[text] = Token(device: index, uiKey: row.uiKey, field: name)
        }
    }

    private mutating func unwatch(on index: Int, where isOver: (Token, String) -> Bool) {
        for (text, token) in tokens where token.device == index && isOver(token, text) {
            tokens[text] = nil
        }
    }

    /// After the choice "both", the copy of the entity contains the written texts. The texts are
    /// then watched in the copy.
    private mutating func follow(_ written: Set<FieldValue>, on index: Int) {
        guard let copy = devices[index].entities.rows.entities.max(by: { $0.uiKey < $1.uiKey })
        else { return }
        for (text, token) in tokens where token.device == index && written.contains(.string(text)) {
            tokens[text]?.uiKey = copy.uiKey
        }
    }

    /// Returns the UI keys of an entity and its descendants.
    private func family(of id: EntityID, on index: Int) -> Set<Int64> {
        let rows = devices[index].entities.rows.entities
        var keys: Set<Int64> = []
        var ids = [id]
        while let id = ids.popLast() {
            for row in rows where row.id == id { keys.insert(row.uiKey) }
            ids += rows.filter { $0.parent == id }.map(\.id)
        }
        return keys
    }

    // MARK: Checks

    private func check(_ device: Device) throws {
        let rows = device.entities.rows
        guard device.database.rows == rows else {
            throw Fault("the database of device \(device.number) does not follow")
        }
        let ids = Set(rows.entities.map(\.id))
        for row in rows.entities {
            if let parent = row.parent, parent.isLocal, !ids.contains(parent) {
                throw Fault("\(row.id) stands below \(parent), which is nowhere")
            }
        }
        for update in rows.updates where !ids.contains(update.id) {
            throw Fault("a change of \(update.id), which is nowhere")
        }
        for alias in rows.aliases where ids.contains(alias.local) {
            throw Fault("\(alias.local) is \(alias.server), and still there")
        }
        guard Set(rows.entities.map(\.uiKey)).count == rows.entities.count else {
            throw Fault("two rows of the screen have one key")
        }
    }

    /// Brings all devices online. Repeats until no device has a change to push or a conflict to
    /// resolve.
    mutating func comeTogether() throws {
        for index in devices.indices { devices[index].drop() }
        for _ in 0..<60 {
            var isQuiet = true
            for index in devices.indices {
                now += 1
                if try pushAll(from: index) { isQuiet = false }
                devices[index].pull(from: server, isHeld: false)
                for conflict in devices[index].entities.conflicts {
                    // An earlier choice may have settled this conflict.
                    guard let conflict = devices[index].entities.conflict(conflict.id) else {
                        continue
                    }
                    isQuiet = false
                    let choices = [EntityChoice.mine, .theirs, .both]
                        .filter(conflict.choices.contains)
                    try resolve(conflict, choices[random.below(choices.count)], on: index)
                }
            }
            if isQuiet, devices.allSatisfy(\.entities.rows.updates.isEmpty) { return }
        }
        throw Fault("they never come to an end")
    }

    /// - Parameter isComplete: Whether the server still has all the data that it has ever accepted.
    func checkAgreement(isComplete: Bool = true) throws {
        let live = server.live
        let ids = Set(live.map(\.id))
        for entity in live {
            if let parent = entity.parent, !ids.contains(parent) {
                throw Fault("\(entity.id) is an orphan")
            }
        }
        for (index, device) in devices.enumerated() {
            try check(device)
            let rows = device.entities.rows
            if let update = rows.updates.first {
                throw Fault("device \(device.number) still has \(update)")
            }
            if let row = rows.entities.first(where: { $0.id.isLocal || $0.parent?.isLocal == true })
            {
                throw Fault("device \(device.number) still has the local id of \(row)")
            }
            let shown = shown(on: index).map(\.entity).sorted { $0.id < $1.id }
            guard shown == live else {
                let difference = Set(shown).symmetricDifference(live)
                throw Fault("device \(device.number) and the server differ in \(difference)")
            }
        }
        for (text, token) in tokens where isComplete && !server.written.contains(text) {
            let entities = devices[token.device].entities
            let isDeleted = { (id: EntityID) in !ids.contains(entities.current(id)) }
            if token.deletedAbove.contains(where: isDeleted) { continue }
            throw Fault("\(text), written into \(token.field) on device \(token.device), is lost")
        }
    }

    /// All devices return after the server has forgotten their replies and tombstones.
    mutating func returnAfterMonths() throws {
        now += 91 * 86_400_000
        server.forgetTheOld()
        try pullAll()
    }

    /// Restores the backup: the server loses all later changes.
    mutating func restoreBackup(_ backup: EntityWorld) throws {
        server.restoreBackup(backup.server)
        try pullAll()
    }

    private mutating func pullAll() throws {
        for index in devices.indices {
            now += 1
            devices[index].drop()
            _ = try pushAll(from: index)
            devices[index].pullAll(from: server)
        }
    }

    /// - Returns: Whether the device had changes to push.
    private mutating func pushAll(from index: Int) throws -> Bool {
        for round in 0..<20 {
            guard devices[index].send(to: &server, isLost: false, now: now) else {
                return round > 0
            }
            try devices[index].receiveReply(now: now)
        }
        throw Fault("device \(index) pushes without end")
    }
}
