import Foundation
import TambourSQL
import TambourTesting
import Testing

/// Follows the pages for operators word for word, but replaces the paths by folders of the test.
@Suite("The pages for operators")
struct OperatorPagesTests {
    @Test("the restore drill works as it is written, and leaves the server alone")
    func drill() async throws {
        try await TambourdProcess.run { server in
            try await OperatorPage.inFolder { folder in
                let page = try OperatorPage("docs/operations.md", in: folder, server.dataDirectory)
                let tokens = "\(folder.path)/tokens"
                let made = try await page.run(
                    "tambourd admin users create --data /var/lib/tambour --count 5 "
                        + "--first-phone +79990000001 --tokens-out \(tokens)"
                )
                try #require(made.status == 0, "\(made.errors)")
                let before = try await page.users(of: "/var/lib/tambour")
                #expect(before.count == 5)

                let blocks = try page.blocks(of: "A restore drill")
                try #require(blocks.count == 2)
                let drill = try await page.run(blocks[0])
                #expect(drill.status == 0, "\(drill.output)\n\(drill.errors)")
                let lines = drill.output.split(separator: "\n").map(String.init)
                #expect(lines.contains { $0.hasPrefix("all ") && $0.contains("digests equal") })
                #expect(lines.contains("ok"), "\(lines)")
                #expect(lines.contains { $0.hasPrefix("listening tcp ") }, "\(lines)")
                #expect(lines.suffix(3) == before.prefix(3))
                #expect(page.files == ["programs", "tokens"])
                #expect(try await page.users(of: "/var/lib/tambour") == before)

                // The second block is the real restore: the server has stopped, and its directory
                // is lost.
                try await page.backUp(to: "/backups/2026-11-22")
                try await server.stopped {
                    let restored = try await page.run(blocks[1])
                    #expect(restored.status == 0, "\(restored.output)\n\(restored.errors)")
                }
                #expect(try await page.users(of: "/var/lib/tambour") == before)
            }
        }
    }

    @Test("the upgrade and the way back work as they are written")
    func upgrade() async throws {
        try await TambourdProcess.run { server in
            try await OperatorPage.inFolder { folder in
                let page = try OperatorPage("docs/upgrade.md", in: folder, server.dataDirectory)
                let made = try await page.run(
                    "tambourd admin users create --data /var/lib/tambour --count 2 "
                        + "--first-phone +79990000001"
                )
                try #require(made.status == 0, "\(made.errors)")
                let before = try await page.users(of: "/var/lib/tambour")
                let upgrade = try page.blocks(of: "Upgrade")
                let back = try page.blocks(of: "Go back")
                try #require(upgrade.count == 3 && back.count == 2)
                // The new program identifies itself on standard error.
                try page.addProgram("tambourd-new", saying: "new")

                let rehearsal = try await page.run(upgrade[0])
                #expect(rehearsal.status == 0, "\(rehearsal.output)\n\(rehearsal.errors)")
                #expect(rehearsal.output.contains("digests equal"))
                #expect(rehearsal.errors.contains("new"))
                try await server.stopped {
                    let replaced = try await page.run(upgrade[1])
                    #expect(replaced.status == 0, "\(replaced.output)\n\(replaced.errors)")
                }
                let asked = try await page.run(upgrade[2])
                #expect(asked.status == 0 && asked.errors.contains("new"), "\(asked.errors)")
                #expect(asked.output.contains("tambour_sessions 0"))
                #expect(asked.output.split(separator: "\n").suffix(2).map(String.init) == before)

                // Give the store a schema version that no program knows.
                try await server.stopped {
                    let path = "\(server.dataDirectory)/tambour.db"
                    do {
                        let store = try SQLiteConnection(path: path, mode: .readWrite)
                        try store.execute(
                            """
                            INSERT INTO schema_migration (version, name, checksum)
                            SELECT max(version) + 1, 'later', 0 FROM schema_migration
                            """
                        )
                        try store.checkpoint()
                    }
                    let stored = try Data(contentsOf: URL(fileURLWithPath: path))
                    let old = try await page.run(back[0])
                    #expect(old.status == 0, "\(old.errors)")
                    let refused = try await page.run(
                        "tambourd serve --listen 127.0.0.1:0 --data /var/lib/tambour"
                    )
                    #expect(refused.status != 0 && !refused.errors.contains("new\n"))
                    #expect(refused.errors.contains("the database has schema version"))
                    #expect(refused.errors.contains(", this program knows up to"))
                    #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == stored)
                    let restored = try await page.run(back[1])
                    #expect(restored.status == 0, "\(restored.output)\n\(restored.errors)")
                }
                #expect(try await page.users(of: "/var/lib/tambour") == before)
            }
        }
    }

    @Test("a page without the section, and a command that fails, are noticed")
    func notices() async throws {
        try await OperatorPage.inFolder { folder in
            let page = try OperatorPage("docs/upgrade.md", in: folder, folder.path)
            #expect(throws: ChildProcess.Failed.self) { try page.blocks(of: "No such section") }
            let failed = try await page.run("false\necho after")
            #expect(failed.status != 0 && !failed.output.contains("after"))
        }
    }
}

/// A page, and a folder that stands for the operator's machine.
private struct OperatorPage {
    private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent()

    private let text: String
    private let folder: URL
    /// The paths that the page names, and their replacements.
    private let paths: [(page: String, test: String)]

    init(_ page: String, in folder: URL, _ dataDirectory: String) throws {
        text = try String(contentsOf: Self.root.appendingPathComponent(page), encoding: .utf8)
        self.folder = folder
        paths = [
            ("/var/lib/tambour", dataDirectory),
            ("/backups", "\(folder.path)/backups"),
            ("/tmp/drill", "\(folder.path)/drill"),
            ("/usr/local/bin", "\(folder.path)/programs"),
            ("./tambourd-new", "\(folder.path)/programs/tambourd-new"),
            ("127.0.0.1:7771", "127.0.0.1:0"),
        ]
        let programs = folder.appendingPathComponent("programs")
        try FileManager.default.createDirectory(at: programs, withIntermediateDirectories: true)
        try addProgram("tambourd")
    }

    /// Adds a program that runs the built tambourd.
    ///
    /// - Parameter word: what it writes to standard error first.
    func addProgram(_ name: String, saying word: String? = nil) throws {
        let say = word.map { "echo \($0) >&2\n" } ?? ""
        try ChildProcess.makeProgram(
            at: "\(folder.path)/programs/\(name)",
            "#!/bin/sh\n\(say)exec '\(try TambourdProcess.program().path)' \"$@\"\n"
        )
    }

    /// The names of the files in the folder, without the backups.
    var files: [String] {
        let all = try? FileManager.default.contentsOfDirectory(atPath: folder.path)
        return (all ?? []).filter { $0 != "backups" }.sorted()
    }

    /// Returns the console blocks of a section, which ends at the next heading.
    ///
    /// - Throws: `ChildProcess.Failed` if the page has no such section.
    func blocks(of title: String) throws -> [String] {
        var blocks: [String] = []
        var isInside = false
        var isFound = false
        var console: [Substring]?
        for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
            if let lines = console {
                if line == "```" {
                    if isInside { blocks.append(lines.joined(separator: "\n")) }
                    console = nil
                } else {
                    console?.append(line)
                }
            } else if line == "```console" {
                console = []
            } else if line.hasPrefix("#") {
                isInside = line.drop { $0 == "#" } == " \(title)"
                isFound = isFound || isInside
            }
        }
        guard isFound else { throw ChildProcess.Failed(description: "no section \(title)") }
        return blocks
    }

    /// Runs commands of the page in a shell that stops at the first failure.
    func run(_ commands: String) async throws -> ChildProcess.Outcome {
        var commands = commands
        for (page, test) in paths {
            commands = commands.replacingOccurrences(of: page, with: test)
        }
        try FileManager.default.createDirectory(
            atPath: "\(folder.path)/backups",
            withIntermediateDirectories: true
        )
        let path = ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin"
        let script = commands
        return try await blocking { [folder] in
            try ChildProcess.run(
                URL(fileURLWithPath: "/bin/bash"),
                ["-euo", "pipefail", "-c", script],
                environment: ["PATH": "\(folder.path)/programs:\(path)", "TMPDIR": folder.path]
            )
        }
    }

    func backUp(to place: String) async throws {
        let made = try await run("tambourd backup \(place) --data /var/lib/tambour")
        try #require(made.status == 0, "\(made.errors)")
    }

    /// Returns the users of a store, a line each.
    func users(of directory: String) async throws -> [String] {
        let listed = try await run("tambourd admin users list --data \(directory)")
        try #require(listed.status == 0, "\(listed.errors)")
        return listed.output.split(separator: "\n").map(String.init)
    }

    /// Makes a folder for `body` and removes it afterwards.
    static func inFolder(_ body: (URL) async throws -> Void) async throws {
        let folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("tambour-operator-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        try await body(folder)
    }
}
