/// Generates the switches that call the handler of each request.
///
/// Each family has one handler. The handler has one method for each opcode of the family, with the
/// opcode's name. If a method is missing, the code does not compile.
struct DispatchSource {
    let specification: Specification

    func text() -> String {
        var source = SourceText(from: "protocol-spec/opcodes/", imports: ["import TambourProtocol"])
        source.block("extension Dispatcher") { source in
            write("command", .command, transaction: "tx", to: &source)
            source.line()
            write("query", .query, transaction: "snapshot", to: &source)
        }
        return source.text
    }

    private func write(
        _ what: String,
        _ kind: OpcodeEntry.Kind,
        transaction: String,
        to source: inout SourceText
    ) {
        let type = Names.pascal(fromOpcode: what.uppercased())
        let opcodes = specification.families.flatMap(\.opcodes).filter { $0.kind == kind }
        source.doc("Calls the handler of a \(what).")
        source.block(
            "func handle(_ request: \(type)Request, _ call: \(type)Call) throws -> Answer"
        ) { source in
            source.block("switch request") { source in
                for opcode in opcodes.sorted(by: { $0.number < $1.number }) {
                    let name = Names.camel(fromUpper: opcode.name)
                    let family = Names.camel(fromSeparated: opcode.family)
                    source.line("case .\(name)(let request):")
                    source.line(
                        "    return try answer(\(family).\(name)(request, from: call.sender(), in: call.\(transaction)), to: call)"
                    )
                }
            }
        }
    }
}
