import Foundation
import Testing

@testable import tambour

/// Tests that `docs/schema` describes exactly the fields that the encoders write. No other document
/// describes the JSON.
@Suite("Fields of the JSON")
struct JSONFieldsTests {
    private static let folder = URL(filePath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        .appending(path: "docs/schema")

    private struct Schema: Decodable {
        struct Property: Decodable {
            let description: String
        }
        let properties: [String: Property]
        let required: [String]
    }

    private static let lines: [(schema: String, fields: [String])] = [
        ("action", ActionLine.fields), ("chat", ChatLine.fields),
        ("conflict", ConflictLine.fields), ("entity", EntityLine.fields),
        ("message", MessageLine.fields), ("person", PersonLine.fields),
        ("session", SessionLine.fields),
    ]

    @Test("are those of the schema, each with a description", arguments: Self.lines)
    func fields(name: String, fields: [String]) throws {
        let file = Self.folder.appending(path: "\(name).json")
        let schema = try JSONDecoder().decode(Schema.self, from: Data(contentsOf: file))
        #expect(schema.properties.keys.sorted() == fields.sorted())
        #expect(Set(schema.required).isSubset(of: fields))
        #expect(schema.properties.values.allSatisfy { $0.description.hasSuffix(".") })
    }

    @Test("of every schema have an encoder")
    func schemas() throws {
        let files = try FileManager.default.contentsOfDirectory(atPath: Self.folder.path)
        let others = Set(files).subtracting(Self.lines.map { "\($0.schema).json" })
        #expect(others == ["preferences.json"])
    }
}
