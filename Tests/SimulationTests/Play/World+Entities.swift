import TambourProtocol
import TambourStore
import TambourTesting

@testable import TambourClient
@testable import TambourServer

/// The texts written into entities. Each text is unique, so the final check can search for it.
struct Writings {
    /// The name of the profile to which each text belongs.
    private var profiles: [String: String] = [:]
    /// Texts that a user saw and then replaced, deleted or dropped.
    private var givenUp: Set<String> = []
    /// Profiles that a user deleted with everything below.
    private var goneProfiles: Set<String> = []

    mutating func add(_ text: String, below profile: String) { profiles[text] = profile }

    mutating func giveUp(_ text: String?) {
        if let text { givenUp.insert(text) }
    }

    mutating func giveUp(profile: String?) {
        if let profile { goneProfiles.insert(profile) }
    }

    /// Forgets all texts after a restore, because the backup may lack any of them.
    mutating func forget() { givenUp.formUnion(profiles.keys) }

    /// The texts that must still exist.
    var kept: [String] {
        profiles.filter { !givenUp.contains($0.key) && !goneProfiles.contains($0.value) }
            .keys.sorted()
    }
}

/// The first user's entity actions on several devices, and the checks of their results.
extension World {
    private var owners: [Device] { plan.hasEntities ? devices.filter { $0.user == 0 } : [] }

    func entity(_ move: Move) {
        let device = owners[move.a % owners.count]
        switch move.kind {
        case .account:
            make(.account, below: nil, ["name": .string("account \(move.b % 2)")], on: device)
        case .makeProfile:
            guard let account = entity(.account, move.b, on: device) else { return }
            let name = FieldValue.string(device.nextText())
            make(.profile, below: account.entity.id, ["name": name], on: device)
        case .note, .measure, .preference: makePart(move, on: device)
        case .makeFamily: makeFamily(move, on: device)
        case .editNote:
            guard let note = entity(.note, move.b, on: device) else { return }
            let text = device.nextText()
            guard change(note, ["text": .string(text)], on: device) else { return }
            writings.giveUp(note.entity.text("text"))
            writings.add(text, below: profile(of: note, on: device))
        case .editProfile:
            guard let profile = entity(.profile, move.b, on: device) else { return }
            _ = change(profile, ["color": .string("#\(move.c)")], on: device)
        case .editPreference:
            guard let preference = entity(.preference, move.b, on: device) else { return }
            _ = change(preference, ["value": .string("\(move.c)")], on: device)
        case .deleteNote, .deleteProfile, .deletePreference: delete(move, on: device)
        case .resolve:
            guard let conflicts = conflicts(on: device), !conflicts.isEmpty else { return }
            resolve(conflicts[move.b % conflicts.count], move.c, on: device)
        default: break
        }
    }

    // MARK: - Wishes

    private func makePart(_ move: Move, on device: Device) {
        guard let profile = entity(.profile, move.b, on: device) else { return }
        let (parent, name) = (profile.entity.id, profile.entity.text("name") ?? "")
        switch move.kind {
        case .note:
            let text = device.nextText()
            if make(.note, below: parent, ["text": .string(text)], on: device) {
                writings.add(text, below: name)
            }
        case .measure:
            // The position in the series identifies the measurement.
            lastMeasured += 1
            if make(.measurement, below: parent, ["at": .int(lastMeasured)], on: device) {
                writings.add("at \(lastMeasured)", below: name)
            }
        default:
            let key = FieldValue.string("key \(move.c % 3)")
            make(.preference, below: parent, ["key": key, "value": .string("0")], on: device)
        }
    }

    /// Makes a profile with a note, which the server can create only after the profile.
    private func makeFamily(_ move: Move, on device: Device) {
        guard let account = entity(.account, move.b, on: device) else { return }
        let (name, text) = (device.nextText(), device.nextText())
        let made: Void? = edit(on: device) { entities, now throws(LocalEntityError) in
            let profile = try entities.create(
                .profile,
                below: account.entity.id,
                fields: ["name": .string(name)],
                at: now
            )
            let note = try entities.create(
                .note,
                below: profile.id,
                fields: ["text": .string(text)],
                at: now
            )
            return ((), profile.rows + note.rows)
        }
        if made != nil { writings.add(text, below: name) }
    }

    private func delete(_ move: Move, on device: Device) {
        let type: EntityType =
            switch move.kind {
            case .deleteNote: .note
            case .deleteProfile: .profile
            default: .preference
            }
        guard let local = entity(type, move.b, on: device) else { return }
        let done: Void? = edit(on: device) { entities, now throws(LocalEntityError) in
            ((), try entities.delete(local.entity.id, at: now))
        }
        guard done != nil else { return }
        writings.giveUp(local.entity.text("text"))
        if type == .profile { writings.giveUp(profile: local.entity.text("name")) }
    }

    private func resolve(_ conflict: Conflict, _ number: Int, on device: Device) {
        var choices = [EntityChoice.mine, .theirs, .both].filter(conflict.choices.contains)
        // A rejected entity exceeds a limit and always will, so only the server's version can be
        // chosen.
        if case .rejected = conflict.kind { choices = [.theirs] }
        var choice = choices[number % choices.count]
        let type = EntitySchema.standard(.standard)[conflict.type]?.parent
        let parent = type.flatMap { entity($0, number, on: device) }
        if conflict.kind == .parentDeleted, parent == nil { choice = .theirs }
        let below = dropped(by: choice, of: conflict, on: device)
        let done: Void? = edit(on: device) { entities, now throws(LocalEntityError) in
            let rows = try entities.resolve(
                conflict.id,
                choice,
                below: conflict.kind == .parentDeleted ? parent?.entity.id : nil,
                at: now
            )
            return ((), rows)
        }
        guard done != nil else { return }
        if conflict.kind == .parentDeleted { hit(.entityConflict) }
        switch choice {
        case .mine: writings.giveUp(conflict.theirs?.text("text"))
        case .theirs:
            writings.giveUp(conflict.mine.writing)
            for name in below { writings.giveUp(profile: name) }
        case .both: break
        }
        guard choice == .mine, conflict.kind == .parentDeleted, let parent else { return }
        // The entity is now below another profile.
        if let text = conflict.mine.writing {
            writings.add(text, below: profile(of: parent, on: device))
        }
    }

    /// Returns the profiles that disappear when the user gives up a creation.
    private func dropped(
        by choice: EntityChoice,
        of conflict: Conflict,
        on device: Device
    ) -> [String] {
        guard choice == .theirs, conflict.mine.kind == .create else { return [] }
        if case .duplicate = conflict.kind { return [] }
        if conflict.type == .profile { return [conflict.mine.fields["name"]?.string ?? ""] }
        return (entities(.profile, on: device) ?? [])
            .filter { $0.entity.parent == conflict.id }
            .compactMap { $0.entity.text("name") }
    }

    // MARK: - Entities of a device

    private func entities(_ type: EntityType, on device: Device) -> [LocalEntity]? {
        look(on: device) { entities in
            entities.rows.entities.filter { $0.type == type }
                .compactMap { entities.entity($0.id) }
                .sorted { $0.uiKey < $1.uiKey }
        }
    }

    private func entity(_ type: EntityType, _ number: Int, on device: Device) -> LocalEntity? {
        guard let all = entities(type, on: device), !all.isEmpty else { return nil }
        return all[number % all.count]
    }

    private func conflicts(on device: Device) -> [Conflict]? {
        look(on: device) { $0.conflicts }
    }

    /// Returns the name of a profile, or the name of the profile that contains another entity.
    private func profile(of local: LocalEntity, on device: Device) -> String {
        if local.entity.type == .profile { return local.entity.text("name") ?? "" }
        let parent = local.entity.parent
        return look(on: device) { parent.flatMap($0.entity)?.entity.text("name") ?? "" } ?? ""
    }

    private func look<Value>(on device: Device, _ body: @escaping (LocalEntities) -> Value)
        -> Value?
    {
        device.wish { core, tx in body(try core.entities.use(tx)) }
    }

    private func edit<Value>(
        on device: Device,
        _ body:
            @escaping (inout LocalEntities, Int64) throws(LocalEntityError) -> (
                Value, [EntityRowChange]
            )
    ) -> Value? {
        device.wish { core, tx in
            let now = core.environment.wallMs()
            return try core.entities.change(tx) { entities throws(LocalEntityError) in
                try body(&entities, now)
            }
        }
    }

    @discardableResult
    private func make(
        _ type: EntityType,
        below parent: EntityID?,
        _ fields: [String: FieldValue],
        on device: Device
    ) -> Bool {
        let made: Void? = edit(on: device) { entities, now throws(LocalEntityError) in
            ((), try entities.create(type, below: parent, fields: fields, at: now).rows)
        }
        return made != nil
    }

    private func change(
        _ local: LocalEntity,
        _ fields: [String: FieldValue],
        on device: Device
    ) -> Bool {
        let done: Void? = edit(on: device) { entities, now throws(LocalEntityError) in
            ((), try entities.update(local.entity.id, fields: fields, at: now))
        }
        return done != nil
    }

    // MARK: - At rest

    /// Returns whether the device waits only for its user's choices.
    func hasSettledEntities(_ device: Device) -> Bool {
        guard owners.contains(where: { $0 === device }) else { return true }
        let isDone = device.wish { core, tx in
            let entities = try core.entities.use(tx)
            guard core.entities.isInSync, !entities.awaitsReply else { return false }
            return !entities.conflicts.isEmpty || entities.pendingCount == 0
        }
        return isDone ?? false
    }

    /// Makes the user resolve all conflicts.
    func resolveEverything() {
        for _ in 0..<30 {
            var isResolved = true
            for device in owners {
                guard violations.isEmpty else { return }
                let conflicts = conflicts(on: device) ?? []
                guard !conflicts.isEmpty else { continue }
                isResolved = false
                for conflict in conflicts { resolve(conflict, loop.random.below(6), on: device) }
                settle()
            }
            if isResolved { return }
        }
        violated("conflicts never end")
    }

    /// Checks that all devices hold the server's entities and that no written text is lost
    /// silently.
    func checkEntities(_ ask: (ObjPullRequest) throws -> ObjPullReply) throws {
        guard !owners.isEmpty else { return }
        let live = try pull(ObjPullRequest(since: 0), ask).filter { !$0.isDeleted }
        for device in owners {
            let held = look(on: device) { entities in
                entities.rows.entities.filter { $0.type != .measurement }
                    .compactMap { entities.entity($0.id) }
            }
            guard let held else { return violated("\(device.name) cannot show its entities") }
            let wrong = Set(held.map { Told($0.entity) }).symmetricDifference(live.map(Told.init))
            if !wrong.isEmpty {
                violated("\(device.name) and the server differ in \(wrong.map(\.text).sorted())")
            }
        }
        var found = Set(live.compactMap { $0.text("text") })
        for profile in live where profile.type == .profile {
            guard case .server(let parent) = profile.id else { continue }
            let series = ObjectRange(type: "measurement", parent: parent)
            let places = try pull(ObjPullRequest(series: series), ask)
                .compactMap { $0.fields["at"]?.int }
            if Set(places).count != places.count { violated("measured twice: \(places)") }
            found.formUnion(places.map { "at \($0)" })
        }
        let lost = writings.kept.filter { !found.contains($0) }
        if !lost.isEmpty { violated("written and gone: \(lost)") }
    }

    private func pull(
        _ first: ObjPullRequest,
        _ ask: (ObjPullRequest) throws -> ObjPullReply
    ) throws -> [Entity] {
        var found: [EntityID: Entity] = [:]
        var request = first
        while true {
            let page = try ask(request)
            for copy in page.objects {
                let entity = try Entity(copy)
                found[entity.id] = entity
            }
            guard page.more == true else { break }
            if request.series == nil {
                request.since = page.time
            } else {
                request.series?.from = page.time
            }
            request.after = page.last ?? 0
        }
        return Array(found.values)
    }
}

/// The parts of an entity on which two copies must agree.
private struct Told: Hashable {
    let id: EntityID
    let version: Int64
    let parent: EntityID?
    let fields: [String: FieldValue]

    init(_ entity: Entity) {
        id = entity.id
        version = entity.version
        parent = entity.parent
        fields = entity.fields
    }

    var text: String { "\(id) version \(version) \(fields)" }
}

extension Entity {
    fileprivate func text(_ field: String) -> String? { fields[field]?.string }
}

extension EntityChange {
    /// The written text, by which the checks find the change.
    fileprivate var writing: String? {
        fields["text"]?.string ?? fields["at"]?.int.map { "at \($0)" }
    }
}

extension FieldValue {
    fileprivate var string: String? {
        if case .string(let text) = self { text } else { nil }
    }

    fileprivate var int: Int64? {
        if case .int(let number) = self { number } else { nil }
    }
}
