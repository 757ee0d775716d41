/// Builds small pieces of HTML.
enum HTML {
    static func escaped(_ text: some StringProtocol) -> String {
        var result = ""
        for character in text {
            switch character {
            case "&": result += "&amp;"
            case "<": result += "&lt;"
            case ">": result += "&gt;"
            case "\"": result += "&quot;"
            default: result.append(character)
            }
        }
        return result
    }

    static func code(_ text: some StringProtocol) -> String { "<code>\(escaped(text))</code>" }

    /// - Parameter content: HTML.
    static func link(_ content: String, to address: String) -> String {
        "<a href=\"\(escaped(address))\">\(content)</a>"
    }
}

/// A table that a phone displays as a list: each row becomes a block, and each cell shows its
/// column name.
///
/// Empty columns are omitted.
struct HTMLTable {
    private enum Row {
        case cells([String], attributes: String)
        case section(String)
    }

    /// The class name of the table for the stylesheet. The table also has the class `sheet`.
    let name: String
    let columns: [String]
    private var rows: [Row] = []

    init(_ name: String, _ columns: [String]) {
        self.name = name
        self.columns = columns
    }

    var isEmpty: Bool { rows.isEmpty }

    /// - Parameters:
    ///   - cells: HTML, one for each column.
    ///   - id: The anchor of the row.
    mutating func row(_ cells: [String], id: String? = nil) {
        precondition(cells.count == columns.count, "a cell for each column")
        let attributes = id.map { " id=\"\(HTML.escaped($0))\"" } ?? ""
        rows.append(.cells(cells, attributes: attributes))
    }

    /// Adds a row that serves as the heading of the rows after it.
    mutating func section(_ title: String) { rows.append(.section(title)) }

    var html: String {
        let shown = columns.indices.filter { column in
            rows.contains { row in
                guard case .cells(let cells, _) = row else { return false }
                return !cells[column].isEmpty
            }
        }
        let head = shown.map { "<th>\(HTML.escaped(columns[$0]))</th>" }.joined()
        let body = rows.map { row in
            switch row {
            case .section(let title):
                "<tr class=\"section\"><th colspan=\"\(shown.count)\">\(title)</th></tr>\n"
            case .cells(let cells, let attributes):
                "<tr\(attributes)>"
                    + shown.map { column in
                        // The space prevents the search from joining the words of two cells.
                        "<td data-label=\"\(HTML.escaped(columns[column]))\">"
                            + (cells[column].isEmpty ? "" : cells[column] + " ") + "</td>"
                    }.joined() + "</tr>\n"
            }
        }
        return """
            <table class="sheet \(name)">
            <thead><tr>\(head)</tr></thead>
            <tbody>
            \(body.joined())</tbody>
            </table>
            """
    }
}
