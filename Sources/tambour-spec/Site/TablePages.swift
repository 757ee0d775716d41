/// Builds the pages that list all items of one kind.
struct TablePages {
    let specification: Specification
    let places: SitePlaces

    func prose(_ page: String) -> Prose { Prose(places: places, page: page) }

    private var opcodes: [OpcodeEntry] { specification.families.flatMap(\.opcodes) }

    // MARK: Opcodes

    /// Returns the page that lists all opcode numbers and names, and the connection states.
    func opcodeIndex() -> SitePage {
        let prose = prose("opcodes")
        var page = SitePage(
            prose.page,
            title: "All opcodes",
            description: "Every opcode by number and by name."
        )
        page.html(
            """
            <p class="lead">\(opcodes.count) are served. The other numbers are known by name from the wild and answered with \
            \(prose.code("proto.opcode")).</p>
            """
        )
        page.heading("By number", anchor: "by-number")
        var served = HTMLTable("opcodes", ["Number", "Hex", "Name", "Direction", "Needs", "What"])
        for opcode in opcodes.sorted(by: { $0.number < $1.number }) {
            let bytes = PacketTable.spaced([UInt8(opcode.number >> 8), UInt8(opcode.number & 0xFF)])
            let states = specification.states.map(\.name)
            let needed = states.first { opcode.states.contains($0) }
            served.row([
                "\(opcode.number)", HTML.code(bytes), prose.code(opcode.name),
                opcode.direction.text,
                needed == states.first ? "" : needed.map { prose.code($0) } ?? "",
                prose.html(opcode.doc.firstSentence),
            ])
        }
        page.html(served.html)

        page.heading("By name", anchor: "by-name")
        let names = opcodes.sorted { $0.name < $1.name }.map { opcode in
            "<li>\(prose.code(opcode.name)) \(opcode.number)</li>"
        }
        page.html("<ul class=\"names\">\n\(names.joined(separator: "\n"))\n</ul>")

        page.heading("States of a connection", anchor: "states")
        var states = HTMLTable("states", ["State", "Meaning"])
        for state in specification.states {
            states.row([HTML.code(state.name), prose.html(state.doc)], id: state.name)
        }
        page.html(states.html)

        page.heading("Ranges of numbers", anchor: "ranges")
        var ranges = HTMLTable("ranges", ["Range", "From", "Through"])
        for range in specification.idRanges {
            ranges.row([HTML.escaped(range.name), "\(range.from)", "\(range.through)"])
        }
        page.html(ranges.html)

        page.heading("Known and not served", anchor: "known")
        var known = HTMLTable("known", ["Number", "Name", "Family", "Direction"])
        for (family, entry) in specification.families
            .flatMap({ family in family.known.map { (family.name, $0) } })
            .sorted(by: { $0.1.number < $1.1.number })
        {
            known.row([
                "\(entry.number)", HTML.code(entry.name),
                HTML.link(family, to: "\(family).html#known"), entry.direction.text,
            ])
        }
        page.html(known.html)
        return page
    }

    // MARK: Errors and limits

    func errors() -> SitePage {
        let prose = prose("errors")
        var page = SitePage(
            prose.page,
            title: "Errors",
            description: "Every code that a server may answer.",
            boost: 3
        )
        page.html(
            """
            <p class="lead">A refusal is a packet of cmd 3 with an \(prose.code("ErrorReply")). After a soft error the connection \
            carries on; after a hard one it is closed. Branch on the code, never on the message, \
            except where this table says so. A code that you do not know: do not send the same again.</p>
            """
        )
        var table = HTMLTable(
            "errors",
            ["Code", "Class", "When", "What to do", "Answered by"]
        )
        for error in specification.errors {
            let users = opcodes.filter { $0.errors.contains(error.code) }
            let answered =
                error.isCommon
                ? "any opcode" : users.map { prose.code($0.name) }.joined(separator: ", ")
            let message =
                error.message.map { "Message: \(HTML.escaped($0))." }
                ?? "The message names what it found."
            let words =
                error.texts?.words["en"].map { " People read: \(HTML.escaped($0))." } ?? ""
            table.row(
                [
                    HTML.link(HTML.code(error.code), to: "#\(error.code)"),
                    error.errorClass.rawValue,
                    prose.html(error.when) + "<span class=\"reason\">\(message)\(words)</span>",
                    prose.html(AnswerSet.advice(on: error)), answered,
                ],
                id: error.code
            )
        }
        page.html(table.html)
        return page
    }

    func limits() -> SitePage {
        let prose = prose("limits")
        var page = SitePage(
            prose.page,
            title: "Limits",
            description: "Every limit with its unit and its reason.",
            boost: 3
        )
        page.html(
            """
            <p class="lead">What a server takes before it refuses. An operator may have overridden any of them with \
            <code>--limits</code>, so do not build a client on the exact value: read the refusal, which names the field and the limit.</p>
            """
        )
        var table = HTMLTable("limits", ["Limit", "Value", "Reason", "Since"])
        let uses = limitUses()
        for limit in specification.limits {
            let fields = uses[limit.name, default: []].map { name in
                prose.link(HTML.code("\(name.type).\(name.key)"), to: .field(name))
            }
            let bounds =
                fields.isEmpty
                ? "" : "<span class=\"reason\">Bounds \(fields.joined(separator: ", ")).</span>"
            table.row(
                [
                    HTML.link(HTML.code(limit.name), to: "#\(limit.name)"),
                    "\(limit.value.separated) \(HTML.escaped(limit.unit))",
                    prose.html(limit.reason) + bounds, "\(limit.since)",
                ],
                id: limit.name
            )
        }
        page.html(table.html)
        return page
    }

    /// Returns the fields that each limit applies to.
    private func limitUses() -> [String: [PacketAnatomy.FieldName]] {
        var uses: [String: [PacketAnatomy.FieldName]] = [:]
        let payloads = opcodes.flatMap { $0.payloads.map(\.type) }
        for type in payloads + specification.structs {
            for field in type.fields {
                for limit in Set(field.limitNames) {
                    uses[limit, default: []].append(.init(type: type.name, key: field.key))
                }
            }
        }
        return uses
    }

    // MARK: Roles

    /// Returns the page of roles: the permitted actions by role and kind of chat.
    func roles() -> SitePage {
        let prose = prose("roles")
        let roles = specification.roles
        var page = SitePage(
            prose.page,
            title: "Roles",
            description: "Who may do what in which kind of chat.",
            boost: 3
        )
        let lead = prose.html(
            "What is not allowed is refused with `not.allowed`, and with `chat.not.found` where the "
                + "asking user may not know of the chat. A permission or an option in a cell is "
                + "what it takes."
        )
        page.html("<p class=\"lead\">\(lead)</p>")
        for kind in roles.kinds {
            page.heading(kind.name, anchor: kind.name)
            page.html("<p>\(prose.html(kind.doc))</p>")
            let present = roles.roles.filter { role in
                roles.actions.first?.cells[kind.name]?[role.name] != nil
            }
            var table = HTMLTable("roles", ["Action"] + present.map(\.name))
            for action in roles.actions {
                let cells = present.map { action.cells[kind.name]?[$0.name] ?? "" }
                table.row(
                    ["\(HTML.code(action.name)) \(prose.html(action.documented.doc))"]
                        + cells.map { HTML.escaped($0) }
                )
            }
            page.html(table.html)
        }
        for (title, bits) in [("Permissions", roles.permissions), ("Options", roles.options)] {
            page.heading(title, anchor: title.lowercased())
            var table = HTMLTable("bits", ["Name", "Bit", "Meaning", "Since"])
            for bit in bits {
                table.row([
                    HTML.code(bit.name), "\(bit.bit)", prose.html(bit.documented.doc),
                    "\(bit.documented.since)",
                ])
            }
            page.html(table.html)
        }
        return page
    }

    // MARK: Entities

    /// Returns the page of the entity types that devices edit offline. The page explains how
    /// conflicts are resolved.
    func entities() -> SitePage {
        let prose = prose("entity-types")
        var page = SitePage(
            prose.page,
            title: "Entities",
            description: "The types of entities that devices edit offline.",
            boost: 3
        )
        let lead = prose.html(
            "Entities of these types travel by OBJ_PUSH, OBJ_PULL and NOTIF_OBJ. The policy says "
                + "what becomes of a change whose base is not the present version: `cas` refuses it, `lww` "
                + "lets the later one win, `merge` takes the fields nobody else changed, and an "
                + "`append` series is only added to."
        )
        page.html("<p class=\"lead\">\(lead)</p>")
        for entity in specification.entities {
            page.heading(entity.name, anchor: entity.name)
            page.html("<p>\(prose.html(entity.documented.doc)) \(HTML.escaped(entity.rules)).</p>")
            var table = HTMLTable("fields", ["Field", "Type", "Meaning", "Since"])
            for field in entity.fields {
                table.row([
                    HTML.code(field.name), HTML.code(field.type.yaml),
                    prose.html(field.documented.doc), "\(field.documented.since)",
                ])
            }
            page.html(table.html)
        }
        return page
    }

    // MARK: Capabilities and features

    func capabilities() -> SitePage {
        let prose = prose("capabilities")
        var page = SitePage(
            prose.page,
            title: "Capabilities, dialects and features",
            description: "What a client names in SESSION_INIT, and how the server writes for it.",
            boost: 3
        )
        page.html(
            """
            <p class="lead">\(prose.html("Both are lists of names in SESSION_INIT; the server answers with those it knows.")) \
            How they let the protocol grow is told in \(prose.link("Evolution", to: .chapter("evolution"))).</p>
            """
        )
        page.heading("Capabilities", anchor: "capabilities")
        page.html("<p>What a build of a client can read.</p>")
        page.html(gates(specification.capabilities, prose))
        page.heading("Dialects", anchor: "dialects")
        page.html("<p>What the server writes for clients that name no capability.</p>")
        page.html(gates(specification.dialects.map(\.documented), prose))
        page.heading("Features", anchor: "features")
        page.html("<p>What a build has code for, and the server may switch on or off.</p>")
        var features = HTMLTable("names", ["Name", "Meaning", "Off, these are refused", "Since"])
        for feature in specification.features {
            features.row(
                [
                    HTML.link(HTML.code(feature.name), to: "#\(feature.name)"),
                    prose.html(feature.documented.doc),
                    feature.opcodes.map { prose.code($0) }.joined(separator: ", "),
                    "\(feature.documented.since)",
                ],
                id: feature.name
            )
        }
        page.html(features.isEmpty ? "<p>None yet.</p>" : features.html)
        return page
    }

    private func gates(_ entries: [Specification.Documented], _ prose: Prose) -> String {
        var table = HTMLTable("names", ["Name", "Meaning", "What needs it", "Since"])
        for entry in entries {
            table.row(
                [
                    HTML.link(HTML.code(entry.name), to: "#\(entry.name)"),
                    prose.html(entry.doc), needing(entry.name, prose).joined(separator: ", "),
                    "\(entry.since)",
                ],
                id: entry.name
            )
        }
        return table.html
    }

    /// Returns a link to every push, field and value that needs a capability or dialect. Also
    /// returns links to the fields that a dialect changes.
    private func needing(_ capability: String, _ prose: Prose) -> [String] {
        let pushes = opcodes.filter { $0.capability == capability }.map { prose.code($0.name) }
        let payloads = opcodes.flatMap { $0.payloads.map(\.type) }
        let fields = (payloads + specification.structs).flatMap { type in
            type.fields.filter { field in
                field.capability == capability || field.forms.contains { $0.dialect == capability }
            }.map { field in
                prose.link(
                    HTML.code("\(type.name).\(field.key)"),
                    to: .field(.init(type: type.name, key: field.key))
                )
            }
        }
        let values = specification.enums.flatMap { type in
            type.values.filter { $0.capability == capability }.map { value in
                prose.link(HTML.code("\(type.name).\(value.value)"), to: .type(type.name))
            }
        }
        return pushes + fields + values
    }

    // MARK: Types

    /// The simple types, and how each is encoded.
    static let simpleTypes: [(type: WireType, form: String)] = [
        (.bool, "A boolean."),
        (.int, "An integer of 64 bits with a sign, in any width that holds it."),
        (.ms, "An integer: milliseconds since 1970, UTC."),
        (.double, "A float of 32 or 64 bits; an integer is read as well. Written as 64 bits."),
        (.chatID, "An integer, or a string of its digits. Written as an integer."),
        (.userID, "An integer, or a string of its digits. Written as an integer."),
        (.messageID, "An integer, or a string of its digits. Written as an integer."),
        (.text, "A string: UTF-8 that people read."),
        (.string, "A string: UTF-8 that programs read."),
        (.bytes, "Binary; a string is read as well."),
        (.any, "Any value; kept as it came."),
    ]

    private static let containers = [
        ("list<T>", "An array."),
        (
            "map<id, T>",
            "A map whose keys are ids: strings of digits. Integer keys are read as well."
        ),
        ("names<T>", "A map whose keys are names."),
    ]

    func types() -> SitePage {
        let prose = prose("types")
        var page = SitePage(
            prose.page,
            title: "Types",
            description: "What fields hold: simple types, objects, enumerations.",
            boost: 3
        )
        page.heading("Simple types", anchor: "simple")
        var simple = HTMLTable("simple", ["Type", "On the wire"])
        for (type, form) in Self.simpleTypes {
            simple.row([HTML.code(type.yaml), HTML.escaped(form)], id: type.yaml)
        }
        for (type, form) in Self.containers {
            simple.row([HTML.code(type), HTML.escaped(form)])
        }
        page.html(simple.html)

        page.heading("Objects", anchor: "objects")
        page.html(
            """
            <p>Maps with these keys. A key that is absent or nil where it is optional means the same; a key you do not know is to be skipped.</p>
            """
        )
        for type in specification.structs {
            page.heading(type.name, anchor: type.name, level: 3)
            page.html("<p>\(prose.html(type.doc)) Since release \(type.since).</p>")
            let fields = FieldTable(type, in: specification, prose, anchor: type.name)
            page.html(fields.html())
            page.html(users(of: type.name, prose))
        }

        page.heading("Enumerations", anchor: "enumerations")
        page.html(
            """
            <p>Strings. An open one may grow: read an unknown value as “something else”. A closed one is what only clients send.</p>
            """
        )
        for type in specification.enums {
            page.heading(type.name, anchor: type.name, level: 3)
            let kind = type.isOpen ? "Open" : "Closed"
            page.html("<p>\(prose.html(type.doc)) \(kind), since release \(type.since).</p>")
            var values = HTMLTable("values", ["Value", "Meaning", "Only with", "Without it"])
            for value in type.values {
                var instead = value.fallback.map { HTML.code($0) } ?? ""
                if value.capability != nil, instead.isEmpty { instead = "left out" }
                values.row([
                    HTML.code(value.value), prose.html(value.doc),
                    value.capability.map { prose.code($0) } ?? "", instead,
                ])
            }
            page.html(values.html)
            page.html(users(of: type.name, prose))
        }
        return page
    }

    /// Returns the fields that contain a type.
    private func users(of name: String, _ prose: Prose) -> String {
        let payloads = opcodes.flatMap { $0.payloads.map(\.type) }
        let users = (payloads + specification.structs).flatMap { type in
            type.fields.filter { $0.type.mentioned.contains(name) }.map { field in
                prose.link(
                    HTML.code("\(type.name).\(field.key)"),
                    to: .field(.init(type: type.name, key: field.key))
                )
            }
        }
        return users.isEmpty ? "" : "<p class=\"users\">In \(users.joined(separator: ", ")).</p>"
    }
}

extension String {
    /// The text up to and including the first full stop that a space follows.
    fileprivate var firstSentence: String {
        firstRange(of: ". ").map { String(self[..<$0.lowerBound]) + "." } ?? self
    }
}
