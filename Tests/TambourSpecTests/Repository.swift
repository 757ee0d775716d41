import Foundation
import Testing

@testable import tambour_spec

/// The repository that the tests were built from.
enum Repository {
    static let root = URL(filePath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent()
        .deletingLastPathComponent()

    /// The specification in `protocol-spec/`, read once.
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
