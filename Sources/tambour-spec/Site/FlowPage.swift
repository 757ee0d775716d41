/// The page of a conversation: the diagram, then every step with its payload.
struct FlowPage {
    let flow: Flow
    let specification: Specification
    let prose: Prose

    init(_ flow: Flow, in specification: Specification, _ places: SitePlaces) {
        self.flow = flow
        self.specification = specification
        prose = Prose(places: places, page: places.place(of: .flow(flow.name)).page)
    }

    func page() -> SitePage {
        var page = SitePage(prose.page, title: flow.title, description: flow.doc)
        page.html("<p class=\"lead\">\(prose.html(flow.doc))</p>")
        let diagram = SequenceDiagram(title: flow.title, lanes: lanes, rows: rows)
        let drawings = SequenceDiagram.Width.allCases.map { diagram.svg($0) }
        page.html(
            "<div class=\"drawing\" data-search-exclude>\n\(drawings.joined(separator: "\n"))\n</div>"
        )
        page.heading("Step by step", anchor: "steps")
        page.markdown(
            """
            What begins with `$` is a part of an earlier answer, or given: `$alice.token` is what Alice logs in with. Answers and
            pushes hold more than is shown.
            """
        )
        for (index, step) in flow.steps.enumerated() { page.html(html(step.action, index + 1)) }
        return page
    }

    // MARK: Drawing

    /// The lanes from left to right: the devices of the first person, the server, the devices of
    /// the other people.
    private var lanes: [String] {
        var devices: [String] = []
        for step in flow.steps {
            if let device = step.action.device, !devices.contains(device) { devices.append(device) }
        }
        func person(_ device: String) -> Substring { device.prefix { $0 != "." } }
        let first = devices.first.map(person)
        return devices.filter { person($0) == first } + ["server"]
            + devices.filter { person($0) != first }
    }

    private var rows: [SequenceDiagram.Row] {
        flow.steps.enumerated().flatMap { index, step in rows(of: step.action, index + 1) }
    }

    private func rows(of action: Flow.Action, _ number: Int) -> [SequenceDiagram.Row] {
        switch action {
        case .connect(let device):
            return [.event(number: number, lane: device, text: "connects", isEnd: false)]
        case .login(let device):
            return [.event(number: number, lane: device, text: "logs in", isEnd: false)]
        case .disconnect(let device):
            return [.event(number: number, lane: device, text: "is gone", isEnd: true)]
        case .silence(let device):
            return [.note("\(number) Nothing comes to \(device).")]
        case .note(let text): return [.note(text)]
        case .push(let opcode, let device, let value, _):
            return [
                packet(number, from: "server", to: device, .push, opcode, value)
            ]
        case .request(let opcode, let device, let value, let answer, _):
            let request = packet(number, from: device, to: "server", .request, opcode, value)
            switch answer {
            case .reply(let value):
                return [
                    request,
                    .packet(
                        number: nil,
                        from: "server",
                        to: device,
                        .reply,
                        title: "reply",
                        detail: Self.brief(value),
                        address: nil
                    ),
                ]
            case .error(let code):
                let address = prose.places.address(of: .error(code), from: prose.page)
                return [
                    request,
                    .packet(
                        number: nil,
                        from: "server",
                        to: device,
                        .error,
                        title: code,
                        detail: "",
                        address: address
                    ),
                ]
            }
        }
    }

    private func packet(
        _ number: Int,
        from: String,
        to: String,
        _ style: SequenceDiagram.Row.Style,
        _ opcode: String,
        _ value: WireNode
    ) -> SequenceDiagram.Row {
        .packet(
            number: number,
            from: from,
            to: to,
            style,
            title: opcode,
            detail: Self.brief(value),
            address: prose.places.address(of: .opcode(opcode), from: prose.page)
        )
    }

    /// Returns the keys and values of a packet. Omits a value that refers to an earlier step.
    private static func brief(_ value: WireNode) -> String {
        guard case .map(let pairs) = value else { return "" }
        return pairs.map { pair in
            guard case .string(let key) = pair.key else { return JSONText(pair.key).compact() }
            switch pair.value {
            case .map(let inner): return "\(key) {\(brief(.map(inner)))}"
            case .array(let items): return items.isEmpty ? "\(key) []" : "\(key) […]"
            case .string(let text): return text.hasPrefix("$") ? key : "\(key) “\(text)”"
            default: return "\(key) \(JSONText(pair.value).compact())"
            }
        }.joined(separator: ", ")
    }

    // MARK: Steps

    private func html(_ action: Flow.Action, _ number: Int) -> String {
        let text: String
        var parts: [String] = []
        switch action {
        case .connect(let device): text = "<b>\(device)</b> connects."
        case .login(let device):
            let requests = prose.html("SESSION_INIT and LOGIN")
            text = "<b>\(device)</b> connects and logs in by \(requests)."
        case .disconnect(let device): text = "<b>\(device)</b> loses the connection."
        case .silence(let device): text = "<b>\(device)</b> gets nothing until a PING is answered."
        case .note(let note): return "<p class=\"step remark\">\(prose.html(note))</p>"
        case .push(let opcode, let device, let value, let save):
            text = "<b>\(device)</b> gets the push \(prose.code(opcode))."
            parts = [SitePage.json(value)] + kept(save)
        case .request(let opcode, let device, let value, let answer, let save):
            text = "<b>\(device)</b> asks \(prose.code(opcode))."
            parts = [SitePage.json(value)]
            switch answer {
            case .reply(.map([])): parts.append("<p>It is answered.</p>")
            case .reply(let value):
                parts += ["<p>The reply holds</p>", SitePage.json(value)]
            case .error(let code): parts.append("<p>It is refused: \(prose.code(code)).</p>")
            }
            parts += kept(save)
        }
        let all = ["<p><span class=\"number\">\(number)</span> \(text)</p>"] + parts
        return "<div class=\"step\" id=\"step-\(number)\">\n\(all.joined(separator: "\n"))\n</div>"
    }

    private func kept(_ saved: [Flow.Saved]) -> [String] {
        guard !saved.isEmpty else { return [] }
        let names = saved.map { "\(HTML.code("$" + $0.name)) is \(HTML.code($0.pointer))" }
        return ["<p class=\"kept\">From here on \(names.joined(separator: ", ")).</p>"]
    }
}

extension Flow.Action {
    /// The device that the action is about.
    fileprivate var device: String? {
        switch self {
        case .connect(let device), .disconnect(let device), .login(let device),
            .silence(let device), .request(_, let device, _, _, _), .push(_, let device, _, _):
            device
        case .note: nil
        }
    }
}
