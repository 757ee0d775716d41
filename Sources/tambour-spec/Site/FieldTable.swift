/// A table of the fields of a struct.
struct FieldTable {
    private let type: StructType
    private let specification: Specification
    private let prose: Prose
    /// The prefix of the anchors of the fields; nil if another table already contains these
    /// anchors.
    private let anchor: String?

    init(_ type: StructType, in specification: Specification, _ prose: Prose, anchor: String?) {
        self.type = type
        self.specification = specification
        self.prose = prose
        self.anchor = anchor
    }

    func html() -> String {
        var table = HTMLTable(
            "fields",
            ["Field", "Type", "Presence", "Limit", "Since", "Meaning"]
        )
        for field in type.fields {
            let name = PacketAnatomy.FieldName(type: type.name, key: field.key)
            table.row(
                [
                    prose.link(HTML.code(field.key), to: .field(name)),
                    prose.type(field.type), presence(of: field), limits(of: field),
                    "\(field.since)", meaning(of: field),
                ],
                id: anchor.map { "\($0).\(field.key)" }
            )
        }
        return table.html
    }

    private func presence(of field: Field) -> String {
        if field.isRequired { return "<b>required</b>" }
        guard let value = field.defaultValue else { return "optional" }
        return "default \(HTML.code(JSONText(PayloadModel.node(of: value)).compact()))"
    }

    private func limits(of field: Field) -> String {
        let limits = field.limitNames.compactMap { specification.limit(named: $0) }.map { limit in
            prose.link(limit.value.separated, to: .limit(limit.name)) + " \(limit.unit) "
                + "<span class=\"reason\">\(prose.html(limit.reason))</span>"
        }
        return limits.joined(separator: " ")
    }

    private func meaning(of field: Field) -> String {
        var text = prose.html(field.doc)
        if let why = field.why { text += " <span class=\"why\">\(prose.html(why))</span>" }
        if let capability = field.capability {
            let only = specification.isDialect(capability) ? "only in the dialect" : "only with"
            text += " <span class=\"mark\">\(only) \(prose.code(capability))</span>"
        }
        for form in field.forms {
            text +=
                " <span class=\"mark\">in \(prose.code(form.dialect)) \(HTML.escaped(form.text))</span>"
        }
        if let deprecated = field.deprecated {
            text += " <span class=\"mark\">\(deprecated.text(prose))</span>"
        }
        switch field.duplicates {
        case .merged:
            let isList = if case .list = field.type { true } else { false }
            text +=
                " <span class=\"mark\">"
                + (isList ? "a repeated item counts once" : "the last value of a key counts")
                + "</span>"
        case .refused: text += " <span class=\"mark\">nothing may be named twice</span>"
        case .kept, nil: break
        }
        switch field.anyCheck {
        case .skipped: text += " <span class=\"mark\">stepped over, whatever it holds</span>"
        case .handler: text += " <span class=\"mark\">each value is judged by itself</span>"
        case .reader: break
        }
        if field.isSensitive { text += " <span class=\"mark\">secret, never logged</span>" }
        return text
    }
}

extension Deprecation {
    /// Returns the deprecation as HTML. Names the replacement, and the release that may remove the
    /// deprecated item.
    func text(_ prose: Prose) -> String {
        "deprecated since release \(since), use \(prose.code(replacement)); may go with release \(sunset)"
    }
}

extension Int {
    /// The number with commas as thousands separators.
    var separated: String {
        var digits = Array(String(magnitude))
        var index = digits.count - 3
        while index > 0 {
            digits.insert(",", at: index)
            index -= 3
        }
        return (self < 0 ? "-" : "") + String(digits)
    }
}
