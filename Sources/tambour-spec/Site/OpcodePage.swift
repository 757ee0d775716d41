/// The page of one opcode.
struct OpcodePage {
    let specification: Specification
    let opcode: OpcodeEntry
    let prose: Prose

    init(_ opcode: OpcodeEntry, in specification: Specification, _ places: SitePlaces) {
        self.specification = specification
        self.opcode = opcode
        let page = places.place(of: .opcode(opcode.name)).page
        prose = Prose(places: places, page: page)
    }

    func page() -> SitePage {
        var page = SitePage(
            prose.page,
            title: opcode.name,
            anchor: opcode.name,
            description: "\(opcode.name), opcode \(opcode.number): \(opcode.doc)",
            boost: 2
        )
        page.html("<p class=\"lead\">\(prose.html(opcode.doc))</p>")
        page.html(facts())
        for (part, type) in opcode.payloads { payload(part, type, to: &page) }
        if opcode.request != nil { answers(to: &page) }
        pushes(to: &page)
        edges(to: &page)
        examples(to: &page)
        flows(to: &page)
        return page
    }

    // MARK: Facts

    private func facts() -> String {
        let bytes = PacketTable.spaced([UInt8(opcode.number >> 8), UInt8(opcode.number & 0xFF)])
        var facts = [
            ("Number", "\(opcode.number), in the header \(HTML.code(bytes))"),
            ("Direction", opcode.direction.text),
        ]
        if !opcode.states.isEmpty {
            let states = opcode.states.map { prose.code($0) }.joined(separator: ", ")
            facts.append(("Legal when", states))
        }
        if let kind = opcode.kind { facts.append(("Kind", prose.html(kind.text))) }
        if let idempotency = opcode.idempotency {
            facts.append(("Sent twice", prose.html(idempotency.text(key: opcode.key))))
        }
        if let cost = opcode.cost {
            facts.append(("Paid from", cost.html(prose)))
        }
        if let capability = opcode.capability {
            facts.append(("Sent only with", prose.code(capability)))
        }
        let features = specification.features.filter { $0.opcodes.contains(opcode.name) }
        if !features.isEmpty {
            let names = features.map { prose.code($0.name) }.joined(separator: ", ")
            facts.append(("Switched by", names))
        }
        facts.append(("Since release", "\(opcode.since)"))
        if let deprecated = opcode.deprecated {
            facts.append(("Deprecated", deprecated.text(prose)))
        }
        facts.append(("JSON Schemas", opcode.schemaLinks(up: SitePlaces.up(from: prose.page))))
        let source = "protocol-spec/opcodes/\(opcode.family).yaml"
        facts.append(("Source", HTML.code(source)))
        let items = facts.map { "<div><dt>\($0.0)</dt><dd>\($0.1)</dd></div>" }
        return "<dl class=\"facts\">\n\(items.joined(separator: "\n"))\n</dl>"
    }

    private func payload(_ part: String, _ type: StructType, to page: inout SitePage) {
        let title = part.prefix(1).uppercased() + part.dropFirst()
        page.heading(title, anchor: part)
        guard !type.fields.isEmpty else {
            page.html("<p>The empty map, <code>80</code>.</p>")
            return
        }
        page.html(FieldTable(type, in: specification, prose, anchor: part).html())
        // If a client must write a type, this page shows the whole type. If a client only reads it,
        // the page links to it.
        guard part == "request" else { return }
        for inner in specification.structs(within: type) {
            page.html(
                """
                <details class="inner">
                <summary>\(HTML.code(inner.name)) \(prose.html(inner.doc))</summary>
                \(FieldTable(inner, in: specification, prose, anchor: nil).html())
                </details>
                """
            )
        }
    }

    // MARK: Results

    private func answers(to page: inout SitePage) {
        page.heading("What can come back", anchor: "answers")
        let set = AnswerSet(of: opcode, in: specification)
        var table = HTMLTable("answers", ["Answer", "When", "What to do"])
        for answer in set.own { row(answer, to: &table) }
        table.section("Any request can get these")
        for answer in set.common { row(answer, to: &table) }
        page.html(table.html)
    }

    private func row(_ answer: AnswerSet.Answer, to table: inout HTMLTable) {
        let what: String
        switch answer.what {
        case .reply: what = "<a href=\"#reply\">the reply</a>"
        case .error(let code): what = prose.code(code)
        case .nothing: what = "nothing"
        }
        table.row([what, prose.html(answer.when), prose.html(answer.advice)])
    }

    private func pushes(to page: inout SitePage) {
        if !opcode.effects.isEmpty {
            page.heading("Pushes it causes", anchor: "pushes")
            var table = HTMLTable("pushes", ["Push", "To", "When"])
            for effect in opcode.effects {
                table.row([
                    prose.code(effect.push), prose.html(effect.to), prose.html(effect.when),
                ])
            }
            page.html(table.html)
        }
        guard opcode.push != nil else { return }
        page.heading("What causes it", anchor: "causes")
        var table = HTMLTable("causes", ["Request", "Who gets the push", "When"])
        for other in specification.families.flatMap(\.opcodes) {
            for effect in other.effects where effect.push == opcode.name {
                table.row([
                    prose.code(other.name), prose.html(effect.to), prose.html(effect.when),
                ])
            }
        }
        page.html(table.isEmpty ? "<p>No single request: the server itself.</p>" : table.html)
    }

    private func edges(to page: inout SitePage) {
        guard !opcode.edges.isEmpty else { return }
        page.heading("Edge cases", anchor: "edges")
        var table = HTMLTable("edges", ["Requirement", "Given", "Then"])
        for edge in opcode.edges {
            let name =
                "<a class=\"requirement\" href=\"#\(edge.id)\">\(edge.id)</a> "
                + "<b>\(HTML.escaped(edge.title))</b>"
            table.row([name, prose.html(edge.given), prose.html(edge.then)], id: edge.id)
        }
        page.html(table.html)
    }

    private func flows(to page: inout SitePage) {
        let flows = specification.flows.filter { $0.opcodes.contains(opcode.name) }
        guard !flows.isEmpty else { return }
        page.heading("In conversations", anchor: "flows")
        let items = flows.map {
            "<li>\(prose.link(HTML.escaped($0.title), to: .flow($0.name)))</li>"
        }
        page.html("<ul>\n\(items.joined(separator: "\n"))\n</ul>")
    }

    // MARK: Examples

    private func examples(to page: inout SitePage) {
        let examples = specification.examples.filter { $0.opcode == opcode.name }
            .flatMap(\.examples)
        guard !examples.isEmpty else { return }
        page.heading("Examples", anchor: "examples")
        var seen: Set<Example.Role> = []
        for example in examples {
            let isFirst = seen.insert(example.role).inserted
            page.html(html(example, isOpen: isFirst))
        }
    }

    private func html(_ example: Example, isOpen: Bool) -> String {
        let type = ExampleCheck.type(of: example, opcode: opcode, in: specification)
        let hex = example.hex ?? ""
        let size = (Hex.bytes(hex) ?? []).count
        var parts = [
            """
            <details class="example \(example.role.rawValue)"\(isOpen ? " open" : "")>
            <summary><span class="role">\(example.role.rawValue)</span> \(HTML.escaped(example.name)) \
            <span class="size">\(size) bytes</span></summary>
            """,
            SitePage.json(example.value ?? .map([])),
            packet(hex, type),
        ]
        if !example.accepts.isEmpty {
            parts.append("<p class=\"others\">Other bytes that are read as the same value:</p>")
            for accept in example.accepts {
                parts.append(variant(accept.name, note: "", accept.hex, type, kind: "accept"))
            }
        }
        if !example.rejects.isEmpty {
            let code = prose.code("proto.payload")
            parts.append(
                "<p class=\"others\">Bytes that are refused with \(code), and the message:</p>"
            )
            for reject in example.rejects {
                var note = HTML.code(reject.error)
                for (name, value) in reject.limits.sorted(by: { $0.key < $1.key }) {
                    note += " where \(prose.code(name)) is \(value)"
                }
                parts.append(variant(reject.name, note: note, reject.hex, type, kind: "reject"))
            }
        }
        parts.append("</details>")
        return parts.joined(separator: "\n")
    }

    private func variant(
        _ name: String,
        note: String,
        _ hex: String?,
        _ type: StructType?,
        kind: String
    ) -> String {
        """
        <details class="variant \(kind)">
        <summary>\(HTML.escaped(name)) <span class="note">\(note)</span></summary>
        \(packet(hex ?? "", type))
        </details>
        """
    }

    private func packet(_ hex: String, _ type: StructType?) -> String {
        let bytes = Hex.bytes(hex) ?? []
        let anatomy = PacketAnatomy(bytes, payload: type, in: specification)
        return PacketTable(anatomy, prose).html() + "\n"
            + "<div class=\"whole\" data-search-exclude><pre><code>\(hex)</code></pre></div>"
    }
}

extension Specification {
    /// Returns the object types that a struct contains at any depth, in the order of their first
    /// use.
    fileprivate func structs(within type: StructType) -> [StructType] {
        var found: [StructType] = []
        var waiting = [type]
        while !waiting.isEmpty {
            let next = waiting.removeFirst()
            for name in next.fields.flatMap(\.type.mentioned)
            where !found.contains(where: { $0.name == name }) {
                guard let inner = structType(named: name) else { continue }
                found.append(inner)
                waiting.append(inner)
            }
        }
        return found
    }
}

extension Direction {
    var text: String {
        switch self {
        case .clientToServer: "client → server"
        case .serverToClient: "server → client"
        case .both: "both ways"
        }
    }
}

extension OpcodeEntry.Kind {
    fileprivate var text: String {
        switch self {
        case .session: "of the connection: nothing is stored"
        case .login: "the login"
        case .query: "a query: reads what is stored"
        case .command: "a command: answered when what it changed is on disk"
        }
    }
}

extension OpcodeEntry.Idempotency {
    fileprivate func text(key: String?) -> String {
        switch self {
        case .safe: "changes nothing"
        case .idempotent: "is the same as once"
        case .keyed: "is the same as once, by \(key ?? "its key")"
        case .unsafe: "counts twice"
        }
    }
}

extension Flow {
    /// The opcodes of the packets in the flow.
    var opcodes: Set<String> {
        Set(
            steps.compactMap { step in
                switch step.action {
                case .request(let opcode, _, _, _, _), .push(let opcode, _, _, _): opcode
                default: nil
                }
            }
        )
    }
}
