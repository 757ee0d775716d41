import Foundation

/// Generates Swift from the sample specification, for the tests of `TambourProtocol`. The sample
/// covers features of the generator that the real specification does not use yet.
struct SampleSource {
    private static let folder = "Tests/SampleSpecification"
    private static let path = "\(Generator.tests)/Sample.swift"

    let specification: Specification

    /// Returns the generated file, and the problems of the sample.
    static func file(root: URL) -> (file: (path: String, content: String), problems: [Problem]) {
        var loader = SpecificationLoader(root: root.appending(path: folder))
        let specification = loader.load()
        return ((path, SampleSource(specification: specification).text()), loader.problems)
    }

    private func text() -> String {
        var source = SourceText(
            from: "\(Self.folder)/",
            imports: ["@testable package import TambourProtocol"]
        )
        // The sample's entries extend the tables of the real specification. They use bits and
        // numbers that are free in these tables.
        source.block("extension Capabilities") { source in
            for (index, capability) in specification.capabilities.enumerated() {
                let name = Names.camel(fromSeparated: capability.name)
                source.line(
                    "package static let \(name) = Capabilities(rawValue: 1 << \(63 - index))"
                )
            }
        }
        source.line()
        source.block("extension Opcode") { source in
            for opcode in specification.families.flatMap(\.opcodes) {
                let name = Names.camel(fromUpper: opcode.name)
                source.line("package static let \(name) = Opcode(rawValue: \(opcode.number))")
            }
        }
        source.line()
        let generator = Generator(specification: specification)
        generator.writeTypes(to: &source)
        for family in specification.families {
            source.line()
            generator.writePayloads(of: family, to: &source)
        }
        source.line()
        PushSource(specification: specification).write(to: &source)
        return source.text
    }
}
