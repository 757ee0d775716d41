/// Generates `ClientRequest`, which represents every decoded request from a client. Each kind of
/// request has its own enumeration.
struct ClientRequestSource {
    let specification: Specification

    /// The kinds of requests that have an enumeration, and the name and documentation of the
    /// enumeration.
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

    /// Returns the expression that decodes a payload into a request. If the kind has an
    /// enumeration, wraps the request in the case of this kind.
    private func decoded(_ opcode: OpcodeEntry) -> String {
        let value = ".\(name(opcode))(try .decode(payload, limits: limits))"
        let group = Self.groups.first { $0.kind == opcode.kind }
        return group.map { ".\($0.kind.rawValue)(\(value))" } ?? value
    }
}
