/// Generates a table of the examples for the tests of `TambourProtocol`, and a function that
/// decodes and encodes each type.
struct ExampleVectorsSource {
    let specification: Specification

    func text() -> String {
        var source = SourceText(
            from: "protocol-spec/examples/",
            imports: ["import TambourProtocol", "import Testing"]
        )
        source.lines(
            """
            /// A packet of the specification: bytes that decode and encode to themselves, others
            /// that decode to the same value, and some that are refused.
            struct ExampleVector: Sendable, CustomTestStringConvertible {
                struct Accept: Sendable {
                    let name: String
                    let hex: String
                }

                struct Reject: Sendable {
                    let name: String
                    let hex: String
                    let limits: [String: Int]
                    let error: String
                }

                let name: String
                /// The generated type of the payload.
                let type: String
                let opcode: UInt16
                let command: UInt8
                /// In which dialect the server writes it; empty for none.
                let dialect: Capabilities
                let sequence: UInt16
                let hex: String
                /// The payload without what the dialect changes; nil where it changes nothing.
                let plain: String?
                let accept: [Accept]
                let reject: [Reject]

                var testDescription: String { name }
            }

            """
        )
        source.block("extension ExampleVector") { source in
            source.block("static let all: [ExampleVector] =", "}()") { source in
                source.line("var all: [ExampleVector] = []")
                for file in specification.examples { write(file, to: &source) }
                source.line("return all")
            }
            source.line()
            source.doc("Decodes a payload as a type and encodes it again; nil for an unknown type.")
            source.block(
                "static func recode(_ payload: [UInt8], as type: String, in dialect: Capabilities = [], limits: Limits) throws(PayloadError) -> [UInt8]?"
            ) { source in
                source.block("switch type") { source in
                    for name in typeNames() {
                        source.line(
                            "case \(literal(name)): try \(name).decode(payload, limits: limits).encoded(for: .all.union(dialect))"
                        )
                    }
                    source.line("default: nil")
                }
            }
        }
        return source.text
    }

    private func write(_ file: ExampleFile, to source: inout SourceText) {
        guard let opcode = specification.opcode(named: file.opcode) else { return }
        for example in file.examples {
            guard let type = ExampleCheck.type(of: example, opcode: opcode, in: specification)
            else { continue }
            source.line("all.append(ExampleVector(")
            source.line(
                "    name: \(literal("\(opcode.name) \(example.role.rawValue): \(example.name)")), type: \(literal(type.name)), opcode: \(opcode.number), command: \(example.command), dialect: \(swiftSet(specification.dialects(in: example.dialect ?? "").map(\.name))), sequence: \(example.sequence),"
            )
            source.line("    hex: \(literal(example.hex ?? "")),")
            let plain = example.plain.map { literal(Hex.text(WireEncoder.encode($0))) }
            source.line("    plain: \(plain ?? "nil"),")
            let accepts = example.accepts.map {
                ".init(name: \(literal($0.name)), hex: \(literal($0.hex ?? "")))"
            }
            writeList("accept", accepts, closing: ",", to: &source)
            let rejects = example.rejects.map { reject in
                let limits = reject.limits.sorted { $0.key < $1.key }.map {
                    "\(literal($0.key)): \($0.value)"
                }
                return
                    ".init(name: \(literal(reject.name)), hex: \(literal(reject.hex ?? "")), limits: [\(limits.isEmpty ? ":" : limits.joined(separator: ", "))], error: \(literal(reject.error)))"
            }
            writeList("reject", rejects, closing: "))", to: &source)
        }
    }

    private func writeList(
        _ label: String,
        _ items: [String],
        closing: String,
        to source: inout SourceText
    ) {
        guard !items.isEmpty else {
            source.line("    \(label): []\(closing)")
            return
        }
        source.line("    \(label): [")
        for item in items { source.line("        \(item),") }
        source.line("    ]\(closing)")
    }

    private func typeNames() -> [String] {
        let payloads = specification.families.flatMap(\.opcodes).flatMap {
            [$0.push, $0.request, $0.reply].compactMap { $0?.name }
        }
        return payloads + specification.structs.filter { $0.role == .payload }.map(\.name)
    }
}
