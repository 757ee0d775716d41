import ArgumentParser
import Foundation
import Testing

@testable import tambour

/// Tests the help texts of all commands.
@Suite("Help")
struct HelpTests {
    private static let sources = URL(filePath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        .appending(path: "Sources")

    /// Every command, with its full name, such as `tambour queue list`.
    private static let commands: [(name: String, type: any ParsableCommand.Type)] = {
        func all(
            _ type: any ParsableCommand.Type,
            _ path: [String]
        ) -> [(name: String, type: any ParsableCommand.Type)] {
            let path = path + [type._commandName]
            return [(path.joined(separator: " "), type)]
                + type.configuration.subcommands.flatMap { all($0, path) }
        }
        return all(Tambour.self, [])
    }()

    /// Returns the `tambour` commands in a shell line. Each command is split into words.
    private func commands(in line: String) -> [[String]] {
        let line = line.replacing("2>&1", with: "").replacing("$id", with: "1")
        return line.split(separator: /\||&&|<|>|\$\(|\)/).map { words(String($0)) }
            .filter { $0.first == "tambour" }
    }

    private func words(_ text: String) -> [String] {
        text.matches(of: /"([^"]*)"|'([^']*)'|(\S+)/).map { match in
            String(match.1 ?? match.2 ?? match.3 ?? "")
        }
    }

    @Test("every example is a command that the parser accepts")
    func examples() {
        var count = 0
        for (name, type) in Self.commands {
            let discussion = type.configuration.discussion
            guard let start = discussion.firstRange(of: "EXAMPLES\n") else { continue }
            let examples = discussion[start.upperBound...].split(
                separator: "\n",
                omittingEmptySubsequences: false
            ).prefix { !$0.isEmpty }
            for line in examples {
                for words in commands(in: String(line)) {
                    count += 1
                    do {
                        _ = try Tambour.parseAsRoot(Array(words.dropFirst()))
                    } catch {
                        Issue.record("\(name): \(line): \(Tambour.message(for: error))")
                    }
                }
            }
        }
        #expect(count > 30)
    }

    @Test("every command says what it does, every argument has a help, and no line is too long")
    func complete() {
        for (name, type) in Self.commands {
            #expect(type.configuration.abstract.hasSuffix("."), "\(name)")
            let help = Tambour.helpMessage(for: type, columns: 80)
            for line in help.split(separator: "\n") {
                // The argument parser does not wrap the line that shows the usage.
                #expect(line.count <= 80 || line.hasPrefix("USAGE:"), "\(name): \(line)")
                // If an argument has no help text, it stands alone on its line.
                let isBare = line.wholeMatch(of: #/ +(<[a-z-]+>|--[a-z-]+)( \.\.\.)?/#) != nil
                #expect(!isBare, "\(name): \(line)")
            }
        }
    }

    @Test("ENVIRONMENT names every variable that the program reads")
    func environment() throws {
        var names: Set<String> = []
        for module in ["tambour", "TerminalKit"] {
            let folder = Self.sources.appending(path: module)
            let files = FileManager.default.enumerator(at: folder, includingPropertiesForKeys: nil)
            for case let file as URL in try #require(files) where file.pathExtension == "swift" {
                let text = try String(contentsOf: file, encoding: .utf8)
                let found = text.matches(of: /(?:environment\[|getenv\()"([A-Z_]+)"/)
                names.formUnion(found.map { String($0.1) })
            }
        }
        #expect(names.isSuperset(of: ["TAMBOUR_HOME", "XDG_CONFIG_HOME", "NO_COLOR", "EDITOR"]))
        let discussion = Tambour.configuration.discussion
        let start = try #require(discussion.firstRange(of: "ENVIRONMENT\n"))
        let section = String(discussion[start.upperBound...])
        for name in names { #expect(section.contains(try Regex("\\b\(name)\\b")), "\(name)") }
    }
}
