import Foundation
import Testing

@testable import tambour_spec

/// The repository the tests were built from.
enum Repository {
    static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    static func specification() throws -> Specification {
        var loader = SpecificationLoader(root: root.appending(path: "protocol-spec"))
        let specification = loader.load()
        try #require(loader.problems.isEmpty, "\(loader.problems)")
        return specification
    }
}
