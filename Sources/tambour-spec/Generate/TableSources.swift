/// Generates `Opcode`, `OpInfo` and the table of all known numbers.
struct OpcodesSource {
    let specification: Specification

    func text() -> String {
        var source = SourceText(from: "protocol-spec/opcodes/")
        let served = specification.families.flatMap(\.opcodes).sorted { $0.number < $1.number }
        let known = specification.families.flatMap(\.known).sorted { $0.number < $1.number }

        source.doc("The number that says what a packet is about.")
        source.block(
            "package struct Opcode: RawRepresentable, Hashable, Sendable, CustomStringConvertible"
        ) {
            source in
            source.line("package let rawValue: UInt16")
            source.line()
            source.line("package init(rawValue: UInt16) { self.rawValue = rawValue }")
            source.line()
            for opcode in served {
                source.doc(firstSentence(opcode.doc))
                source.line(
                    "package static let \(Names.escaped(Names.camel(fromUpper: opcode.name))) = Opcode(rawValue: \(opcode.number))"
                )
            }
            source.line()
            source.doc("What the table says about it, nil for an unknown number.")
            source.block("package var info: OpInfo?") { source in
                source.line("let index = Int(rawValue)")
                source.line("return index < OpInfo.table.count ? OpInfo.table[index] : nil")
            }
            source.line()
            source.doc("Its name as in `MSG_SEND`, nil for an unknown number.")
            source.line("package var name: String? { info?.name }")
            source.line()
            source.line("package var description: String { name ?? \"opcode \\(rawValue)\" }")
        }
        source.line()
        writeOpInfo(served: served, known: known, to: &source)
        return source.text
    }

    private func writeOpInfo(
        served: [OpcodeEntry],
        known: [Specification.KnownOpcode],
        to source: inout SourceText
    ) {
        source.doc("What the specification says about one opcode.")
        source.block("package struct OpInfo: Sendable") { source in
            source.doc("Who sends it first.")
            source.line(
                "package enum Direction: Sendable { case clientToServer, serverToClient, both }"
            )
            source.doc(
                "Where its handler runs: on the session itself, on a reader (LOGIN, with nothing beside it, and queries), or in the engine's transaction."
            )
            source.line("package enum Kind: Sendable { case session, login, query, command }")
            source.doc("What sending it twice does.")
            source.line(
                "package enum Idempotency: Sendable { case safe, idempotent, keyed, unsafe }"
            )
            source.doc("States of a connection.")
            source.block("package struct States: OptionSet, Sendable") { source in
                source.line("package let rawValue: UInt8")
                source.line("package init(rawValue: UInt8) { self.rawValue = rawValue }")
                for (index, state) in specification.states.enumerated() {
                    source.doc(state.doc)
                    source.line(
                        "package static let \(state.name) = States(rawValue: \(1 << index))"
                    )
                }
            }
            source.line()
            source.line("package let opcode: Opcode")
            source.doc("As in `MSG_SEND`.")
            source.line("package let name: String")
            source.line("package let direction: Direction")
            source.doc("States a request is legal in; empty for pushes and for what is not served.")
            source.line("package let states: States")
            source.doc("Nil for pushes and for what is not served.")
            source.line("package let kind: Kind?")
            source.doc("Nil for pushes and for what is not served.")
            source.line("package let idempotency: Idempotency?")
            source.doc("What a request costs. Nil for pushes and for what is not served.")
            source.line("package let cost: RequestCost?")
            source.doc("What the opcode may answer beside `RequestError.Code.common`.")
            source.line("package let errors: [RequestError.Code]")
            source.doc("The feature without which it answers `proto.opcode`; empty for most.")
            source.line("package let feature: Features")
            source.doc(
                "Whether a request is answered; known numbers that are not answer `proto.opcode`."
            )
            source.line("package let isServed: Bool")
            source.doc(
                "The dialects in which the number means something else, and answers `proto.opcode`."
            )
            source.line("package let movedIn: Capabilities")
            source.line()
            source.doc("By number. Numbers nobody has seen are nil.")
            source.block("package static let table: [OpInfo?] =", "}()") { source in
                let last = max(served.last?.number ?? 0, known.last?.number ?? 0)
                source.line("var table = [OpInfo?](repeating: nil, count: \(last + 1))")
                source.block(
                    "func served(_ number: Int, _ name: String, _ direction: Direction, _ states: States, _ kind: Kind?, _ idempotency: Idempotency?, _ cost: RequestCost?, _ errors: [RequestError.Code], _ feature: Features = [], movedIn: Capabilities = [])"
                ) { source in
                    source.line(
                        "table[number] = OpInfo(opcode: Opcode(rawValue: UInt16(number)), name: name, direction: direction, states: states, kind: kind, idempotency: idempotency, cost: cost, errors: errors, feature: feature, isServed: kind != nil, movedIn: movedIn)"
                    )
                }
                source.block(
                    "func known(_ number: Int, _ name: String, _ direction: Direction, movedIn: Capabilities = [])"
                ) { source in
                    source.line(
                        "served(number, name, direction, [], nil, nil, nil, [], movedIn: movedIn)"
                    )
                }
                for opcode in served {
                    let states = opcode.states.map { ".\($0)" }.joined(separator: ", ")
                    let errors = opcode.errors.map { code in
                        ".\(specification.errors.first { $0.code == code }?.swiftName ?? code)"
                    }.joined(separator: ", ")
                    let kind = opcode.kind.map { ".\($0.rawValue)" } ?? "nil"
                    let idempotency = opcode.idempotency.map { ".\($0.rawValue)" } ?? "nil"
                    let cost = opcode.cost.map(CostsSource.argument) ?? "nil"
                    let feature = specification.features.first { $0.opcodes.contains(opcode.name) }
                        .map { ", .\(Names.camel(fromSeparated: $0.name))" }
                    source.line(
                        "served(\(opcode.number), \(literal(opcode.name)), .\(opcode.direction.rawValue), [\(states)], \(kind), \(idempotency), \(cost), [\(errors)]\(feature ?? "")\(movedIn(opcode.number)))"
                    )
                }
                for opcode in known {
                    source.line(
                        "known(\(opcode.number), \(literal(opcode.name)), .\(opcode.direction.rawValue)\(movedIn(opcode.number)))"
                    )
                }
                source.line("return table")
            }
        }
    }

    /// Returns the argument for the dialects in which the number means something else.
    private func movedIn(_ number: Int) -> String {
        let dialects = specification.dialects.filter { $0.movedOpcodes.contains(number) }
        return dialects.isEmpty ? "" : ", movedIn: \(swiftSet(dialects.map(\.name)))"
    }

    private func firstSentence(_ doc: String) -> String {
        guard let end = doc.firstRange(of: ". ") else { return doc }
        return String(doc[..<end.lowerBound]) + "."
    }
}

/// Generates `ClientRequest`: every request from a client, decoded, in an enumeration for each
/// kind.
struct ClientRequestSource {
    let specification: Specification

    /// The kinds with an enumeration of their own, and its documentation.
    private static let groups: [(kind: OpcodeEntry.Kind, type: String, doc: String)] = [
        (.session, "SessionRequest", "A request that the session answers by itself."),
        (.query, "QueryRequest", "A request that reads a snapshot."),
        (.command, "CommandRequest", "A request that runs in the engine's transaction."),
    ]

    func text() -> String {
        var source = SourceText(from: "protocol-spec/opcodes/")
        let requests = specification.families.flatMap(\.opcodes).filter { $0.request != nil }
            .sorted { $0.number < $1.number }

        source.doc("A decoded request, by what it runs on.")
        source.block("package enum ClientRequest: Sendable") { source in
            for opcode in requests where opcode.kind == .login {
                source.line("indirect case \(name(opcode))(\(opcode.swiftStem)Request)")
            }
            for group in Self.groups {
                source.line("case \(group.kind.rawValue)(\(group.type))")
            }
            source.line()
            source.doc("Decodes the payload of a request; nil when the opcode is not served.")
            source.doc("- Throws: `PayloadError` naming the field that is wrong.")
            source.block(
                "package static func decode(_ opcode: Opcode, _ payload: [UInt8], limits: Limits) throws(PayloadError) -> ClientRequest?"
            ) { source in
                source.block("switch opcode") { source in
                    for opcode in requests {
                        source.line("case .\(name(opcode)): \(decoded(opcode))")
                    }
                    source.line("default: nil")
                }
            }
            source.line()
            source.doc("The opcode it travels under.")
            source.block("package var opcode: Opcode") { source in
                source.block("switch self") { source in
                    for opcode in requests where opcode.kind == .login {
                        source.line("case .\(name(opcode)): .\(name(opcode))")
                    }
                    for group in Self.groups {
                        source.line("case .\(group.kind.rawValue)(let request): request.opcode")
                    }
                }
            }
        }
        for group in Self.groups {
            let requests = requests.filter { $0.kind == group.kind }
            source.line()
            source.doc("\(group.doc) A switch over it without a default cannot forget an opcode.")
            source.doc(
                "Indirect: it is handed from thread to thread, and copying it must not copy its fields."
            )
            source.block("package indirect enum \(group.type): Sendable") { source in
                for opcode in requests {
                    source.line("case \(name(opcode))(\(opcode.swiftStem)Request)")
                }
                source.line()
                source.doc("The opcode it travels under.")
                source.block("package var opcode: Opcode") { source in
                    source.block("switch self") { source in
                        for opcode in requests {
                            source.line("case .\(name(opcode)): .\(name(opcode))")
                        }
                    }
                }
            }
        }
        return source.text
    }

    private func name(_ opcode: OpcodeEntry) -> String { Names.camel(fromUpper: opcode.name) }

    /// Returns the expression that decodes a payload into a request, inside the case of its kind.
    private func decoded(_ opcode: OpcodeEntry) -> String {
        let value = ".\(name(opcode))(try .decode(payload, limits: limits))"
        let group = Self.groups.first { $0.kind == opcode.kind }
        return group.map { ".\($0.kind.rawValue)(\(value))" } ?? value
    }
}

/// Generates `Push`: every push from the server.
struct PushSource {
    let specification: Specification

    func text() -> String {
        var source = SourceText(from: "protocol-spec/opcodes/")
        write(to: &source)
        return source.text
    }

    func write(to source: inout SourceText) {
        let pushes = specification.families.flatMap(\.opcodes).sorted { $0.number < $1.number }
            .compactMap { opcode in
                opcode.push.map {
                    (
                        name: Names.camel(fromUpper: opcode.name), type: $0,
                        needs: [opcode.capability].compactMap(\.self)
                    )
                }
            }
        let projection = Projection(specification: specification)

        source.doc("A push, typed until somebody is to get it: it is encoded once, and only then.")
        source.block("package indirect enum Push: WirePush") { source in
            for push in pushes { source.line("case \(push.name)(\(push.type.name))") }
            source.line()
            source.doc("The opcode it travels under.")
            source.block("package var opcode: Opcode") { source in
                source.block("switch self") { source in
                    for push in pushes { source.line("case .\(push.name): .\(push.name)") }
                }
            }
            source.line()
            write("needs", pushes.map { ($0.name, $0.needs) }, to: &source)
            source.line()
            write("gates", pushes.map { ($0.name, projection.gates(of: $0.type)) }, to: &source)
            source.line()
            source.block(
                "package func withEncoded<R>(for capabilities: Capabilities, _ body: (UnsafeRawBufferPointer) -> R) -> R"
            ) { source in
                source.block("switch self") { source in
                    for push in pushes {
                        source.line(
                            "case .\(push.name)(let push): push.withEncoded(for: capabilities, body)"
                        )
                    }
                }
            }
        }
    }

    /// Generates a property that is a set of capabilities, empty for most pushes.
    private func write(
        _ property: String,
        _ sets: [(name: String, capabilities: [String])],
        to source: inout SourceText
    ) {
        let sets = sets.filter { !$0.capabilities.isEmpty }
        guard !sets.isEmpty else {
            return source.line("package var \(property): Capabilities { [] }")
        }
        source.block("package var \(property): Capabilities") { source in
            source.block("switch self") { source in
                for set in sets { source.line("case .\(set.name): \(swiftSet(set.capabilities))") }
                source.line("default: []")
            }
        }
    }
}

/// Generates `RequestError` and its codes.
struct ErrorsSource {
    let specification: Specification

    func text() -> String {
        var source = SourceText(from: "protocol-spec/errors.yaml")
        source.doc("A refusal as it is answered: a code machines read and a message people read.")
        source.block(
            "package struct RequestError: Error, Hashable, Sendable, CustomStringConvertible"
        ) { source in
            source.line("package var code: Code")
            source.doc("English; sometimes read by machines, see `Code.loginToken`.")
            source.line("package var message: String")
            source.doc(
                "In how many milliseconds the same request may succeed; nil when nobody knows."
            )
            source.line("package var retryAfterMs: Int64?")
            source.line()
            source.block("package init(code: Code, message: String, retryAfterMs: Int64? = nil)") {
                source in
                source.line("self.code = code")
                source.line("self.message = message")
                source.line("self.retryAfterMs = retryAfterMs")
            }
            source.line()
            source.line("package var description: String { \"\\(code.rawValue): \\(message)\" }")
            source.line()
            source.doc("What the peer does next.")
            source.line("package enum Class: Sendable { case soft, hard }")
            source.doc("When the same request may be sent again.")
            source.line("package enum Retry: Sendable { case never, later, afterLogin, refresh }")
            source.line()
            let languages = Specification.ErrorCode.Texts.languages
            source.doc("A language that people are told in why something was refused.")
            source.line(
                "package enum Language: String, Sendable, CaseIterable { case \(languages.joined(separator: ", ")) }"
            )
            source.line()
            source.doc("Every code there is. A code is never reused.")
            source.block("package enum Code: String, Hashable, Sendable, CaseIterable") { source in
                for error in specification.errors {
                    source.doc(error.when)
                    source.line("case \(Names.escaped(error.swiftName)) = \(literal(error.code))")
                }
                source.line()
                let common = specification.errors.filter(\.isCommon).map { ".\($0.swiftName)" }
                source.doc("What any opcode may answer.")
                source.line(
                    "package static let common: [Code] = [\(common.joined(separator: ", "))]"
                )
                source.line()
                source.doc(
                    "Soft: answered, the connection carries on. Hard: answered if possible, then closed."
                )
                source.block("package var errorClass: Class") { source in
                    let hard = specification.errors.filter { $0.errorClass == .hard }.map {
                        ".\($0.swiftName)"
                    }
                    source.block("switch self") { source in
                        if !hard.isEmpty {
                            source.line("case \(hard.joined(separator: ", ")): .hard")
                        }
                        source.line("default: .soft")
                    }
                }
                source.line()
                source.doc("When the same request may be sent again.")
                source.block("package var retry: Retry") { source in
                    source.block("switch self") { source in
                        for retry in Specification.ErrorCode.Retry.allCases {
                            let codes = specification.errors.filter { $0.retry == retry }.map {
                                ".\($0.swiftName)"
                            }
                            let name = Names.camel(fromSeparated: retry.rawValue)
                            if !codes.isEmpty {
                                source.line("case \(codes.joined(separator: ", ")): .\(name)")
                            }
                        }
                    }
                }
            }
        }
        source.line()
        source.block("extension RequestError.Code") { source in
            words(
                "text",
                "What people read; nil where nothing was written for them.",
                \.texts,
                &source
            )
            source.line()
            words(
                "title",
                "What a dialog about it is headed; nil where none is worth it.",
                \.title,
                &source
            )
        }
        source.line()
        source.block("extension RequestError") { source in
            for error in specification.errors {
                let name = Names.escaped(error.swiftName)
                source.doc(error.when)
                if let message = error.message {
                    source.line(
                        "package static let \(name) = RequestError(code: .\(error.swiftName), message: \(literal(message)))"
                    )
                }
                source.block("package static func \(name)(_ message: String) -> RequestError") {
                    source in
                    source.line("RequestError(code: .\(error.swiftName), message: message)")
                }
            }
        }
        return source.text
    }
}

extension ErrorsSource {
    private func words(
        _ name: String,
        _ doc: String,
        _ texts: KeyPath<Specification.ErrorCode, Specification.ErrorCode.Texts?>,
        _ source: inout SourceText
    ) {
        source.doc(doc)
        source.block(
            "package func \(name)(in language: RequestError.Language) -> String?"
        ) { source in
            source.block("switch (self, language)") { source in
                for error in specification.errors {
                    guard let words = error[keyPath: texts]?.words else { continue }
                    for language in Specification.ErrorCode.Texts.languages {
                        let text = literal(words[language] ?? "")
                        source.line("case (.\(error.swiftName), .\(language)): \(text)")
                    }
                }
                source.line("default: nil")
            }
        }
    }
}

/// Generates `Capabilities` and `Features`: sets of names.
struct CapabilitiesSource {
    /// The bit of the first dialect. The bits above the dialects are free for tests.
    static let firstDialect = 48
    static let mostDialects = 8

    let specification: Specification

    func text() -> String {
        var source = SourceText(from: "protocol-spec/protocol.yaml")
        write(
            "Capabilities",
            "What a client build can read, as it said in SESSION_INIT.",
            specification.capabilities,
            &source
        )
        source.line()
        source.block("extension Capabilities") { source in
            for (index, dialect) in specification.dialects.enumerated() {
                source.doc(dialect.documented.doc)
                source.line(
                    "package static let \(Names.camel(fromSeparated: dialect.name)) = Capabilities(rawValue: 1 << \(Self.firstDialect + index))"
                )
            }
            source.doc("Every dialect, with those that it builds on.")
            let table = specification.dialects.map { dialect in
                "(\(literal(dialect.name)), \(swiftSet(specification.dialects(in: dialect.name).map(\.name))))"
            }
            source.line(
                "package static let dialectTable: [(name: String, value: Capabilities)] = [\(table.joined(separator: ", "))]"
            )
            source.doc("The bits of all dialects, also of those of later versions.")
            source.line(
                "package static let dialects = Capabilities(rawValue: \((1 << Self.mostDialects) - 1) << \(Self.firstDialect))"
            )
        }
        source.line()
        write(
            "Features",
            "What a client build has code for, as it said in SESSION_INIT.",
            specification.features.map(\.documented),
            &source
        )
        return source.text
    }

    private func write(
        _ name: String,
        _ doc: String,
        _ entries: [Specification.Documented],
        _ source: inout SourceText
    ) {
        source.doc(doc)
        source.block("package struct \(name): OptionSet, Hashable, Sendable") { source in
            source.line("package let rawValue: UInt64")
            source.line("package init(rawValue: UInt64) { self.rawValue = rawValue }")
            source.line()
            for (index, entry) in entries.enumerated() {
                source.doc(entry.doc)
                source.line(
                    "package static let \(Names.camel(fromSeparated: entry.name)) = \(name)(rawValue: 1 << \(index))"
                )
            }
            if !entries.isEmpty { source.line() }
            source.doc("Every known name and what it stands for.")
            let table = entries.map {
                "(\(literal($0.name)), .\(Names.camel(fromSeparated: $0.name)))"
            }
            source.line(
                "package static let table: [(name: String, value: \(name))] = [\(table.joined(separator: ", "))]"
            )
            source.line()
            source.doc("The known ones among names; unknown names are ignored.")
            source.block("package init(names: [String])") { source in
                source.lines(
                    """
                    var all: \(name) = []
                    for name in names {
                        for entry in Self.table where entry.name == name { all.formUnion(entry.value) }
                    }
                    self = all
                    """
                )
            }
            source.line()
            source.doc("Its names in the order of the specification.")
            source.line(
                "package var names: [String] { Self.table.filter { contains($0.value) }.map(\\.name) }"
            )
        }
    }
}

/// Generates `Limits`: every limit with its value.
struct LimitsSource {
    let specification: Specification

    func text() -> String {
        var source = SourceText(from: "protocol-spec/limits.yaml")
        source.doc("Every limit there is. Immutable; an override makes another one.")
        source.block("package final class Limits: Sendable") { source in
            for limit in specification.limits {
                source.doc("\(literal(limit.value)) \(limit.unit). \(limit.reason)")
                source.line("package let \(limit.name): Int")
            }
            source.line()
            source.doc("The values of the specification.")
            source.line("package static let standard = Limits()")
            source.line()
            source.doc("For what was checked before: nothing is over a limit.")
            source.line("static let unlimited = Limits(unlimited: ())")
            source.line()
            source.block("private init(_ overrides: inout LimitOverrides)") { source in
                for limit in specification.limits {
                    let most = limit.max.map { ", max: \(literal($0))" } ?? ""
                    source.line(
                        "\(limit.name) = overrides.value(of: \(literal(limit.name)), standard: \(literal(limit.value))\(most))"
                    )
                }
            }
            source.line()
            source.block("private convenience init()") { source in
                source.line("var none = LimitOverrides([:])")
                source.line("self.init(&none)")
            }
            source.line()
            source.block("private convenience init(unlimited: Void)") { source in
                source.line("var all = LimitOverrides.unlimited")
                source.line("self.init(&all)")
            }
            source.line()
            source.doc("The values of the specification but for some.")
            source.doc("- Throws: `LimitError` naming what is unknown or out of range.")
            source.block("package convenience init(overrides: [String: Int]) throws(LimitError)") {
                source in
                source.line("var left = LimitOverrides(overrides)")
                source.line("self.init(&left)")
                source.line("try left.finish()")
            }
        }
        return source.text
    }
}
