/// Generates `Capabilities` and `Features`, which are sets of names.
struct CapabilitiesSource {
    /// The bit of the first dialect. Tests may use the bits above the dialects.
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
