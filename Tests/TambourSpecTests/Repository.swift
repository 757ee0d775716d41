import Foundation
import Testing

@testable import tambour_spec

/// The repository from which the tests were built.
enum Repository {
    static let root = URL(filePath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent()
        .deletingLastPathComponent()

    /// Returns the specification in `protocol-spec/`. Reads it only once.
    static func specification() throws -> Specification {
        try #require(loaded.problems.isEmpty, "\(loaded.problems)")
        return loaded.specification
    }

    private static let loaded: (specification: Specification, problems: [Problem]) = {
        var loader = SpecificationLoader(root: root.appending(path: "protocol-spec"))
        let specification = loader.load()
        return (specification, loader.problems)
    }()
}
