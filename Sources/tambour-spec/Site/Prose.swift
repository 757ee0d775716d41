/// Converts texts of the specification to HTML or Markdown for a page. Turns the names in the texts
/// into links.
struct Prose {
    let places: SitePlaces
    /// The path of the page that contains the texts.
    let page: String

    /// Returns a text of the YAML as HTML.
    func html(_ text: String) -> String {
        var result = ""
        var rest = text[...]
        while let match = rest.firstMatch(of: /`([^`]+)`|\b[A-Z][A-Z0-9_]{2,}\b/) {
            result += HTML.escaped(rest[..<match.range.lowerBound])
            if let code = match.output.1 {
                result += name(String(code)) ?? HTML.code(code)
            } else {
                let word = String(match.output.0)
                result += opcode(word).map { HTML.link(word, to: $0) } ?? word
            }
            rest = rest[match.range.upperBound...]
        }
        return result + HTML.escaped(rest)
    }

    /// Returns a name as code with a link. Returns nil if the name has no link target, or if the
    /// target is this page.
    func name(_ name: String) -> String? {
        guard let target = places.target(named: name), !isHere(target) else { return nil }
        return HTML.link(HTML.code(name), to: places.address(of: target, from: page))
    }

    /// Returns a name as code. Adds a link, unless the name has no link target or the target is
    /// this page as a whole.
    func code(_ name: String) -> String { self.name(name) ?? HTML.code(name) }

    /// Returns a link to a target.
    ///
    /// - Parameter content: HTML.
    func link(_ content: String, to target: SitePlaces.Target) -> String {
        HTML.link(content, to: places.address(of: target, from: page))
    }

    /// Returns a type expression with links to its structs and enumerations.
    func type(_ type: WireType) -> String {
        switch type {
        case .list(let element): "list&lt;\(self.type(element))&gt;"
        case .map(let key, let value): "map&lt;\(key.yaml), \(self.type(value))&gt;"
        case .names(let value): "names&lt;\(self.type(value))&gt;"
        case .packed(let value): self.type(value)
        case .named(let name): link(HTML.escaped(name), to: .type(name))
        default: link(type.yaml, to: .type(type.yaml))
        }
    }

    /// Adds anchors for requirements and links for names to the Markdown of a chapter. Leaves code
    /// unchanged.
    func markdown(_ text: String) -> String {
        var isCode = false
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false).map { line in
            if line.drop(while: { $0 == " " }).hasPrefix("```") {
                isCode.toggle()
                return String(line)
            }
            return isCode || line.hasPrefix("#") ? String(line) : markdownLine(line)
        }
        return lines.joined(separator: "\n")
    }

    private func markdownLine(_ line: Substring) -> String {
        var result = ""
        var rest = line
        // Leaves existing links in the text unchanged.
        let pattern = /\[[^\]]*\]\([^)]*\)|\[([A-Z]{3}-[0-9]{2})\]|`([^`]+)`|\b[A-Z][A-Z0-9_]{2,}\b/
        while let match = rest.firstMatch(of: pattern) {
            result += rest[..<match.range.lowerBound]
            let text = String(match.output.0)
            if let id = match.output.1 {
                result += "[\(id)](#\(id)){ #\(id) .requirement }"
            } else if let code = match.output.2 {
                result += markdownLink(text, to: places.target(named: String(code)))
            } else if opcode(text) != nil {
                result += markdownLink(text, to: .opcode(text))
            } else {
                result += text
            }
            rest = rest[match.range.upperBound...]
        }
        return result + rest
    }

    private func markdownLink(_ text: String, to target: SitePlaces.Target?) -> String {
        guard let target, !isHere(target) else { return text }
        return "[\(text)](\(places.address(of: target, from: page, suffix: "md")))"
    }

    private func opcode(_ word: String) -> String? {
        let target = SitePlaces.Target.opcode(word)
        guard places.target(named: word) == target, !isHere(target) else { return nil }
        return places.address(of: target, from: page)
    }

    /// Returns whether a target is this page as a whole, not an anchor on it.
    private func isHere(_ target: SitePlaces.Target) -> Bool {
        places.place(of: target) == SitePlaces.Place(page: page, anchor: nil)
    }
}
