import Foundation

/// Converts the specification to the sources of the reference site: Markdown pages, diagrams, and
/// the navigation for MkDocs.
struct SiteGenerator {
    let specification: Specification
    let cases: ConformanceCases
    let downloads: [Download]
    let releases: [Release]
    private let places: SitePlaces

    /// A file for readers to download.
    struct Download {
        /// The path relative to the root of the site.
        var path: String
        /// A description that may contain names in backticks, as the texts of the specification do.
        /// Empty for files that another page lists.
        var doc: String
        var content: String
    }

    /// The changes of a release.
    struct Release {
        var version: Int
        /// Markdown that begins with a first-level heading.
        var notes: String
    }

    init(
        _ specification: Specification,
        cases: ConformanceCases,
        downloads: [Download] = [],
        releases: [Release] = []
    ) {
        self.specification = specification
        self.cases = cases
        self.downloads = downloads
        self.releases = releases
        places = SitePlaces(specification)
    }

    /// The names of the chapters that come first, in reading order. The remaining chapters follow.
    private static let chapterOrder = ["framing", "payload", "session", "pushes", "evolution"]
    private static let guide = "guide"

    private var chapters: [Chapter] {
        specification.chapters.filter { $0.name != Self.guide }.sorted { first, second in
            let order = Self.chapterOrder
            let ranks = [first, second].map { order.firstIndex(of: $0.name) ?? order.count }
            return (ranks[0], first.title) < (ranks[1], second.title)
        }
    }

    // MARK: Pages

    func pages() -> [SitePage] {
        let tables = TablePages(specification: specification, places: places)
        var pages = [startPage()]
        pages += specification.chapters.map { page(of: $0) }
        pages += [tables.opcodeIndex()]
        for family in specification.families {
            pages.append(FamilyPage(family, places).page())
            pages += family.opcodes.map { OpcodePage($0, in: specification, places).page() }
        }
        pages.append(flowIndex())
        pages += specification.flows.map { FlowPage($0, in: specification, places).page() }
        pages += [tables.types(), tables.errors(), tables.limits()]
        pages += [tables.bounds(), tables.costs()]
        pages += [tables.roles(), tables.entities(), tables.capabilities()]
        let requirements = RequirementPage(
            specification: specification,
            places: places,
            cases: cases
        )
        pages.append(requirements.page())
        pages += releases.map { page(of: $0) }
        pages.append(downloadPage())
        return pages
    }

    private func startPage() -> SitePage {
        let prose = Prose(places: places, page: "index")
        var page = SitePage("index", title: "The Tambour protocol", boost: 2, isAlone: true)
        page.html(
            """
            <p class="lead">What a client and a Tambour server say to each other, byte by byte. Every page is made from the same files as the \
            server, and every example on it is checked against the server's own reader and writer.</p>
            """
        )
        var ways = HTMLTable("ways", ["You want to", "Read"])
        func link(_ title: String, _ page: String) -> String {
            HTML.link(title, to: "\(page).html")
        }
        if specification.chapters.contains(where: { $0.name == Self.guide }) {
            let guide = prose.link("the guide", to: .chapter(Self.guide))
            ways.row(["write a client", "\(guide), then come back for the rest"])
        }
        let titles = chapters.map { prose.link(HTML.escaped($0.title), to: .chapter($0.name)) }
        ways.row(["understand the bytes", titles.joined(separator: ", ")])
        ways.row([
            "look up an opcode", link("all of them", "opcodes") + ", or the search (press S)",
        ])
        ways.row([
            "know what may come back",
            "“What can come back” on the opcode's page, " + link("errors", "errors"),
        ])
        ways.row([
            "know how large things get", link("limits", "limits") + ", " + link("bounds", "bounds"),
        ])
        ways.row(["see several packets in a row", link("conversations", "flows")])
        ways.row([
            "write a server, or judge one",
            link("requirements", "requirements") + " and the conformance suite",
        ])
        ways.row(["generate code", link("downloads", "downloads")])
        page.html(ways.html)

        page.heading("The opcodes by family", anchor: "families")
        var families = HTMLTable("families", ["Family", "What", "Opcodes"])
        for family in specification.families where !family.opcodes.isEmpty {
            families.row([
                HTML.link(family.name, to: "\(family.name).html"), prose.html(family.doc),
                family.opcodes.map { prose.code($0.name) }.joined(separator: " "),
            ])
        }
        page.html(families.html)

        page.heading("How to read the pages", anchor: "reading")
        page.markdown(
            """
            - **Fields** stand in the order in which the server writes them; a reader takes any order. *Required* means that
              absent or nil is refused. *Default* means that absent or nil is that value. *Optional* is neither.
            - **Bytes** are hexadecimal, numbers in a header are big-endian. In a table of bytes the key of a field is pale
              and its value strong; the path beside them leads to the field's description.
            - **Numbers like `FRM-04`** name requirements. MUST and SHOULD are meant as in RFC 2119 and bind the server.
            - **Since** is the release of the protocol that brought something. This is release \(specification.version).
            """
        )
        return page
    }

    private func path(of chapter: Chapter) -> String {
        places.place(of: .chapter(chapter.name)).page
    }

    private func page(of chapter: Chapter) -> SitePage {
        let prose = Prose(places: places, page: path(of: chapter))
        var page = SitePage(prose.page, title: chapter.title)
        page.markdown(prose.markdown(chapter.body))
        return page
    }

    private func flowIndex() -> SitePage {
        let prose = Prose(places: places, page: "flows")
        var page = SitePage(
            prose.page,
            title: "Conversations",
            description: "What follows what: several clients and a server."
        )
        page.html(
            """
            <p class="lead">Single packets do not show what follows what. These do; the conformance suite plays each of them.</p>
            """
        )
        var table = HTMLTable("flows", ["Conversation", "What it shows"])
        for flow in specification.flows {
            table.row([
                prose.link(HTML.escaped(flow.title), to: .flow(flow.name)), prose.html(flow.doc),
            ])
        }
        page.html(table.html)
        return page
    }

    private func page(of release: Release) -> SitePage {
        let prose = Prose(places: places, page: "releases/\(release.version)")
        var page = SitePage(prose.page, title: "Release \(release.version)", boost: 0.5)
        let body = release.notes.drop { $0 != "\n" }
        page.markdown(prose.markdown(String(body)))
        return page
    }

    private func downloadPage() -> SitePage {
        let prose = Prose(places: places, page: "downloads")
        var page = SitePage(
            prose.page,
            title: "Downloads",
            description: "The specification for programs."
        )
        page.html(
            "<p class=\"lead\">The specification for programs, in release \(specification.version).</p>"
        )
        var table = HTMLTable("downloads", ["File", "What it is", "Size"])
        for download in downloads where !download.doc.isEmpty {
            table.row([
                Self.link(to: download.path), prose.html(download.doc),
                "\(download.content.utf8.count.separated) bytes",
            ])
        }
        page.html(table.html)

        page.heading("JSON Schemas", anchor: "schemas")
        page.html(
            """
            <p>One for each payload, draft 2020-12, for those who know a payload as JSON. A schema accepts whatever a reader accepts: ids also \
            as digits, nil for what may be absent, keys nobody knows. A byte string is <code>{"$bytes": "0aff"}</code>.</p>
            """
        )
        var schemas = HTMLTable("schemas", ["Opcode", "Schemas"])
        for opcode in specification.families.flatMap(\.opcodes) {
            schemas.row([prose.code(opcode.name), opcode.schemaLinks(up: "")])
        }
        page.html(schemas.html)
        return page
    }

    private static func link(to file: String) -> String {
        "<a href=\"\(file)\" download>\(HTML.code(file))</a>"
    }

    // MARK: Navigation

    /// Returns the navigation in the format of the MkDocs configuration.
    func navigation() -> String {
        var lines = ["nav:", "  - Start: index.md"]
        if let guide = specification.chapters.first(where: { $0.name == Self.guide }) {
            lines.append("  - Guide: \(path(of: guide)).md")
        }
        lines.append("  - Protocol:")
        for chapter in chapters {
            lines.append("      - \(Self.quoted(chapter.title)): \(path(of: chapter)).md")
        }
        lines += ["  - Opcodes:", "      - All opcodes: opcodes.md"]
        for family in specification.families {
            guard !family.opcodes.isEmpty else {
                lines.append("      - \(family.name): \(family.name).md")
                continue
            }
            lines += ["      - \(family.name):", "          - In short: \(family.name).md"]
            for opcode in family.opcodes {
                let page = places.place(of: .opcode(opcode.name)).page
                lines.append("          - \(opcode.name): \(page).md")
            }
        }
        lines += ["  - Conversations:", "      - All of them: flows.md"]
        for flow in specification.flows {
            lines.append("      - \(Self.quoted(flow.title)): flows/\(flow.name).md")
        }
        lines += [
            "  - Reference:", "      - Types: types.md", "      - Errors: errors.md",
            "      - Limits: limits.md", "      - Bounds: bounds.md", "      - Costs: costs.md",
            "      - Roles: roles.md",
            "      - Entities: entity-types.md",
            "      - Capabilities and features: capabilities.md",
            "      - Requirements: requirements.md",
        ]
        if !releases.isEmpty { lines.append("  - Releases:") }
        for release in releases.reversed() {
            lines.append("      - Release \(release.version): releases/\(release.version).md")
        }
        lines.append("  - Downloads: downloads.md")
        return lines.joined(separator: "\n") + "\n"
    }

    /// Returns a YAML string.
    private static func quoted(_ text: String) -> String { JSONText(.string(text)).compact() }
}

extension OpcodeEntry {
    /// Returns links to the JSON Schemas of the opcode's payloads. The text of each link is the
    /// role.
    func schemaLinks(up: String) -> String {
        (payloads.map(\.part) + ["error"]).map { role in
            HTML.link(role, to: "\(up)schema/\(name).\(role).json")
        }.joined(separator: ", ")
    }
}
