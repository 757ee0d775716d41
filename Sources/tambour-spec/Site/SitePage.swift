/// A page under construction: Markdown with blocks of HTML.
struct SitePage {
    /// Below the root, without a suffix.
    let path: String
    let title: String
    private(set) var text: String

    /// - Parameters:
    ///   - anchor: of the title.
    ///   - description: what search engines show; nil for none.
    ///   - boost: how much more than others the search finds it.
    ///   - isAlone: whether it stands without a list of the pages beside it.
    init(
        _ path: String,
        title: String,
        anchor: String? = nil,
        description: String? = nil,
        boost: Double = 1,
        isAlone: Bool = false
    ) {
        self.path = path
        self.title = title
        var lines: [String] = []
        if let description {
            lines.append("description: \(JSONText(.string(description)).compact())")
        }
        if boost != 1 { lines += ["search:", "  boost: \(boost)"] }
        if isAlone { lines += ["hide:", "  - navigation"] }
        text = lines.isEmpty ? "" : "---\n\(lines.joined(separator: "\n"))\n---\n\n"
        text += "# \(title)" + (anchor.map { " { #\($0) }" } ?? "") + "\n"
    }

    /// - Parameter title: Markdown.
    mutating func heading(_ title: String, anchor: String, level: Int = 2) {
        text += "\n\(String(repeating: "#", count: level)) \(title) { #\(anchor) }\n"
    }

    /// A block of its own.
    mutating func html(_ block: String) { text += "\n\(block)\n" }

    mutating func markdown(_ block: String) { text += "\n\(block)\n" }

    /// A value as JSON.
    static func json(_ value: WireNode) -> String {
        let html = JSONText(value).html()
        return "<div class=\"highlight json\"><pre><code>\(html)</code></pre></div>"
    }
}
