/// Fills in the bytes of examples that contain `hex: auto`.
///
/// Filled bytes are frozen: changing them would change the protocol.
struct ExampleFiller {
    let specification: Specification

    /// Returns the changed files under `protocol-spec/` with their new text.
    func changes(read: (String) throws -> String) throws -> [(file: String, text: String)] {
        var changes: [(String, String)] = []
        for file in specification.examples {
            let hexes = autos(of: file)
            guard !hexes.isEmpty else { continue }
            var lines = try read(file.origin.file).split(
                separator: "\n",
                omittingEmptySubsequences: false
            )
            .map(String.init)
            for (line, hex) in hexes {
                lines[line - 1].replace("hex: auto", with: "hex: \"\(hex)\"", maxReplacements: 1)
            }
            changes.append((file.origin.file, lines.joined(separator: "\n")))
        }
        return changes
    }

    private func autos(of file: ExampleFile) -> [(line: Int, hex: String)] {
        guard let opcode = specification.opcode(named: file.opcode) else { return [] }
        let model = PayloadModel(specification: specification)
        var found: [(Int, String)] = []
        for example in file.examples {
            guard let type = ExampleCheck.type(of: example, opcode: opcode, in: specification)
            else { continue }
            func packet(_ node: WireNode) -> String {
                Hex.text(
                    ExampleCheck.packet(
                        example,
                        opcode: opcode.number,
                        payload: WireEncoder.encode(node)
                    )
                )
            }
            if example.hex == "auto", let value = example.value,
                let canonical = try? model.canonical(example.plain ?? value, as: type)
            {
                let written = example.dialect.map {
                    model.projected(canonical, as: type, in: $0)
                }
                found.append((example.hexLine, packet(written ?? canonical)))
            }
            for accept in example.accepts where accept.hex == "auto" {
                if let wire = accept.wire { found.append((accept.hexLine, packet(wire))) }
            }
            for reject in example.rejects where reject.hex == "auto" {
                if let wire = reject.wire { found.append((reject.hexLine, packet(wire))) }
            }
        }
        return found
    }
}
