import Foundation

@testable import tambour_spec

/// Trials that change everything except fields.
extension Trials {
    private func broken(_ titles: [String], _ rules: String...) -> [Broken] {
        titles.flatMap { title in rules.map { Broken(title: title, rule: $0) } }
    }

    // MARK: Enums and structs

    /// A release that also sends closed enums to clients. In the real release, the server only
    /// reads them.
    private static let sendingClosed: Specification = {
        var release = old
        guard let chat = release.structs.firstIndex(where: { $0.name == "Chat" }),
            let field = release.structs[chat].fields.first(where: \.isOptional)
        else { return release }
        for type in release.enums where !type.isOpen {
            var field = field
            field.key = "a\(type.name)"
            field.type = .named(type.name)
            release.structs[chat].fields.append(field)
        }
        return release
    }()

    mutating func addTypes() {
        let old = Self.old
        let enums = old.enums.map(\.name)
        add("an enum is removed", enums, breaks: broken(enums, "enum-removed")) { $0.enums = [] }
        let structs = old.structs.map(\.name)
        add("a struct is removed", structs, breaks: broken(structs, "struct-removed")) {
            $0.structs = []
        }
        let values = old.enums.flatMap { type in type.values.map { "\(type.name).\($0.value)" } }
        add("a value is removed", values, breaks: broken(values, "value-removed")) {
            for index in $0.enums.indices { $0.enums[index].values = [] }
        }
        let open = old.enums.filter(\.isOpen).map(\.name)
        let closed = old.enums.filter { !$0.isOpen }.map(\.name)
        add("an open enum gets a value", open) { Self.addValue(to: open, &$0) }
        let openValues = old.enums.filter(\.isOpen).flatMap { type in
            type.values.map { "\(type.name).\($0.value)" }
        }
        add(
            "a value is put behind a capability",
            openValues,
            breaks: broken(openValues, "value-capability")
        ) {
            for index in $0.enums.indices where $0.enums[index].isOpen {
                for value in $0.enums[index].values.indices {
                    $0.enums[index].values[value].capability = "lz4-large"
                }
            }
        }
        add("a value gets a fallback", openValues, breaks: broken(openValues, "value-fallback")) {
            for index in $0.enums.indices where $0.enums[index].isOpen {
                for value in $0.enums[index].values.indices {
                    $0.enums[index].values[value].fallback = "OTHER"
                }
            }
        }
        add("an open enum is closed", open, breaks: broken(open, "enum-closed")) {
            for index in $0.enums.indices { $0.enums[index].isOpen = false }
        }
        add("a closed enum that only clients send gets a value", closed) {
            Self.addValue(to: closed, &$0)
        }
        add("a closed enum that only clients send is opened", closed) {
            for index in $0.enums.indices { $0.enums[index].isOpen = true }
        }
        add(
            "a closed enum that clients receive gets a value",
            closed,
            breaks: broken(closed.map { "\($0).ADDED_LATER" }, "value-added-to-closed"),
            release: Self.sendingClosed
        ) {
            Self.addValue(to: closed, &$0)
        }
        add(
            "a closed enum that clients receive is opened",
            closed,
            breaks: broken(closed, "enum-opened"),
            release: Self.sendingClosed
        ) {
            for index in $0.enums.indices { $0.enums[index].isOpen = true }
        }
        for (what, since, rules) in [
            ("an enum is added", Self.next.version, []),
            ("an enum is added and dated back", old.version, ["since-of-added-enumeration"]),
        ] as [(String, Int, [String])] {
            add(what, ["Added"], breaks: rules.map { Broken(title: "Added", rule: $0) }) {
                var type = $0.enums[0]
                type.name = "Added"
                type.since = since
                $0.enums.append(type)
            }
        }
        for (what, since, rules) in [
            ("a struct is added", Self.next.version, []),
            ("a struct is added and dated back", old.version, ["since-of-added-object"]),
        ] as [(String, Int, [String])] {
            add(what, ["Added"], breaks: rules.map { Broken(title: "Added", rule: $0) }) {
                var type = $0.structs[0]
                type.name = "Added"
                type.since = since
                $0.structs.append(type)
            }
        }
        add("an enum is dated anew", enums, breaks: broken(enums, "since-of-enumeration")) {
            for index in $0.enums.indices { $0.enums[index].since = Self.next.version }
        }
        add("a struct is dated anew", structs, breaks: broken(structs, "since-of-object")) {
            for index in $0.structs.indices { $0.structs[index].since = Self.next.version }
        }
    }

    private static func addValue(to types: [String], _ specification: inout Specification) {
        for index in specification.enums.indices
        where types.contains(specification.enums[index].name) {
            specification.enums[index].values.append(
                .init(value: "ADDED_LATER", swiftName: "addedLater", doc: "Added later.")
            )
        }
    }

    // MARK: Limits

    mutating func addLimits() {
        func titles(_ changes: Specification.Limit.Change...) -> [String] {
            Self.old.limits.filter { changes.contains($0.change) }.map { "limit \($0.name)" }
        }
        let all = Self.old.limits.map { "limit \($0.name)" }
        add(
            "a limit is lowered",
            all,
            breaks: broken(titles(.wider), "limit-lowered")
                + broken(titles(.never), "limit-changed")
        ) {
            for index in $0.limits.indices { $0.limits[index].value -= 1 }
        }
        add(
            "a limit is raised",
            all,
            breaks: broken(titles(.narrower), "limit-raised")
                + broken(titles(.never), "limit-changed")
        ) {
            for index in $0.limits.indices { $0.limits[index].value += 1 }
        }
        add("a limit is removed", all, breaks: broken(all, "limit-removed")) { $0.limits = [] }
        add("a limit gets another unit", all, breaks: broken(all, "limit-unit")) {
            for index in $0.limits.indices { $0.limits[index].unit = "parsecs" }
        }
        add(
            "the largest override of a limit is lowered, or there is one now",
            all,
            breaks: broken(all, "limit-max")
        ) {
            for index in $0.limits.indices {
                let limit = $0.limits[index]
                $0.limits[index].max = (limit.max ?? limit.value + 1) - 1
            }
        }
        add("the largest override of a limit is raised, or there is none now", all) {
            for index in $0.limits.indices {
                $0.limits[index].max = index % 2 == 0 ? nil : $0.limits[index].max.map { $0 + 1 }
            }
        }
        add(
            "a limit may change in another way",
            all,
            breaks: broken(titles(.wider, .narrower, .never), "limit-freed")
        ) {
            for index in $0.limits.indices {
                $0.limits[index].change = $0.limits[index].change == .any ? .never : .any
            }
        }
        add("a limit is dated anew", all, breaks: broken(all, "since-of-limit")) {
            for index in $0.limits.indices { $0.limits[index].since = Self.next.version }
        }
        for (what, since, rules) in [
            ("a limit is added", Self.next.version, []),
            ("a limit is added and dated back", Self.old.version, ["since-of-added-limit"]),
        ] as [(String, Int, [String])] {
            add(what, ["added"], breaks: rules.map { Broken(title: "limit added", rule: $0) }) {
                var limit = $0.limits[0]
                limit.name = "added"
                limit.since = since
                $0.limits.append(limit)
            }
        }
    }

    // MARK: Errors

    mutating func addErrors() {
        func titles(_ belongs: (Specification.ErrorCode) -> Bool) -> [String] {
            Self.old.errors.filter(belongs).map { "error \($0.code)" }
        }
        let all = titles { _ in true }
        add("an error is removed", all, breaks: broken(all, "error-removed")) { $0.errors = [] }
        let soft = titles { $0.errorClass == .soft }
        add("a soft error becomes hard", soft, breaks: broken(soft, "error-harder")) {
            for index in $0.errors.indices { $0.errors[index].errorClass = .hard }
        }
        add("a hard error becomes soft", titles { $0.errorClass == .hard }) {
            for index in $0.errors.indices { $0.errors[index].errorClass = .soft }
        }
        for retry in Specification.ErrorCode.Retry.allCases {
            let changed = titles { $0.retry != retry }
            add(
                "an error asks to retry \(retry.rawValue)",
                changed,
                breaks: broken(
                    titles { $0.retry != retry && $0.retry != .never },
                    "error-retry"
                )
            ) {
                for index in $0.errors.indices { $0.errors[index].retry = retry }
            }
        }
        add("an error gets another message", all, breaks: broken(all, "error-message")) {
            for index in $0.errors.indices { $0.errors[index].message = "Something else" }
        }
        add("an error is no longer common", titles(\.isCommon)) {
            for index in $0.errors.indices { $0.errors[index].isCommon = false }
        }
        let single = titles { !$0.isCommon }
        add("an error becomes common", single, breaks: broken(single, "error-common")) {
            for index in $0.errors.indices { $0.errors[index].isCommon = true }
        }
        add("an error is dated anew", all, breaks: broken(all, "since-of-error")) {
            for index in $0.errors.indices { $0.errors[index].since = Self.next.version }
        }
        addNewErrors()
    }

    private mutating func addNewErrors() {
        func new(
            _ what: String,
            _ code: String,
            _ errorClass: Specification.ErrorCode.Class,
            isCommon: Bool,
            since: Int = Self.next.version,
            breaks: [Broken] = []
        ) {
            add(what, [code], breaks: breaks) { specification in
                var error = specification.errors[0]
                error.code = code
                error.errorClass = errorClass
                error.isCommon = isCommon
                error.since = since
                specification.errors.append(error)
                guard !isCommon else { return }
                Self.forEachOpcode(&specification) {
                    if $0.name == "PING" { $0.errors.append(code) }
                }
            }
        }
        let orphan = Broken(title: "error chat.locked", rule: "error-without-parent")
        new("a soft error is added to an opcode", "chat.locked", .soft, isCommon: false)
        new(
            "a hard error is added to an opcode",
            "chat.locked",
            .hard,
            isCommon: false,
            breaks: [
                orphan, Broken(title: "PING: error chat.locked", rule: "opcode-error-hard"),
            ]
        )
        new("a common error is added", "chat.locked", .soft, isCommon: true, breaks: [orphan])
        new("a common error with a parent is added", "internal.disk", .soft, isCommon: true)
        new(
            "a common error with a parent that is not common is added",
            "not.allowed.here",
            .soft,
            isCommon: true,
            breaks: [Broken(title: "error not.allowed.here", rule: "error-without-parent")]
        )
        new("a hard error with a hard parent is added", "proto.frame.length", .hard, isCommon: true)
        new(
            "a hard error with a soft parent is added",
            "internal.disk",
            .hard,
            isCommon: true,
            breaks: [Broken(title: "error internal.disk", rule: "error-without-parent")]
        )
        new(
            "an error is added and dated back",
            "chat.locked",
            .soft,
            isCommon: false,
            since: Self.old.version,
            breaks: [Broken(title: "error chat.locked", rule: "since-of-added-error")]
        )
        let others = Self.opcodes.filter { !$0.errors.contains("not.allowed") }.map(\.name)
        add("an opcode answers an error that others answer", others) {
            Self.forEachOpcode(&$0) {
                if others.contains($0.name) { $0.errors.append("not.allowed") }
            }
        }
        let answering = Self.opcodes.filter { !$0.errors.isEmpty }.map(\.name)
        add("an opcode no longer answers an error", answering) {
            Self.forEachOpcode(&$0) { $0.errors = [] }
        }
    }

    // MARK: Opcodes

    mutating func addOpcodes() {
        let names = Self.opcodes.map(\.name)
        let requirements = Self.opcodes.flatMap(\.edges).map { "requirement \($0.id)" }
        add(
            "an opcode is removed",
            names,
            breaks: broken(names, "opcode-removed")
                + broken(requirements, "requirement-removed")
        ) {
            for index in $0.families.indices { $0.families[index].opcodes = [] }
        }
        let pushes = Self.opcodes.filter { $0.push != nil }.map(\.name)
        add(
            "an opcode is renumbered",
            names,
            breaks: broken(names, "opcode-renumbered") + broken(pushes, "push-added")
        ) {
            var number = 1100
            Self.forEachOpcode(&$0) {
                $0.number = number
                $0.since = Self.next.version
                number += 1
            }
        }
        add("an opcode is renamed", names, breaks: broken(names, "opcode-renamed")) {
            Self.forEachOpcode(&$0) { $0.name += "_RENAMED" }
        }
        for direction in Direction.allCases {
            let changed = Self.opcodes.filter { $0.direction != direction }
            let refused = changed.filter { direction != .both || $0.direction == .clientToServer }
            add(
                "the direction of an opcode becomes \(direction)",
                changed.map(\.name),
                breaks: broken(refused.map(\.name), "opcode-direction")
            ) {
                Self.forEachOpcode(&$0) { $0.direction = direction }
            }
        }
        add("an opcode is dated anew", names, breaks: broken(names, "since-of-opcode")) {
            Self.forEachOpcode(&$0) { $0.since = Self.next.version }
        }
        add(
            "a push is put behind a capability",
            pushes,
            breaks: broken(pushes, "opcode-capability")
        ) {
            Self.forEachOpcode(&$0) { if $0.push != nil { $0.capability = "lz4-large" } }
        }
        let states = Self.opcodes.flatMap { opcode in
            opcode.states.map { "\(opcode.name) in the state \($0)" }
        }
        add(
            "an opcode is no longer served in a state",
            states,
            breaks: broken(states, "opcode-state-removed")
        ) {
            Self.forEachOpcode(&$0) { $0.states = [] }
        }
        add("an opcode is served in every state", names) { specification in
            let all = specification.states.map(\.name)
            Self.forEachOpcode(&specification) { $0.states = all }
        }
        let later = Self.next.version + 1
        add("an opcode is deprecated", names) {
            Self.forEachOpcode(&$0) { $0.deprecated = Self.deprecation(until: later) }
        }
        for (what, sunset, rules) in [
            ("an opcode is removed at its sunset", Self.next.version, []),
            ("an opcode is removed before its sunset", later, ["opcode-removed"]),
        ] as [(String, Int, [String])] {
            var release = Self.old
            Self.forEachOpcode(&release) {
                $0.deprecated = Self.deprecation(until: sunset)
                $0.edges = []
            }
            add(
                what,
                names,
                breaks: rules.flatMap { broken(names, $0) },
                release: release
            ) {
                for index in $0.families.indices { $0.families[index].opcodes = [] }
            }
        }
        var release = Self.old
        Self.forEachOpcode(&release) { $0.deprecated = Self.deprecation(until: later) }
        add(
            "the sunset of an opcode comes earlier",
            names,
            breaks: broken(names, "opcode-sunset"),
            release: release
        ) {
            Self.forEachOpcode(&$0) { $0.deprecated?.sunset -= 1 }
        }
        let effects = Self.opcodes.flatMap { opcode in
            opcode.effects.map { "\(opcode.name): push \($0.push)" }
        }
        add("an effect is removed", effects, breaks: broken(effects, "effect-removed")) {
            Self.forEachOpcode(&$0) { $0.effects = [] }
        }
        for (what, rule, change) in [
            ("an effect reaches others", "effect-to", Self.narrowEffect),
            ("an effect comes at another time", "effect-when", Self.delayEffect),
        ] {
            for reworded in [false, true] {
                add(
                    reworded ? "\(what), by words that a note answers for" : what,
                    effects,
                    breaks: reworded ? [] : broken(effects, rule),
                    reworded: reworded ? Set(names) : []
                ) {
                    Self.forEachOpcode(&$0) {
                        for index in $0.effects.indices { change(&$0.effects[index]) }
                    }
                }
            }
        }
        for kind in OpcodeEntry.Kind.allCases {
            let changed = Self.opcodes.filter { $0.kind != nil && $0.kind != kind }
            add(
                "a request becomes a \(kind.rawValue)",
                changed.map(\.name),
                breaks: broken(
                    changed.filter { $0.kind == .command }.map(\.name),
                    "opcode-kind"
                )
            ) {
                Self.forEachOpcode(&$0) { if $0.kind != nil { $0.kind = kind } }
            }
        }
        add("an effect is added", names) {
            Self.forEachOpcode(&$0) {
                $0.effects.append(.init(push: "NOTIF_PRESENCE", to: "nobody", when: "never"))
            }
        }
        addIdempotency()
    }

    @Sendable private static func narrowEffect(_ effect: inout OpcodeEntry.Effect) {
        effect.to = "the caller"
    }

    @Sendable private static func delayEffect(_ effect: inout OpcodeEntry.Effect) {
        effect.when += " and at night"
    }

    @Sendable private static func renameKnown(_ known: inout Specification.KnownOpcode) {
        known.name += "_RENAMED"
    }

    @Sendable private static func turnKnown(_ known: inout Specification.KnownOpcode) {
        known.direction = known.direction == .both ? .clientToServer : .both
    }

    private mutating func addIdempotency() {
        let order: [OpcodeEntry.Idempotency] = [.unsafe, .keyed, .idempotent, .safe]
        for (rank, idempotency) in order.enumerated() {
            func names(_ belongs: (Int) -> Bool) -> [String] {
                Self.opcodes.filter { opcode in
                    opcode.idempotency.flatMap(order.firstIndex).map(belongs) ?? false
                }.map(\.name)
            }
            add(
                "a request becomes \(idempotency)",
                names { $0 != rank },
                breaks: broken(names { $0 > rank }, "opcode-retries")
            ) {
                Self.forEachOpcode(&$0) {
                    if $0.idempotency != nil { $0.idempotency = idempotency }
                }
            }
        }
        let keyed = Self.opcodes.filter { $0.key != nil }.map(\.name)
        add("a request gets another key", keyed, breaks: broken(keyed, "opcode-key")) {
            Self.forEachOpcode(&$0) { if $0.key != nil { $0.key = "message.text" } }
        }
    }

    mutating func addNewOpcodes() {
        func new(
            _ what: String,
            like model: String,
            _ number: Int,
            _ name: String,
            since: Int = Self.next.version,
            capability: String? = nil,
            breaks rules: String...
        ) {
            add(what, [name], breaks: rules.map { Broken(title: name, rule: $0) }) {
                guard var opcode = $0.opcode(named: model) else { return }
                opcode.number = number
                opcode.name = name
                opcode.since = since
                opcode.capability = capability
                opcode.edges = []
                if capability == "added" {
                    var entry = $0.capabilities[0]
                    entry.name = "added"
                    entry.since = Self.next.version
                    $0.capabilities.append(entry)
                }
                $0.families[0].opcodes.append(opcode)
                for family in $0.families.indices {
                    $0.families[family].known.removeAll { $0.number == number }
                }
            }
        }
        new("an opcode of our own is added", like: "PING", 1279, "ADDED")
        new("a known opcode is served", like: "PING", 63, "CHAT_CREATE")
        new(
            "a known number is served under another name",
            like: "PING",
            63,
            "ADDED",
            breaks: "opcode-number"
        )
        new(
            "a known number is served in another direction",
            like: "NOTIF_CHAT",
            63,
            "CHAT_CREATE",
            capability: "added",
            breaks: "opcode-number"
        )
        new("a number of the wild is taken", like: "PING", 500, "ADDED", breaks: "opcode-number")
        new("a push is added", like: "NOTIF_CHAT", 1279, "ADDED", breaks: "push-added")
        new(
            "a push behind a capability is added",
            like: "NOTIF_CHAT",
            1279,
            "ADDED",
            capability: "added"
        )
        new(
            "a push behind a capability of old is added",
            like: "NOTIF_CHAT",
            1279,
            "ADDED",
            capability: "lz4-large",
            breaks: "push-added"
        )
        new(
            "an opcode is added and dated back",
            like: "PING",
            1279,
            "ADDED",
            since: Self.old.version,
            breaks: "since-of-added-opcode"
        )
        let known = Self.old.families.flatMap(\.known).map {
            "known opcode \($0.number) \($0.name)"
        }
        add("a known number is removed", known, breaks: broken(known, "known-removed")) {
            for index in $0.families.indices { $0.families[index].known = [] }
        }
        // The title contains the old name. The change breaks a promise that was made under this
        // name.
        for (what, rule, change) in [
            ("a known number gets another name", "known-renamed", Self.renameKnown),
            ("a known number gets another direction", "known-direction", Self.turnKnown),
        ] {
            add(what, known, breaks: broken(known, rule)) {
                for family in $0.families.indices {
                    for index in $0.families[family].known.indices {
                        change(&$0.families[family].known[index])
                    }
                }
            }
        }
        let ranges = Self.old.idRanges.map { "range \($0.name)" }
        for (what, rule, change) in [
            ("a range of numbers begins earlier", "range-from", (-1, 0)),
            ("a range of numbers ends later", "range-through", (0, 1)),
        ] {
            add(what, ranges, breaks: broken(ranges, rule)) {
                for index in $0.idRanges.indices {
                    $0.idRanges[index].from += change.0
                    $0.idRanges[index].through += change.1
                }
            }
        }
        add("a range of numbers is removed", ranges, breaks: broken(ranges, "range-removed")) {
            $0.idRanges = []
        }
        add(
            "a number is taken by another range of our name",
            ["ADDED"],
            breaks: [Broken(title: "ADDED", rule: "opcode-number")]
        ) {
            $0.idRanges.insert(.init(name: "tambour", from: 600, through: 700), at: 0)
            guard var opcode = $0.opcode(named: "PING") else { return }
            opcode.number = 600
            opcode.name = "ADDED"
            opcode.since = Self.next.version
            opcode.edges = []
            $0.families[0].opcodes.append(opcode)
        }
    }

    // MARK: Names and versions

    mutating func addNames() {
        let old = Self.old
        let versions = old.acceptedVersions.map { "header version \($0)" }
        add(
            "a header version is removed",
            versions,
            breaks: broken(versions, "version-removed")
        ) {
            $0.acceptedVersions = []
        }
        add("a header version is added", ["header version 12"]) { $0.acceptedVersions.append(12) }
        let answers = ["header version of answers"]
        add("answers get another version", answers, breaks: broken(answers, "answer-version")) {
            $0.writtenVersion += 1
        }
        let states = old.states.map { "state \($0.name)" }
        add("a state is removed", states, breaks: broken(states, "state-removed")) {
            $0.states = []
        }
        let capabilities = old.capabilities.map { "capability \($0.name)" }
        add(
            "a capability is removed",
            capabilities,
            breaks: broken(capabilities, "capability-removed")
        ) {
            $0.capabilities = []
        }
        let features = old.features.map { "feature \($0.name)" }
        add("a feature is removed", features, breaks: broken(features, "feature-removed")) {
            $0.features = []
        }
        let behind = old.features.map(\.name)
        for (what, opcodes) in [
            ("a feature is put over other opcodes", ["CHAT_INFO"]),
            (
                "a feature is put over one more opcode",
                old.features.flatMap(\.opcodes) + ["CHAT_INFO"]
            ),
        ] {
            add(what, behind, breaks: broken(features, "feature-takes-served")) {
                for index in $0.features.indices { $0.features[index].opcodes = opcodes }
            }
        }
        add("a feature is put over a new opcode, or leaves one", behind) {
            for index in $0.features.indices {
                $0.features[index].opcodes = index % 2 == 0 ? ["ADDED"] : []
            }
            guard var opcode = $0.opcode(named: "CHAT_INFO") else { return }
            opcode.number = 1279
            opcode.name = "ADDED"
            opcode.since = Self.next.version
            opcode.edges = []
            $0.families[0].opcodes.append(opcode)
        }
        addDates("state", states) {
            $0.states.append($1)
        } change: {
            for index in $0.states.indices { $0.states[index].since = $1 }
        }
        addDates("capability", capabilities) {
            $0.capabilities.append($1)
        } change: {
            for index in $0.capabilities.indices { $0.capabilities[index].since = $1 }
        }
        addDates("feature", features) {
            $0.features.append(.init(documented: $1, opcodes: []))
        } change: {
            for index in $0.features.indices { $0.features[index].documented.since = $1 }
        }
    }

    /// Adds entries of a kind, adds entries with a wrong date, and changes the dates of entries.
    private mutating func addDates(
        _ kind: String,
        _ titles: [String],
        append: @escaping @Sendable (inout Specification, Specification.Documented) -> Void,
        change: @escaping @Sendable (inout Specification, Int) -> Void
    ) {
        add("a \(kind) is dated anew", titles, breaks: broken(titles, "since-of-\(kind)")) {
            change(&$0, Self.next.version)
        }
        let added = ["\(kind) added"]
        for (what, since, rules) in [
            ("a \(kind) is added", Self.next.version, []),
            (
                "a \(kind) is added and dated back", Self.old.version,
                ["since-of-added-\(kind)"]
            ),
        ] as [(String, Int, [String])] {
            add(what, added, breaks: rules.flatMap { broken(added, $0) }) {
                var entry = $0.states[0]
                entry.name = "added"
                entry.since = since
                append(&$0, entry)
            }
        }
    }

    static func deprecation(until sunset: Int) -> Deprecation {
        Deprecation(since: old.version, replacement: "another", sunset: sunset)
    }

    // MARK: Requirements

    /// Changes every requirement. In a chapter, it changes the text. In an edge of an opcode, it
    /// changes the consequence.
    private static func forEachRequirement(
        _ specification: inout Specification,
        _ change: (inout String, inout Requirement.Level) -> Void
    ) {
        for chapter in specification.chapters.indices {
            for index in specification.chapters[chapter].requirements.indices {
                let path = \Specification.chapters[chapter].requirements[index]
                var requirement = specification[keyPath: path]
                change(&requirement.text, &requirement.level)
                specification[keyPath: path] = requirement
            }
        }
        forEachOpcode(&specification) {
            for index in $0.edges.indices {
                var edge = $0.edges[index]
                change(&edge.then, &edge.level)
                $0.edges[index] = edge
            }
        }
    }

    mutating func addRequirements() {
        let all = Self.old.requirements.map { "requirement \($0.id)" }
        add("a requirement is removed", all, breaks: broken(all, "requirement-removed")) {
            for index in $0.chapters.indices { $0.chapters[index].requirements = [] }
            Self.forEachOpcode(&$0) { $0.edges = [] }
        }
        add(
            "the id of a requirement is used again",
            all,
            breaks: broken(all, "requirement-reworded")
        ) { specification in
            for chapter in specification.chapters.indices {
                for index in specification.chapters[chapter].requirements.indices {
                    specification.chapters[chapter].requirements[index].text =
                        "A fence MUST be painted white before anybody may lean on it."
                }
            }
            Self.forEachOpcode(&specification) {
                for index in $0.edges.indices {
                    $0.edges[index].given = "a fence"
                    $0.edges[index].then = "it MUST be painted white before anybody leans on it."
                }
            }
        }
        addRewordings(all)
        add("a requirement binds otherwise", all, breaks: broken(all, "requirement-level")) {
            Self.forEachRequirement(&$0) { _, level in level = level == .must ? .should : .must }
        }
        for (what, text, rules) in [
            ("a requirement is added", "A PING MUST be answered within a second.", []),
            (
                "a requirement on an answer to clients is added",
                "The reply to the client MUST name the chat, and a client that waits MUST be told.",
                []
            ),
            (
                "a requirement on clients is added", "Clients MUST send PING every second.",
                ["requirement-on-clients"]
            ),
            (
                "a requirement on senders is added",
                "To be heard, senders MUST first send opcode 71; what comes without it MUST be refused.",
                ["requirement-on-clients"]
            ),
            (
                "a requirement on clients is added as a boundary case",
                "Given a client that was closed: it MUST wait a second.", ["requirement-on-clients"]
            ),
            (
                "a requirement on a client in a state is added",
                "In the state connected the client MUST be patient.", ["requirement-on-clients"]
            ),
        ] as [(String, String, [String])] {
            add(
                what,
                ["SES-99"],
                breaks: rules.map { Broken(title: "requirement SES-99", rule: $0) }
            ) {
                var requirement = $0.chapters[0].requirements[0]
                requirement.id = "SES-99"
                requirement.text = text
                $0.chapters[0].requirements.append(requirement)
            }
        }
    }

    /// Adds trials that reformat requirements without a change of words, and trials that change
    /// words, with and without a note.
    private mutating func addRewordings(_ all: [String]) {
        add("a requirement is set otherwise, in the same words", all) {
            Self.forEachRequirement(&$0) { text, _ in
                text =
                    text.replacingOccurrences(of: " ", with: "  ")
                    .replacingOccurrences(of: ", ", with: "; ")
                    .replacingOccurrences(of: "MUST", with: "**MUST**")
            }
        }
        let ids = Set(Self.old.requirements.map(\.id))
        for (what, reworded) in [
            ("a requirement gets a word", []),
            ("a requirement gets a word that a note answers for", ids),
        ] as [(String, Set<String>)] {
            add(
                what,
                all,
                breaks: reworded.isEmpty ? broken(all, "requirement-reworded") : [],
                reworded: reworded
            ) {
                Self.forEachRequirement(&$0) { text, _ in text += " Always." }
            }
        }
        for (old, new) in [
            ("MUST ", "MUST NOT "), ("strictly", "hardly"), (" with ", " without "),
            ("proto.opcode", "proto.state"), ("(", ""), ("1", "2"),
        ] {
            let changed = Self.old.requirements.filter { requirement in
                let isEdge = if case .opcode = requirement.place { true } else { false }
                // The trial changes only the consequence of an edge. So do not search the condition
                // in front of it.
                let text =
                    isEdge
                    ? requirement.text[
                        (requirement.text.firstIndex(of: ":") ?? requirement.text.startIndex)...
                    ]
                    : requirement.text[...]
                return text.contains(old)
            }.map { "requirement \($0.id)" }
            add(
                "a requirement says \"\(new)\" for \"\(old)\"",
                changed,
                breaks: broken(changed, "requirement-reworded")
            ) {
                Self.forEachRequirement(&$0) { text, _ in
                    text = text.replacingOccurrences(of: old, with: new)
                }
            }
        }
    }
}
