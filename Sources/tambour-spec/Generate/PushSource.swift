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

    /// Generates a property of `Push` that is a set of capabilities. For most pushes, the set is
    /// empty.
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
