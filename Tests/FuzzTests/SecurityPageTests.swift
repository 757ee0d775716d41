import Foundation
import Testing

@testable import tambour_spec

/// Checks that the limits and tests that `docs/security.md` names exist.
@Suite("The page about security")
struct SecurityPageTests {
    private static let root = URL(filePath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent()

    private static func names() throws -> [String] {
        let page = try String(
            contentsOf: root.appending(path: "docs/security.md"),
            encoding: .utf8
        )
        let parts = page.split(separator: "`", omittingEmptySubsequences: false)
        return parts.enumerated().compactMap { index, part in
            index.isMultiple(of: 2) || part.contains(" ") ? nil : String(part)
        }
    }

    @Test("names only tests that exist")
    func tests() throws {
        let names = try Self.names().filter {
            $0.hasSuffix("Tests") && $0.first?.isUppercase == true
        }
        #expect(names.count > 20)
        let folder = Self.root.appending(path: "Tests")
        let files = FileManager.default.enumerator(atPath: folder.path)
        var suites: Set<String> = []
        while let path = files?.nextObject() as? String {
            guard path.hasSuffix(".swift") else { continue }
            let text = try String(contentsOf: folder.appending(path: path), encoding: .utf8)
            for line in text.split(separator: "\n") {
                // Suites inside `#if` for a package trait are indented.
                let line = line.drop { $0 == " " }
                guard line.hasPrefix("struct ") else { continue }
                suites.insert(String(line.dropFirst(7).prefix { $0.isLetter || $0.isNumber }))
            }
        }
        for name in names { #expect(suites.contains(name), "there is no suite \(name)") }
    }

    @Test("names only limits that exist")
    func limits() throws {
        var loader = SpecificationLoader(root: Self.root.appending(path: "protocol-spec"))
        let limits = Set(loader.load().limits.map(\.name))
        let isLimit = /max[A-Z]\w+|\w+Ms|\w+Burst|\w+(PerMinute|PerHour)|\w+Rounds|\w+Tries/
        let names = try Self.names().filter { $0.wholeMatch(of: isLimit) != nil }
        #expect(names.count > 10)
        for name in names { #expect(limits.contains(name), "there is no limit \(name)") }
    }
}
