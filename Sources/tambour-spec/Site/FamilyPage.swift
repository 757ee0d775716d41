/// The page of a family, with a short description of each opcode.
struct FamilyPage {
    let family: Specification.Family
    let prose: Prose

    init(_ family: Specification.Family, _ places: SitePlaces) {
        self.family = family
        prose = Prose(places: places, page: family.name)
    }

    func page() -> SitePage {
        var page = SitePage(family.name, title: "Opcodes: \(family.name)", description: family.doc)
        page.html("<p class=\"lead\">\(prose.html(family.doc))</p>")
        for opcode in family.opcodes {
            page.heading("`\(opcode.name)`", anchor: opcode.name)
            page.html("<p>\(prose.html(opcode.doc))</p>")
            page.html(summary(of: opcode))
        }
        if !family.known.isEmpty {
            page.heading("Known and not served", anchor: "known")
            let refusal = prose.code("proto.opcode")
            page.html(
                """
                <p>Numbers seen in the wild under these names. They are answered with \(refusal); that does not count against the connection.</p>
                """
            )
            var table = HTMLTable("known", ["Number", "Name", "Direction"])
            for known in family.known.sorted(by: { $0.number < $1.number }) {
                table.row(["\(known.number)", HTML.code(known.name), known.direction.text])
            }
            page.html(table.html)
        }
        return page
    }

    private func summary(of opcode: OpcodeEntry) -> String {
        var facts = [("Number", "\(opcode.number), \(opcode.direction.text)")]
        for (part, type) in opcode.payloads {
            let title = part.prefix(1).uppercased() + part.dropFirst()
            let keys = type.fields.map { field in
                let name = PacketAnatomy.FieldName(type: type.name, key: field.key)
                let key = prose.link(HTML.code(field.key), to: .field(name))
                return field.isRequired ? "<b>\(key)</b>" : key
            }
            facts.append((title, keys.isEmpty ? "empty" : keys.joined(separator: ", ")))
        }
        if !opcode.errors.isEmpty {
            let errors = opcode.errors.map { prose.code($0) }
            facts.append(("Errors", errors.joined(separator: ", ")))
        }
        let all = prose.link("fields, answers, edge cases, examples", to: .opcode(opcode.name))
        facts.append(("All of it", all))
        let items = facts.map { "<div><dt>\($0.0)</dt><dd>\($0.1)</dd></div>" }
        return "<dl class=\"facts\">\n\(items.joined(separator: "\n"))\n</dl>"
    }
}
