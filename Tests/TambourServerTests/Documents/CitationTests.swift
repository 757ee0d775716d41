import Foundation
import Testing

/// Comments and test titles cite rules and documents by name. Checks that the cited names exist.
@Suite("Citations lead somewhere")
struct CitationTests {
    private static let root = URL(fileURLWithPath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    /// The page with the rules of client synchronisation.
    private static let page = "docs/client-sync.md"
    /// The folders that cite the page's rules.
    private static let citing = [
        "Sources/TambourClient", "Tests/TambourClientTests", "Tests/SimulationTests",
        "Tests/EntityTests",
    ]

    private struct Source {
        let path: String
        let text: String

        /// The comments by line, from `//` to the end of the line.
        var comments: [(place: String, text: Substring)] {
            text.split(separator: "\n", omittingEmptySubsequences: false).enumerated()
                .compactMap { number, line in
                    guard line.contains("//") else { return nil }
                    return line.firstMatch(of: /(?:^|\s)(\/\/.*)/).map {
                        ("\(path):\(number + 1)", $0.1)
                    }
                }
        }

        /// The titles of tests and suites.
        var names: [(place: String, text: Substring)] {
            text.matches(of: /@(?:Test|Suite)\(\s*"([^"\n]*)"/).map { (path, $0.1) }
        }
    }

    private static func sources(under folder: String) throws -> [Source] {
        let files = FileManager.default.enumerator(atPath: root.appendingPathComponent(folder).path)
        var sources: [Source] = []
        while let path = files?.nextObject() as? String {
            guard path.hasSuffix(".swift") else { continue }
            sources.append(
                Source(path: "\(folder)/\(path)", text: try text(of: "\(folder)/\(path)"))
            )
        }
        return sources
    }

    private static func text(of path: String) throws -> String {
        try String(contentsOf: root.appendingPathComponent(path), encoding: .utf8)
    }

    /// Returns the comments and test titles that may cite rules.
    private static func remarks() throws -> [(place: String, text: Substring)] {
        try citing.flatMap { try sources(under: $0) }.flatMap { $0.comments + $0.names }
    }

    @Test("every rule that the client cites is on its page, and every rule of the page is cited")
    func rules() throws {
        var rules: Set<Substring> = []
        for line in try Self.text(of: Self.page).split(separator: "\n") {
            guard let rule = line.prefixMatch(of: /- \*\*([A-Z][1-9][0-9]?)\*\*/)?.1 else {
                continue
            }
            let isNew = rules.insert(rule).inserted
            #expect(isNew, "\(Self.page) has \(rule) twice")
        }
        #expect(rules.count >= 37)
        var cited: Set<Substring> = []
        for remark in try Self.remarks() {
            let pattern = /\b[A-Z][1-9][0-9]?\b/.wordBoundaryKind(.simple)
            for match in remark.text.matches(of: pattern) {
                cited.insert(match.output)
                #expect(rules.contains(match.output), "\(remark.place) cites \(match.output)")
            }
        }
        let uncited = rules.subtracting(cited).sorted()
        #expect(uncited == [], "\(Self.page) has rules that nothing cites")
    }

    @Test("every section of the page that is cited has its heading")
    func sections() throws {
        let headings = Set(
            try Self.text(of: Self.page).split(separator: "\n").compactMap {
                $0.prefixMatch(of: /##+\s([0-9](?:\.[0-9])?)\.?\s/)?.1
            }
        )
        var count = 0
        for remark in try Self.remarks() {
            var sections: [Substring] = []
            if let range = remark.text.firstRange(of: Self.page) {
                let rest = remark.text[range.upperBound...]
                sections = rest.matches(of: /[0-9](?:\.[0-9])?/).map(\.output)
            } else if let match = remark.text.prefixMatch(of: /([0-9]\.[0-9]):/) {
                sections = [match.1]
            }
            for section in sections {
                count += 1
                #expect(headings.contains(section), "\(remark.place) cites section \(section)")
            }
        }
        #expect(count > 10)
    }

    @Test("every suite that the page names exists")
    func suites() throws {
        let files = Set(
            try Self.sources(under: "Tests").map {
                URL(fileURLWithPath: $0.path).lastPathComponent
            }
        )
        let suites = try Self.text(of: Self.page).matches(of: /`([A-Z]\w*Tests)`/).map { $0.1 }
        #expect(suites.count > 30)
        for suite in suites {
            #expect(files.contains("\(suite).swift"), "\(Self.page) names \(suite)")
        }
    }

    @Test("every document that a comment names exists", arguments: ["Sources", "Tests"])
    func documents(folder: String) throws {
        var count = 0
        for source in try Self.sources(under: folder) where source.text.contains(".md") {
            for comment in source.comments where comment.text.contains(".md") {
                for match in comment.text.matches(of: /[\w.+\/-]+\.md/) {
                    // Skip the address of an external page. The expression matches no colon, so
                    // the match starts with the slashes after the scheme.
                    if match.output.hasPrefix("//") { continue }
                    count += 1
                    let file = Self.root.appendingPathComponent(String(match.output))
                    #expect(
                        FileManager.default.fileExists(atPath: file.path),
                        "\(comment.place) names \(match.output)"
                    )
                }
            }
        }
        #expect(count > 5)
    }
}
