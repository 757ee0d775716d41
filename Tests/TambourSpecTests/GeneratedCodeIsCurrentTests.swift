import Foundation
import Testing

@testable import tambour_spec

@Suite("Generated code")
struct GeneratedCodeIsCurrentTests {
    @Test("is what the specification says now")
    func isCurrent() throws {
        let problems = GeneratedFiles.problems(
            of: try Repository.specification(),
            root: Repository.root
        )
        #expect(problems.isEmpty, "\(problems.map(\.description).joined(separator: "\n"))")
    }

    @Test("is the same every time")
    func isDeterministic() throws {
        let first = Generator(specification: try Repository.specification()).files()
        let second = Generator(specification: try Repository.specification()).files()
        #expect(first.map(\.content) == second.map(\.content))
        #expect(first.map(\.path) == second.map(\.path).sorted())
    }

    @Test("that is old is shown with what differs")
    func showsDifference() throws {
        var specification = try Repository.specification()
        let index = try #require(specification.limits.firstIndex { $0.name == "maxTextUnits" })
        specification.limits[index].value = 4001
        let problems = GeneratedFiles.problems(of: specification, root: Repository.root)
        let text = try #require(problems.first { $0.origin.file.hasSuffix("/Limits.swift") }).text
        #expect(text.contains("standard: 4000)"))
        #expect(text.contains("standard: 4001)"))
    }
}
