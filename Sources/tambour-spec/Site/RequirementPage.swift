import Foundation

/// The cases of the conformance suite that cover each requirement.
struct ConformanceCases {
    /// The names of the cases for each requirement, in the order of the files.
    private(set) var names: [String: [String]] = [:]

    /// Reads the decorators of the cases: `@case("FRM-03")` above `def test_…`.
    ///
    /// - Parameter folder: The sources of the suite; a missing folder contains no cases.
    init(under folder: URL) {
        let files = FileManager.default.enumerator(atPath: folder.path)
        var paths: [String] = []
        while let path = files?.nextObject() as? String {
            if path.hasSuffix(".py") { paths.append(path) }
        }
        for path in paths.sorted() {
            let text = try? String(contentsOf: folder.appending(path: path), encoding: .utf8)
            read(text ?? "")
        }
    }

    init(source: String) { read(source) }

    private mutating func read(_ source: String) {
        var covered: [String] = []
        for line in source.split(separator: "\n") {
            if line.hasPrefix("@case(") {
                covered += line.matches(of: /"([A-Z]{3}-[0-9]{2})"/).map { String($0.output.1) }
            } else if let match = line.prefixMatch(of: /def (?:test_)?(\w+)/) {
                let name = String(match.output.1).replacing("_", with: "-")
                for id in covered { names[id, default: []].append(name) }
                covered = []
            }
        }
    }
}

/// The page that lists every requirement with its text, its place and its conformance cases.
struct RequirementPage {
    let specification: Specification
    let places: SitePlaces
    let cases: ConformanceCases

    func page() -> SitePage {
        let prose = Prose(places: places, page: "requirements")
        let requirements = specification.requirements.sorted { $0.id < $1.id }
        let covered = requirements.count { cases.names[$0.id] != nil }
        var page = SitePage(
            prose.page,
            title: "Requirements",
            description: "Everything that an implementation can keep or break, by number.",
            boost: 0.5
        )
        page.html(
            """
            <p class="lead">\(requirements.count) sentences that a server keeps or breaks, and the cases of the conformance suite that say which; \
            \(covered) have one. Numbers are never used again.</p>
            """
        )
        var group = ""
        var table = HTMLTable("requirements", ["Number", "Requirement", "Place", "Case"])
        for requirement in requirements {
            if group != requirement.id.prefix(3) {
                group = String(requirement.id.prefix(3))
                table.section(group)
            }
            let cases = cases.names[requirement.id, default: []].map { HTML.code($0) }
            table.row([
                prose.link(requirement.id, to: .requirement(requirement.id)),
                prose.html(requirement.text), place(of: requirement, prose),
                cases.joined(separator: " "),
            ])
        }
        page.html(table.html)
        return page
    }

    private func place(of requirement: Requirement, _ prose: Prose) -> String {
        switch requirement.place {
        case .chapter(let name):
            let title = specification.chapters.first { $0.name == name }?.title ?? name
            return prose.link(HTML.escaped(title), to: .chapter(name))
        case .opcode(let name): return prose.code(name)
        }
    }
}
