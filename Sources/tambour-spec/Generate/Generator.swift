/// Generates the committed files from a specification. All paths are relative to the root of the
/// repository.
struct Generator {
    static let sources = "Sources/TambourProtocol/Generated"
    static let tests = "Tests/TambourProtocolTests/Generated"
    /// The file from which the conformance suite reads the whole specification.
    static let bundle = "protocol-spec/conformance/src/tambour_conformance/protocol.json"

    let specification: Specification
    private let inboundTypes: Set<String>

    init(specification: Specification) {
        self.specification = specification
        inboundTypes = specification.inboundTypes
    }

    /// Returns the path and the content of every generated file, sorted by path.
    func files() -> [(path: String, content: String)] {
        var files = [
            (
                "\(Self.sources)/Capabilities.swift",
                CapabilitiesSource(specification: specification).text()
            ),
            (
                "\(Self.sources)/ClientRequest.swift",
                ClientRequestSource(specification: specification).text()
            ),
            (
                "Sources/TambourMessenger/Generated/Dispatch.swift",
                DispatchSource(specification: specification).text()
            ),
            ("\(Self.sources)/Costs.swift", CostsSource(specification: specification).text()),
            ("\(Self.sources)/Errors.swift", ErrorsSource(specification: specification).text()),
            ("Sources/TambourFraming/Generated/Framing.swift", framing()),
            ("\(Self.sources)/Limits.swift", LimitsSource(specification: specification).text()),
            ("\(Self.sources)/Opcodes.swift", OpcodesSource(specification: specification).text()),
            ("\(Self.sources)/Push.swift", PushSource(specification: specification).text()),
        ]
        files += types()
        for family in specification.families where !family.opcodes.isEmpty {
            files.append(
                (
                    "\(Self.sources)/\(Names.pascal(fromOpcode: family.name)).swift",
                    payloads(of: family)
                )
            )
        }
        if !specification.roles.actions.isEmpty {
            files.append(
                ("\(Self.sources)/Roles.swift", RolesSource(roles: specification.roles).text())
            )
        }
        if !specification.entities.isEmpty {
            files.append(
                (
                    "\(Self.sources)/EntityTypes.swift",
                    EntitiesSource(entities: specification.entities).text()
                )
            )
        }
        if !specification.examples.isEmpty {
            files.append(
                (
                    "\(Self.tests)/ExampleVectors.swift",
                    ExampleVectorsSource(specification: specification).text()
                )
            )
        }
        files.append((Self.bundle, ProtocolBundle(specification: specification).text()))
        return files.sorted { $0.0 < $1.0 }
    }

    private func framing() -> String {
        var source = SourceText(from: "protocol-spec/protocol.yaml")
        source.block("extension PacketHeader") { source in
            source.doc("The version of what we send.")
            source.line(
                "package static let writtenVersion: UInt8 = \(specification.writtenVersion)"
            )
            source.line()
            source.doc("Whether packets of a version are read.")
            source.block("package static func reads(version: UInt8) -> Bool") { source in
                let versions = specification.acceptedVersions.map { "version == \($0)" }
                source.line(versions.joined(separator: " || "))
            }
        }
        return source.text
    }

    /// Returns one file for the types of each family, and one for the types without a family.
    private func types() -> [(path: String, content: String)] {
        let families = specification.typeFamilies()
        return ([nil] + specification.families.map(\.name)).compactMap { family in
            let enums = specification.enums.filter { families[$0.name] == family }
            let structs = specification.structs.filter { families[$0.name] == family }
            guard !enums.isEmpty || !structs.isEmpty else { return nil }
            var source = SourceText(from: "protocol-spec/types.yaml")
            writeTypes(enums, structs, to: &source)
            let name = "Types" + (family.map(Names.pascal(fromOpcode:)) ?? "")
            return ("\(Self.sources)/\(name).swift", source.text)
        }
    }

    func writeTypes(to source: inout SourceText) {
        writeTypes(specification.enums, specification.structs, to: &source)
    }

    private func writeTypes(
        _ enums: [EnumType],
        _ structs: [StructType],
        to source: inout SourceText
    ) {
        var isFirst = true
        func separate(_ source: inout SourceText) {
            if !isFirst { source.line() }
            isFirst = false
        }
        for type in enums {
            separate(&source)
            EnumSource(type: type, specification: specification).write(to: &source)
        }
        for type in structs {
            separate(&source)
            write(type, to: &source)
        }
    }

    private func write(_ type: StructType, to source: inout SourceText) {
        StructSource(
            type: type,
            specification: specification,
            isHeldAgainstLimits: type.isHeldAgainstLimits(inboundTypes)
        ).write(to: &source)
    }

    private func payloads(of family: Specification.Family) -> String {
        var source = SourceText(from: "protocol-spec/opcodes/\(family.name).yaml")
        writePayloads(of: family, to: &source)
        return source.text
    }

    func writePayloads(of family: Specification.Family, to source: inout SourceText) {
        var isFirst = true
        for opcode in family.opcodes {
            for type in [opcode.push, opcode.request, opcode.reply].compactMap({ $0 }) {
                if !isFirst { source.line() }
                isFirst = false
                write(type, to: &source)
            }
            if let request = opcode.request, let reply = opcode.reply {
                source.line()
                source.block("extension \(request.name): WireRequest") { source in
                    source.line("package typealias Reply = \(reply.name)")
                    source.line()
                    let name = Names.camel(fromUpper: opcode.name)
                    source.doc("The opcode it travels under.")
                    source.line("package static var opcode: Opcode { .\(name) }")
                }
            }
        }
    }
}
