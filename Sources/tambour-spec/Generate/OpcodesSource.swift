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

    /// Returns the argument that lists the dialects in which the number has another meaning; empty
    /// without such dialects.
    private func movedIn(_ number: Int) -> String {
        let dialects = specification.dialects.filter { $0.movedOpcodes.contains(number) }
        return dialects.isEmpty ? "" : ", movedIn: \(swiftSet(dialects.map(\.name)))"
    }

    private func firstSentence(_ doc: String) -> String {
        guard let end = doc.firstRange(of: ". ") else { return doc }
        return String(doc[..<end.lowerBound]) + "."
    }
}
