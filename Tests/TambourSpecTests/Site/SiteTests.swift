import Foundation
import Testing

@testable import tambour_spec

@Suite("The reference site")
struct SiteTests {
    private static func generator() throws -> SiteGenerator {
        SiteGenerator(try Repository.specification(), cases: ConformanceCases(source: ""))
    }

    /// The pages. All tests share them.
    private static let made = Result { try generator().pages() }

    private static func pages() throws -> [SitePage] { try made.get() }

    /// Returns the ids in each page, in the order in which they occur.
    private static func anchors(of pages: [SitePage]) -> [String: [String]] {
        Dictionary(
            uniqueKeysWithValues: pages.map { page in
                let html = page.text.matches(of: /\bid="([^"]+)"/).map { String($0.output.1) }
                let markdown = page.text.matches(of: /\{ #([^ }]+)/).map { String($0.output.1) }
                return (page.path, html + markdown)
            }
        )
    }

    @Test("has a page or an anchor for everything that can be named")
    func everythingHasAPlace() throws {
        let specification = try Repository.specification()
        let pages = try Self.pages()
        let anchors = Self.anchors(of: pages)
        let places = SitePlaces(specification)
        let opcodes = specification.families.flatMap(\.opcodes)
        let types = opcodes.flatMap { $0.payloads.map(\.type) } + specification.structs
        var targets: [SitePlaces.Target] = opcodes.map { .opcode($0.name) }
        targets += specification.errors.map { .error($0.code) }
        targets += specification.limits.map { .limit($0.name) }
        targets += specification.buckets.map { .bucket($0.name) }
        targets += specification.capabilities.map { .capability($0.name) }
        targets += specification.features.map { .feature($0.name) }
        targets += specification.states.map { .state($0.name) }
        targets += specification.structs.map { .type($0.name) }
        targets += specification.enums.map { .type($0.name) }
        targets += TablePages.simpleTypes.map { .type($0.type.yaml) }
        targets += types.flatMap { type in
            type.fields.map { .field(.init(type: type.name, key: $0.key)) }
        }
        targets += specification.chapters.map { .chapter($0.name) }
        targets += specification.flows.map { .flow($0.name) }
        targets += specification.requirements.map { .requirement($0.id) }
        #expect(targets.count > 600)
        for target in targets {
            let place = places.place(of: target)
            let found = try #require(anchors[place.page], "\(target) on \(place.page)")
            if let anchor = place.anchor { #expect(found.contains(anchor), "\(target)") }
        }
        // An opcode's name is also its anchor on the page of its family.
        for opcode in opcodes {
            #expect(try #require(anchors[opcode.family]).contains(opcode.name))
        }
        for type in types.flatMap(\.fields).map(\.type) where type.isSimple {
            #expect(TablePages.simpleTypes.contains { $0.type == type }, "\(type.yaml)")
        }
    }

    @Test("has each page and each anchor once, and each page in the navigation")
    func onlyOnce() throws {
        let pages = try Self.pages()
        #expect(Set(pages.map(\.path)).count == pages.count)
        for (path, anchors) in Self.anchors(of: pages) {
            #expect(Set(anchors).count == anchors.count, "\(path)")
        }
        let navigation = try Self.generator().navigation()
        for page in pages { #expect(navigation.contains(": \(page.path).md\n"), "\(page.path)") }
    }

    @Test("shows every example, every other encoding and every refusal with its bytes")
    func examples() throws {
        let specification = try Repository.specification()
        let pages = try Self.pages()
        for file in specification.examples {
            let page = try #require(pages.first { $0.path.hasSuffix("/\(file.opcode)") })
            for example in file.examples {
                let all = [example.hex] + example.accepts.map(\.hex) + example.rejects.map(\.hex)
                for hex in all {
                    #expect(page.text.contains("<code>\(hex ?? "?")</code>"), "\(example.name)")
                }
                for reject in example.rejects {
                    #expect(page.text.contains(HTML.escaped(reject.error)), "\(reject.name)")
                }
            }
        }
    }

    @Test("says the same every time, and nothing of where it was made")
    func isDeterministic() throws {
        let first = try Self.pages()
        let second = try Self.generator().pages()
        #expect(first.map(\.text) == second.map(\.text))
        for page in first { #expect(!page.text.contains(Repository.root.path), "\(page.path)") }
    }

    @Test("comes with what is written by hand")
    func files() throws {
        let specification = try Repository.specification()
        let site = Site(specification: specification, root: Repository.root)
        let paths = try site.files().map(\.path)
        #expect(Set(paths).count == paths.count)
        let wanted = [
            "mkdocs.yml", "pages/index.md", "pages/assets/site.css", "theme/main.html",
            "pages/protocol.json", "pages/tambour.lua", "pages/messages/MSG_SEND.md",
        ]
        #expect(Set(wanted).isSubset(of: paths))
        // The site contains a schema if and only if the page of an opcode links to it.
        let linked = specification.families.flatMap(\.opcodes).flatMap { opcode in
            opcode.schemaLinks(up: "").matches(of: /href="([^"]*)"/).map { String($0.output.1) }
        }
        #expect(
            Set(linked.map { "pages/\($0)" }) == Set(paths.filter { $0.hasPrefix("pages/schema/") })
        )
    }

    @Test("has a page for what each release changed, the newest first")
    func releases() throws {
        var specification = try Repository.specification()
        let before = specification
        specification.version = 2
        specification.limits[0].value += 1
        let notes = ReleaseNotes(from: before, to: specification).text()
        let generator = SiteGenerator(
            specification,
            cases: ConformanceCases(source: ""),
            releases: [.init(version: 2, notes: notes), .init(version: 3, notes: "# Release 3\n")]
        )
        let page = try #require(generator.pages().first { $0.path == "releases/2" })
        #expect(page.text.contains("# Release 2\n"))
        let limit = specification.limits[0].name
        #expect(page.text.contains("[`\(limit)`](../limits.md#\(limit))"), "\(page.text)")
        #expect(page.text.matches(of: #/(?m)^# /#).count == 1)
        let navigation = generator.navigation()
        let three = try #require(navigation.firstRange(of: "releases/3.md"))
        let two = try #require(navigation.firstRange(of: "releases/2.md"))
        #expect(three.lowerBound < two.lowerBound)
    }
}

@Suite("What can come back for a request")
struct AnswerSetTests {
    private static func set(of name: String) throws -> AnswerSet {
        let specification = try Repository.specification()
        return AnswerSet(of: try #require(specification.opcode(named: name)), in: specification)
    }

    private static func codes(_ answers: [AnswerSet.Answer]) -> [String] {
        answers.compactMap { if case .error(let code) = $0.what { code } else { nil } }
    }

    @Test("is the reply, each error of the opcode, and nothing at all")
    func own() throws {
        let specification = try Repository.specification()
        for opcode in specification.families.flatMap(\.opcodes) where opcode.request != nil {
            let set = AnswerSet(of: opcode, in: specification)
            #expect(set.own.first?.what == .reply)
            #expect(set.own.last?.what == .nothing)
            #expect(Self.codes(set.own) == opcode.errors)
        }
    }

    @Test("leaves out what cannot come by state, number or feature")
    func common() throws {
        let ping = try Self.set(of: "PING")
        #expect(!Self.codes(ping.common).contains("proto.state"))
        #expect(!Self.codes(ping.common).contains("proto.opcode"))
        #expect(Self.codes(ping.common).contains("proto.frame"))
        let send = try Self.set(of: "MSG_SEND")
        let state = send.common.first { $0.what == .error("proto.state") }
        #expect(state?.when == "The connection is not yet `loggedIn`.")
        let lookup = try Self.set(of: "CONTACT_INFO_BY_PHONE")
        let gate = lookup.common.first { $0.what == .error("proto.opcode") }
        #expect(gate?.when == "Where `phone-lookup` is off.")
    }

    @Test("says what to do when nothing came, by what a second time would do")
    func lost() throws {
        let advice = try ["PING", "MSG_DELETE", "MSG_SEND", "AUTH"].compactMap { name in
            try Self.set(of: name).own.last?.advice
        }
        #expect(Set(advice).count == 4)
        #expect(advice[2].contains("message.cid within sender, device and chat"))
    }

    @Test("tells apart every class and every kind of retry")
    func advice() throws {
        let errors = try Repository.specification().errors
        let advice = Dictionary(grouping: errors) { AnswerSet.advice(on: $0) }
        // There is one kind of advice for hard errors, and one for each of the four kinds of retry.
        #expect(advice.count == 5)
        for group in advice.values { #expect(Set(group.map(\.errorClass)).count == 1) }
    }
}

@Suite("Texts on a page")
struct ProseTests {
    private static func canonical(_ json: Any) throws -> Data {
        try JSONSerialization.data(withJSONObject: json, options: .sortedKeys)
    }

    private static func prose(_ page: String) throws -> Prose {
        Prose(places: SitePlaces(try Repository.specification()), page: page)
    }

    @Test("link what they name, except to where they stand")
    func links() throws {
        let prose = try Self.prose("messages/MSG_SEND")
        #expect(
            prose.html("A `cid` <b>, MSG_SEND, MSG_EDIT & `maxTextUnits`, `chat.not.found`.")
                == "A <code>cid</code> &lt;b&gt;, MSG_SEND, "
                + "<a href=\"../messages/MSG_EDIT.html\">MSG_EDIT</a> &amp; "
                + "<a href=\"../limits.html#maxTextUnits\"><code>maxTextUnits</code></a>, "
                + "<a href=\"../errors.html#chat.not.found\"><code>chat.not.found</code></a>."
        )
    }

    @Test("of chapters get anchors and links, and code and the author's links stay")
    func markdown() throws {
        let text = """
            ## MSG_SEND
            - One MUST PING. [FRM-01]
            See [the MSG_SEND](x.md) and `MSG_SEND`.
            ```python
            PING = 1  # [FRM-02]
            ```
            """
        #expect(
            try Self.prose("protocol/framing").markdown(text) == """
                ## MSG_SEND
                - One MUST [PING](../session/PING.md). [FRM-01](#FRM-01){ #FRM-01 .requirement }
                See [the MSG_SEND](x.md) and [`MSG_SEND`](../messages/MSG_SEND.md).
                ```python
                PING = 1  # [FRM-02]
                ```
                """
        )
    }

    @Test("show types with links to what is in them")
    func types() throws {
        let prose = try Self.prose("types")
        let type = try #require(WireType("map<chatId, packed<list<Message>>>"))
        #expect(
            prose.type(type) == "map&lt;chatId, list&lt;<a href=\"#Message\">Message</a>&gt;&gt;"
        )
    }

    @Test("show values as JSON in their own order, broken where they are long")
    func json() throws {
        let specification = try Repository.specification()
        for example in specification.examples.flatMap(\.examples) {
            let value = try #require(example.value)
            let text = JSONText(value).text()
            let read = try JSONSerialization.jsonObject(with: Data(text.utf8))
            #expect(try Self.canonical(read) == Self.canonical(value.json), "\(example.name)")
            let html = JSONText(value).html()
            let plain = html.replacing(/<[^>]*>/, with: "").replacing("&quot;", with: "\"")
                .replacing("&lt;", with: "<").replacing("&gt;", with: ">")
                .replacing("&amp;", with: "&")
            #expect(plain == text)
        }
        let value = WireNode.map([
            .init(key: .string("b"), value: .array([.int(1), .string("a\u{1}\n\"")])),
            .init(key: .string("a"), value: .bytes([1, 255])),
        ])
        #expect(
            JSONText(value).compact()
                == #"{"b": [1, "a\u0001\n\""], "a": {"$bytes": "01ff"}}"#
        )
        #expect(JSONText(value).compact(most: 8) == #"{"b": [1…"#.prefix(7) + "…")
    }
}

@Suite("Cases of the conformance suite")
struct ConformanceCasesTests {
    @Test("are found above the function they mark, several requirements at once")
    func reading() {
        let cases = ConformanceCases(
            source: """
                @case("FRM-01")
                def test_minimal_ping(stranger):
                    pass


                @case("FRM-01", "FRM-02", info=True)
                @pytest.mark.parametrize("count", [2, 50])
                def test_two_things(stranger, count):
                    "@case() is not above this"

                def helper():
                    pass
                """
        )
        #expect(
            cases.names == ["FRM-01": ["minimal-ping", "two-things"], "FRM-02": ["two-things"]]
        )
        #expect(ConformanceCases(under: URL(filePath: "/nowhere")).names.isEmpty)
    }
}

@Suite("Drawings of conversations")
struct SequenceDiagramTests {
    @Test("show every packet and every remark of every flow, in both widths")
    func complete() throws {
        let specification = try Repository.specification()
        let places = SitePlaces(specification)
        #expect(!specification.flows.isEmpty)
        for flow in specification.flows {
            let text = FlowPage(flow, in: specification, places).page().text
            let drawings = text.matches(of: /(?s)<svg.*?<\/svg>/).map { String($0.output) }
            #expect(drawings.count == 2)
            for drawing in drawings {
                let parser = XMLReader(drawing)
                #expect(parser.isWellFormed, "\(flow.name)")
                var packets = 0
                for step in flow.steps {
                    switch step.action {
                    case .request: packets += 2
                    case .push: packets += 1
                    default: break
                    }
                }
                #expect(parser.counts["path", default: 0] >= packets, "\(flow.name)")
                for opcode in flow.opcodes { #expect(drawing.contains(">\(opcode)</a>")) }
            }
            for number in flow.steps.indices where !flow.steps[number].action.isNote {
                #expect(text.contains("id=\"step-\(number + 1)\""), "\(flow.name)")
            }
        }
    }

    @Test("keep every text within the paper")
    func fits() {
        let rows: [SequenceDiagram.Row] = [
            .event(number: 1, lane: "alice.phone", text: "connects", isEnd: false),
            .packet(
                number: 2,
                from: "alice.phone",
                to: "server",
                .request,
                title: "MSG_SEND",
                detail: String(repeating: "long ", count: 60),
                address: "x.html"
            ),
            .packet(
                number: nil,
                from: "server",
                to: "alice.phone",
                .error,
                title: "chat.not.found",
                detail: "",
                address: nil
            ),
            .note(String(repeating: "a remark & more ", count: 20)),
        ]
        let diagram = SequenceDiagram(
            title: "<A>",
            lanes: ["alice.phone", "alice.laptop", "server", "bob"],
            rows: rows
        )
        for width in SequenceDiagram.Width.allCases {
            let reader = XMLReader(diagram.svg(width))
            #expect(reader.isWellFormed)
            for text in reader.texts {
                // On average, a character is narrower than 6.4 units of the drawing.
                let half = Double(text.content.count) * 6.4 / 2
                #expect(text.x - half >= 0 && text.x + half <= reader.width, "\(text.content)")
            }
        }
    }
}

extension WireType {
    fileprivate var isSimple: Bool {
        switch self {
        case .list, .map, .names, .packed, .named: false
        default: true
        }
    }
}

extension Flow.Action {
    fileprivate var isNote: Bool { if case .note = self { true } else { false } }
}

/// Reads the contents of a drawing, tag by tag.
private struct XMLReader {
    var isWellFormed = true
    var counts: [String: Int] = [:]
    var texts: [(x: Double, content: String)] = []
    var width = 0.0

    init(_ text: String) {
        var open: [Substring] = []
        for tag in text.matches(of: /<(\/?)([a-z]+)([^>]*?)(\/?)>/) {
            let (_, closes, name, _, isEmpty) = tag.output
            if closes == "/" {
                if open.popLast() != name { isWellFormed = false }
            } else {
                counts[String(name), default: 0] += 1
                if isEmpty.isEmpty { open.append(name) }
            }
        }
        let outside = text.replacing(/<[^>]*>/, with: "")
        let entity = /&(?!(amp|lt|gt|quot);)|[<>]/
        isWellFormed = isWellFormed && open.isEmpty && outside.firstMatch(of: entity) == nil
        for match in text.matches(of: /<text class="([^"]*)" x="([^"]*)"[^>]*>(.*?)<\/text>/) {
            let content = String(match.output.3).replacing(/<[^>]*>/, with: "")
                .replacing("&amp;", with: "&")
            texts.append((Double(match.output.2) ?? -1, content))
        }
        width = text.firstMatch(of: /viewBox="0 0 ([^ ]+)/).flatMap { Double($0.output.1) } ?? 0
    }
}
