import Foundation
import TambourMessenger
import TambourSQL
import TambourServer
import TambourTesting
import Testing

@Suite("Documents name what exists")
struct JourneyTests {
    private static let root = URL(fileURLWithPath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    /// Returns the texts between backticks on a page.
    private static func quoted(_ page: String) throws -> [String] {
        let text = try String(
            contentsOf: root.appendingPathComponent(page),
            encoding: .utf8
        )
        return text.matches(of: /`([^`\n]+)`/).map { String($0.1) }
    }

    private static func exists(_ path: String) -> Bool {
        FileManager.default.fileExists(atPath: root.appendingPathComponent(path).path)
    }

    @Test(
        "every file that a document names is there",
        arguments: [
            "README.md", "CONTRIBUTING.md", "docs/journey.md", "docs/concurrency.md",
            "docs/client-sync.md", "docs/data.md", "docs/operations.md", "docs/terminal.md",
            "docs/command-line.md", "docs/upgrade.md",
        ]
    )
    func filesExist(page: String) throws {
        // The example in CONTRIBUTING.md names an opcode that does not exist yet.
        let paths = try Self.quoted(page).filter {
            $0.wholeMatch(of: /(Sources|Tests|docs|docker|protocol-spec|scripts)\/[\w.\/+-]+/)
                != nil
        }
        for path in paths where !path.hasSuffix("/chat_count.yaml") {
            #expect(Self.exists(path), "\(page) names \(path)")
        }
    }

    @Test("every function on the journey is declared in the file that is named before it")
    func journeyNamesExist() throws {
        var functions = 0
        let page = try String(
            contentsOf: Self.root.appendingPathComponent("docs/journey.md"),
            encoding: .utf8
        )
        // The path of a file, followed only by spaces and the names of functions in the file.
        for match in page.matches(of: /`(\w+\/[\w\/+]+\.swift)`((?: +`\w+`)+)/) {
            let file = Self.root.appendingPathComponent("Sources/\(match.1)")
            let code = try String(contentsOf: file, encoding: .utf8)
            for name in match.2.matches(of: /\w+/) {
                functions += 1
                let isDeclared =
                    code.contains("func \(name.0)(") || code.contains("func \(name.0)<")
                #expect(isDeclared, "docs/journey.md: \(name.0) in \(match.1)")
            }
        }
        #expect(functions > 40)
        let named = page.matches(of: /`\w+\/[\w\/+]+\.swift`/).count
        let read = page.matches(of: /`\w+\/[\w\/+]+\.swift`(?: +`\w+`)+/).count
        #expect(named == read, "a file of the journey is named without a function")
    }

    @Test("the table of who owns what names queues and types that exist")
    func concurrencyNamesExist() throws {
        let sources = FileManager.default.enumerator(
            at: Self.root.appendingPathComponent("Sources"),
            includingPropertiesForKeys: nil
        )
        var code = ""
        for case let file as URL in try #require(sources) where file.pathExtension == "swift" {
            code += try String(contentsOf: file, encoding: .utf8)
        }
        for name in try Self.quoted("docs/concurrency.md") + Self.quoted("docs/data.md") {
            guard let match = name.wholeMatch(of: /([A-Z]\w+)(\.\w+)?/), name != name.uppercased()
            else { continue }
            #expect(code.contains(match.1), "a document names \(name)")
        }
    }

    @Test("every table and every metric stands on the page that tells of them")
    func tablesAndMetrics() throws {
        try withServer { server in
            let path = "\(server.dataDirectory)/tambour.db"
            let store = try SQLiteConnection(path: path, mode: .readOnly)
            let data = Set(try Self.quoted("docs/data.md"))
            for table in try store.tableNames() { #expect(data.contains(table), "\(table)") }

            let operations = Set(
                try Self.quoted("docs/operations.md").map { $0.prefix { $0 != "{" } }
            )
            var metrics: Set<Substring> = []
            _ = try AdminClient(dataDirectory: server.dataDirectory).run(.metrics) { line in
                let words = line.split(separator: " ")
                if words[1] == "TYPE" { metrics.insert(words[2]) }
            }
            #expect(metrics == operations.filter { $0.hasPrefix("tambour_") })
        }
    }
}
