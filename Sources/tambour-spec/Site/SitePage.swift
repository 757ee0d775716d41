/// A page under construction: Markdown with HTML blocks.
struct SitePage {
    /// The path relative to the root of the site, without a suffix.
    let path: String
    let title: String
    private(set) var text: String

    /// - Parameters:
    ///   - anchor: The anchor of the title.
    ///   - description: The description for search engines; nil for a page without a description.
    ///   - boost: The weight of the page in search results.
    ///   - isAlone: Whether the page is shown without the navigation at its side.
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

    /// Adds a block of HTML.
    mutating func html(_ block: String) { text += "\n\(block)\n" }

    mutating func markdown(_ block: String) { text += "\n\(block)\n" }

    /// Returns a value as JSON.
    static func json(_ value: WireNode) -> String {
        let html = JSONText(value).html()
        return "<div class=\"highlight json\"><pre><code>\(html)</code></pre></div>"
    }
}
