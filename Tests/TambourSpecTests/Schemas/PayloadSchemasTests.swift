import Foundation
import TambourTesting
import Testing

@testable import tambour_spec

@Suite("JSON Schemas")
struct PayloadSchemasTests {
    /// A Python interpreter with `jsonschema`: the one that `TAMBOUR_STOCK_PYTHON` names, or the
    /// one in the build folder.
    static let python: URL? = {
        if let named = ProcessInfo.processInfo.environment["TAMBOUR_STOCK_PYTHON"] {
            return URL(filePath: named)
        }
        let python = Repository.root.appending(path: ".build/venv/bin/python")
        return FileManager.default.isExecutableFile(atPath: python.path) ? python : nil
    }()

    private func schemas(
        _ specification: Specification
    ) -> [(path: String, content: String)] {
        PayloadSchemas(specification: specification).files()
    }

    @Test("are there for every payload, and the same every time")
    func files() throws {
        let specification = try Repository.specification()
        var expected: Set<String> = []
        for opcode in specification.families.flatMap(\.opcodes) {
            if opcode.request != nil { expected.insert("schema/\(opcode.name).request.json") }
            if opcode.reply != nil { expected.insert("schema/\(opcode.name).reply.json") }
            if opcode.push != nil { expected.insert("schema/\(opcode.name).push.json") }
            expected.insert("schema/\(opcode.name).error.json")
        }
        let files = schemas(specification)
        #expect(Set(files.map(\.path)) == expected)
        #expect(files.count == expected.count)
        #expect(files.map(\.content) == schemas(specification).map(\.content))
    }

    /// Runs `validate.py` on the JSON Schemas that are generated from a specification.
    private func validate(
        _ specification: Specification
    ) throws -> (status: Int32, lines: [Substring]) {
        let folder = FileManager.default.temporaryDirectory.appending(
            path: "tambour-schemas-\(UUID())"
        )
        defer { try? FileManager.default.removeItem(at: folder) }
        for file in schemas(specification) {
            let url = folder.appending(path: file.path)
            try FileManager.default.createDirectory(
                at: url.deletingLastPathComponent(),
                withIntermediateDirectories: true
            )
            try Data(file.content.utf8).write(to: url)
        }
        let python = try #require(Self.python)
        let outcome = try ChildProcess.run(
            python,
            [
                Repository.root.appending(path: "Tests/TambourSpecTests/Schemas/validate.py").path,
                Repository.root.appending(path: Generator.bundle).path,
                folder.appending(path: "schema").path,
            ]
        )
        return (outcome.status, outcome.output.split(separator: "\n"))
    }

    @Test(
        "accept every example and its other encodings, and no refused one that they can tell",
        .enabled(if: python != nil, "needs the Python environment `make test` makes")
    )
    func examples() throws {
        let (status, lines) = try validate(try Repository.specification())
        #expect(status == 0, "\(lines.joined(separator: "\n"))")
        print("JSON Schemas: \(lines.last ?? "nothing")")
    }

    /// A mistake in the schema of the field `message` of a MSG_SEND request, and the complaint that
    /// the validator must make.
    struct Mistake: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let says: String
        let change: @Sendable (inout Field) -> Void
    }

    static let mistakes = [
        Mistake(testDescription: "a type that is too narrow", says: "is not valid") {
            $0.type = .bool
        },
        Mistake(testDescription: "a type that is too wide", says: "is valid") { $0.type = .any },
        Mistake(testDescription: "a field that need not be there", says: "is valid") {
            $0.isRequired = false
        },
    ]

    @Test(
        "that are wrong are noticed",
        .enabled(if: python != nil, "needs the Python environment `make test` makes"),
        arguments: mistakes
    )
    func wrong(mistake: Mistake) throws {
        var specification = try Repository.specification()
        Trials.forEachOpcode(&specification) { opcode in
            guard opcode.name == "MSG_SEND", var request = opcode.request else { return }
            for index in request.fields.indices where request.fields[index].key == "message" {
                mistake.change(&request.fields[index])
            }
            opcode.request = request
        }
        let (status, lines) = try validate(specification)
        #expect(status == 1)
        let failures = lines.filter { $0.hasPrefix("FAILED MSG_SEND.request") }
        #expect(failures.contains { $0.contains(mistake.says) }, "\(lines)")
    }
}
