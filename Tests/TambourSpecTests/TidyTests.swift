import Foundation
import Testing

/// Tests rules that no compiler checks: which imports are permitted, which constructs libraries
/// must not contain, and which markers files need.
@Suite("Tidiness of the sources")
struct TidyTests {
    /// The imports that each target may have: modules of lower layers, and foreign modules.
    ///
    /// A module imports only modules of lower layers. Only programs import the third layer. Only
    /// the targets that the table names import a foreign library.
    private static let arrows: [String: Set<String>] = [
        // Layer 1: ground.
        "TambourProtocol": ["Glibc", "Darwin"],
        "TambourEvents": ["TambourProtocol"],
        "TambourFraming": ["TambourProtocol", "CLZ4"],
        "TambourQueues": ["Dispatch", "Glibc", "Synchronization"],
        "TambourNet": [
            "TambourQueues", "CEpoll", "Dispatch", "Glibc", "Darwin", "Synchronization",
        ],
        "TambourTLS": ["TambourNet", "COpenSSL", "Glibc", "Synchronization"],
        "TambourSQL": ["CLibPQ", "CSQLite", "Glibc", "Synchronization"],
        // Layer 2: parts.
        "TambourStore": [
            "TambourEvents", "TambourProtocol", "TambourSQL", "Crypto", "Synchronization",
        ],
        "TambourMessenger": [
            "TambourEvents", "TambourProtocol", "TambourQueues", "TambourSQL", "TambourStore",
            "Crypto", "CryptoExtras", "Dispatch", "Glibc", "Logging", "Synchronization",
        ],
        // Layer 3: doors.
        "TambourGateway": [
            "TambourEvents", "TambourFraming", "TambourMessenger", "TambourNet",
            "TambourProtocol", "TambourQueues",
            "Dispatch", "Glibc", "Logging", "Synchronization",
        ],
        "TambourClient": [
            "TambourFraming", "TambourNet", "TambourProtocol", "TambourQueues", "TambourTLS",
            "Dispatch", "Foundation", "GRDB", "Glibc", "Synchronization",
        ],
        "TerminalKit": ["CQRencode", "CWidth", "Dispatch", "Glibc"],
        // Programs. `TambourServer` is the part of tambourd that tests run in their own process.
        "TambourServer": [
            "TambourGateway", "TambourMessenger", "TambourNet", "TambourProtocol", "TambourSQL",
            "TambourStore", "TambourTLS",
            "Crypto", "Dispatch", "Glibc", "Darwin", "Logging", "Synchronization",
        ],
        "tambourd": [
            "TambourEvents", "TambourGateway", "TambourMessenger", "TambourNet",
            "TambourProtocol", "TambourServer", "TambourTLS",
            "ArgumentParser", "Configuration", "Dispatch", "Foundation", "Glibc", "Darwin",
            "Logging", "Subprocess", "Synchronization", "SystemPackage", "Yams",
        ],
        "tambour": [
            "TambourClient", "TambourProtocol", "TerminalKit",
            "ArgumentParser", "Dispatch", "Foundation", "Glibc", "Synchronization",
        ],
        "tambour-spec": ["ArgumentParser", "Crypto", "Foundation", "Yams"],
        // Only tests use this target. No product contains it.
        "TambourTesting": [
            "TambourEvents", "TambourFraming", "TambourGateway", "TambourMessenger", "TambourNet",
            "TambourProtocol", "TambourSQL", "TambourServer", "TambourStore", "TambourTLS",
            "Dispatch", "Foundation", "Glibc", "Darwin", "Logging", "Synchronization",
        ],
        // Benchmarks. No product contains them.
        "tambour-bench": [
            "TambourEvents", "TambourFraming", "TambourNet", "TambourProtocol", "TambourQueues",
            "TambourSQL", "TambourStore", "TambourTLS", "TambourTesting",
            "ArgumentParser", "Dispatch", "Foundation", "Glibc", "Histogram", "Synchronization",
            "Yams",
        ],
    ]

    /// Targets on the hot path. They must not import Foundation, because creating a `Data` costs
    /// more than handling a frame.
    private static let withoutFoundation = [
        "TambourProtocol", "TambourEvents", "TambourFraming", "TambourQueues", "TambourNet",
        "TambourTLS", "TambourSQL", "TambourStore", "TambourMessenger", "TambourGateway",
        "TambourServer",
    ]

    private struct Source {
        let target: String
        let path: String
        let lines: [Substring]
    }

    private static func sources(under folder: String) throws -> [Source] {
        let root = Repository.root.appending(path: folder).standardizedFileURL
        let files = FileManager.default.enumerator(atPath: root.path)
        var sources: [Source] = []
        while let path = files?.nextObject() as? String {
            guard path.hasSuffix(".swift") else { continue }
            let text = try String(contentsOf: root.appending(path: path), encoding: .utf8)
            sources.append(
                Source(
                    target: String(path.prefix { $0 != "/" }),
                    path: "\(folder)/\(path)",
                    lines: text.split(separator: "\n", omittingEmptySubsequences: false)
                )
            )
        }
        return sources
    }

    /// Returns the module that an import line names; nil for any other line.
    static func module(importedBy line: Substring) -> String? {
        let kinds = ["struct", "class", "enum", "protocol", "func", "typealias", "let", "var"]
        let access = ["public", "package", "internal", "fileprivate", "private"]
        var words = line.split(whereSeparator: \.isWhitespace)[...]
        while let word = words.first, word.hasPrefix("@") || access.contains(String(word)) {
            words.removeFirst()
        }
        guard words.popFirst() == "import" else { return nil }
        if let word = words.first, kinds.contains(String(word)) { words.removeFirst() }
        return words.first.map { String($0.prefix { $0 != "." }) }
    }

    @Test("imports are read in all their forms")
    func parser() {
        #expect(Self.module(importedBy: "import A") == "A")
        #expect(Self.module(importedBy: "    @testable import A") == "A")
        #expect(Self.module(importedBy: "@preconcurrency package import A") == "A")
        #expect(Self.module(importedBy: "import struct A.B") == "A")
        #expect(Self.module(importedBy: "let imports = 1") == nil)
        #expect(Self.module(importedBy: "// import A") == nil)
    }

    @Test("imports follow the arrows")
    func imports() throws {
        let sources = try Self.sources(under: "Sources") + Self.sources(under: "bench")
        #expect(sources.count > 80)
        for source in sources {
            let allowed = try #require(
                Self.arrows[source.target],
                "who may \(source.target) import?"
            )
            for (number, line) in source.lines.enumerated() {
                guard let module = Self.module(importedBy: line) else { continue }
                #expect(allowed.contains(module), "\(source.path):\(number + 1): \(line)")
            }
        }
        // Expect that the table names no target that has been removed.
        #expect(Set(Self.arrows.keys) == Set(sources.map(\.target)))
    }

    @Test("no arrow of the table points up, sideways or to Foundation where speed matters")
    func table() {
        let layers = [
            ["TambourProtocol", "TambourQueues", "TambourSQL", "TerminalKit"],
            ["TambourEvents", "TambourFraming", "TambourNet"],
            ["TambourStore", "TambourTLS"],
            ["TambourMessenger"], ["TambourGateway", "TambourClient"],
            ["TambourServer"], ["tambourd", "tambour", "tambour-spec"], ["TambourTesting"],
            ["tambour-bench"],
        ]
        let layer = Dictionary(
            uniqueKeysWithValues: layers.enumerated().flatMap { level, names in
                names.map { ($0, level) }
            }
        )
        for (target, allowed) in Self.arrows {
            for other in allowed {
                guard let level = layer[other], let own = layer[target] else { continue }
                #expect(level < own, "\(target) → \(other)")
            }
        }
        for target in Self.withoutFoundation {
            let allowed = Self.arrows[target, default: []]
            #expect(allowed.isDisjoint(with: ["Foundation", "FoundationEssentials"]), "\(target)")
        }
        for library in ["CSQLite", "CLibPQ"] {
            let users = Self.arrows.filter { $0.value.contains(library) }.keys
            #expect(Array(users) == ["TambourSQL"])
        }
        let users = Self.arrows.filter { $0.value.contains("COpenSSL") }.keys
        #expect(Array(users) == ["TambourTLS"])
    }

    @Test("the wire's chat is built in one place")
    func chats() throws {
        let places = try Self.sources(under: "Sources")
            .filter {
                ["TambourStore", "TambourMessenger", "TambourGateway", "TambourServer"]
                    .contains($0.target)
            }
            .filter { $0.lines.contains { $0.contains(/(^|[^\w.])Chat\(/) } }
        #expect(places.map(\.path) == ["Sources/TambourStore/Chats/ChatObject.swift"])
    }

    @Test("what is above TambourSQL knows no database by name")
    func databases() throws {
        let measuring = ["TambourSQL", "TambourTesting"]
        for source in try Self.sources(under: "Sources") where !measuring.contains(source.target) {
            for (number, line) in source.lines.enumerated() {
                let code = line.drop { $0 == " " }
                if code.hasPrefix("//") { continue }
                #expect(
                    !code.contains(
                        /SQLite(Connection|Statement|Error)|sqlite3_|Postgres(Con|Sta)|PQ[a-z]+\(/
                    ),
                    "\(source.path):\(number + 1): \(line)"
                )
            }
        }
    }

    @Test("the client's statements stand in its local store")
    func clientStatements() throws {
        let statement =
            /\b(SELECT |INSERT (OR \w+ )?INTO|REPLACE INTO|UPDATE \w+( SET|$)|DELETE FROM|PRAGMA |WITH RECURSIVE)/
        for text in ["SELECT 1", "INSERT OR IGNORE INTO chat", "UPDATE chat SET", "DELETE FROM a"] {
            #expect(text.contains(statement))
        }
        #expect(!#"case "ADD", "UPDATE": true"#.contains(statement))
        let sources = try Self.sources(under: "Sources").filter {
            $0.target == "TambourClient" && !$0.path.contains("/LocalStore/")
        }
        #expect(sources.count > 60)
        for source in sources {
            for (number, line) in source.lines.enumerated() {
                let place = "\(source.path):\(number + 1): \(line)"
                // No file can call the database without this import.
                #expect(Self.module(importedBy: line) != "GRDB", "\(place)")
                let isComment = line.drop { $0 == " " }.hasPrefix("//")
                #expect(isComment || !line.contains(statement), "\(place)")
            }
        }
    }

    @Test("libraries print nothing")
    func prints() throws {
        // `TambourTesting` prints the seeds of random tests.
        let programs = ["tambourd", "tambour", "tambour-spec", "TambourTesting"]
        for source in try Self.sources(under: "Sources") where !programs.contains(source.target) {
            for (number, line) in source.lines.enumerated() {
                let code = line.prefix { $0 != "/" }
                let prints = code.contains("print(") && !code.contains(".print(")
                #expect(!prints, "\(source.path):\(number + 1): \(line)")
            }
        }
    }

    @Test("no row is read by an index")
    func columns() throws {
        let reading =
            /\.(int|bytes|string|isNull|optionalInt|optionalBytes|optionalString|bool|borrowedBytes|withBytes)\(\d/
        let sources = try Self.sources(under: "Sources")
            .filter { ["TambourStore", "TambourMessenger", "TambourServer"].contains($0.target) }
        #expect(sources.count > 40)
        for source in sources {
            for (number, line) in source.lines.enumerated() {
                // Read columns by name; see `SQLColumn`.
                #expect(!line.contains(reading), "\(source.path):\(number + 1): \(line)")
            }
        }
    }

    @Test("what is left to do says what and why")
    func markers() throws {
        for folder in ["Sources", "Tests", "bench"] {
            for source in try Self.sources(under: folder)
            where !source.path.hasSuffix("TidyTests.swift") {
                for (number, line) in source.lines.enumerated() {
                    for marker in ["TODO", "FIXME", "XXX", "HACK"] {
                        guard let range = line.range(of: "// \(marker)") else { continue }
                        let reason = line[range.upperBound...].drop { !$0.isLetter }
                        #expect(
                            ["TODO", "FIXME"].contains(marker) && reason.count >= 20,
                            "\(source.path):\(number + 1): \(line)"
                        )
                    }
                }
            }
        }
    }

    @Test("no comment, document or help text contains a phrase that has to be read twice")
    func language() throws {
        // The titles of tests are not checked.
        let phrases =
            /\b(so many|anew|if there (is|are) none|who asks|what is unread|none any more)\b/
            .ignoresCase()
        #expect("Nil if there are none.".contains(phrases))
        #expect("Returns so many rows.".contains(phrases))
        var count = 0
        func check(_ line: Substring, _ place: @autoclosure () -> String) {
            count += 1
            #expect(!line.contains(phrases), "\(place()): \(line)")
        }
        for folder in ["Sources", "Tests", "bench"] {
            for source in try Self.sources(under: folder) where !source.path.contains("/Generated/")
            {
                for (number, line) in source.lines.enumerated() {
                    let isComment = line.drop { $0 == " " }.hasPrefix("//")
                    guard isComment || folder != "Tests" else { continue }
                    check(line, "\(source.path):\(number + 1)")
                }
            }
        }
        for folder in ["docs", "protocol-spec"] {
            let root = Repository.root.appending(path: folder).standardizedFileURL
            let files = FileManager.default.enumerator(atPath: root.path)
            while let path = files?.nextObject() as? String {
                guard path.hasSuffix(".md") || path.hasSuffix(".yaml"),
                    !path.hasPrefix("released/"), !path.hasPrefix("examples/")
                else { continue }
                let text = try String(contentsOf: root.appending(path: path), encoding: .utf8)
                for (number, line) in text.split(separator: "\n", omittingEmptySubsequences: false)
                    .enumerated()
                {
                    check(line, "\(folder)/\(path):\(number + 1)")
                }
            }
        }
        #expect(count > 50_000)
    }

    @Test("generated files say so, and only they")
    func generated() throws {
        for folder in ["Sources", "Tests", "bench"] {
            for source in try Self.sources(under: folder) {
                let isMarked = source.lines.first?.hasPrefix("// DO NOT EDIT.") == true
                #expect(isMarked == source.path.contains("/Generated/"), "\(source.path)")
                guard isMarked else { continue }
                #expect(source.lines.dropFirst().first == "// swift-format-ignore-file")
            }
        }
    }

    @Test("no file written by hand is too long to be read")
    func lengths() throws {
        let sources = try Self.sources(under: "Sources") + Self.sources(under: "bench")
        for source in sources where !source.path.contains("/Generated/") {
            // Every request passes through this class, so it must stay short. Move its parts into
            // values.
            let most = source.path == "Sources/TambourGateway/Session.swift" ? 350 : 600
            // The file ends with a newline, so the last element is empty. Do not count it.
            let count = source.lines.count - 1
            #expect(count <= most, "\(source.path) has \(count) lines: split it by subject")
        }
        #expect(sources.contains { $0.path == "Sources/TambourGateway/Session.swift" })
    }

    @Test("nothing unchecked or unsafe about threads goes without a reason")
    func unchecked() throws {
        for source in try Self.sources(under: "Sources") {
            for (number, line) in source.lines.enumerated() {
                let code = line.drop { $0 == " " }
                guard !code.hasPrefix("//"),
                    code.contains("@unchecked Sendable") || code.contains("nonisolated(unsafe)")
                else { continue }
                let above = source.lines[max(0, number - 12)..<number]
                let isExplained = above.contains {
                    $0.contains("//") && ($0.contains("Sendable") || $0.contains("nonisolated"))
                }
                #expect(isExplained, "\(source.path):\(number + 1): \(line)")
            }
        }
    }
}
