import ArgumentParser
import Foundation

/// Writes the sources of the reference site.
struct Docs: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Writes the pages and diagrams of the reference site, to be built with MkDocs.",
        discussion: "See `make docs`. What is in the folder already is overwritten, not removed."
    )

    @OptionGroup var root: RootOption

    @Option(help: "The folder to write `mkdocs.yml` and the pages into.")
    var out: String

    func run() throws {
        let specification = try root.loadChecked()
        let site = Site(specification: specification, root: root.url)
        let folder = URL(filePath: out, directoryHint: .isDirectory)
        let files = try site.files()
        for file in files {
            let url = folder.appending(path: file.path)
            try FileManager.default.createDirectory(
                at: url.deletingLastPathComponent(),
                withIntermediateDirectories: true
            )
            try file.content.write(to: url)
        }
        root.say("wrote \(files.count) files to \(out)")
    }
}

/// All files that MkDocs needs. Some are generated, others are hand-written.
struct Site {
    let specification: Specification
    /// The root of the repository.
    let root: URL

    private var handmade: URL { root.appending(path: "protocol-spec/site") }

    /// Returns the path and content of each file. Paths are relative to the output folder, and the
    /// pages are in the subfolder `pages`.
    ///
    /// - Throws: The error from reading a file of the repository.
    func files() throws -> [(path: String, content: Data)] {
        let downloads = try downloads()
        let generator = SiteGenerator(
            specification,
            cases: ConformanceCases(under: root.appending(path: "protocol-spec/conformance/src")),
            downloads: downloads,
            releases: try releases()
        )
        var files = generator.pages().map { ("pages/\($0.path).md", Data($0.text.utf8)) }
        files += downloads.map { ("pages/\($0.path)", Data($0.content.utf8)) }
        for (folder, place) in [("assets", "pages/assets"), ("theme", "theme")] {
            let names = try FileManager.default.contentsOfDirectory(
                atPath: handmade.appending(path: folder).path
            )
            for name in names.sorted() {
                let content = try Data(contentsOf: handmade.appending(path: "\(folder)/\(name)"))
                files.append(("\(place)/\(name)", content))
            }
        }
        var configuration = try Data(contentsOf: handmade.appending(path: "mkdocs.yml"))
        configuration.append(Data("\n\(generator.navigation())".utf8))
        files.append(("mkdocs.yml", configuration))
        return files
    }

    private func downloads() throws -> [SiteGenerator.Download] {
        let dissector = root.appending(path: "protocol-spec/dissector/tambour.lua")
        let listed = [
            SiteGenerator.Download(
                path: "protocol.json",
                doc: """
                    The whole specification as one document: opcodes, types, limits, errors, requirements, conversations, examples. Keys are sorted, \
                    so that two of them can be compared.
                    """,
                content: ProtocolBundle(specification: specification).text()
            ),
            SiteGenerator.Download(
                path: "tambour.lua",
                doc: "The dissector for Wireshark and tshark.",
                content: try String(contentsOf: dissector, encoding: .utf8)
            ),
        ]
        let schemas = PayloadSchemas(specification: specification).files()
        return listed
            + schemas.map { SiteGenerator.Download(path: $0.path, doc: "", content: $0.content) }
    }

    /// Returns the release notes of every release except the first. If the specification is newer
    /// than the newest release, also returns the notes of the changes since then.
    private func releases() throws -> [SiteGenerator.Release] {
        let releases = Releases(root: root)
        var written = try releases.versions.map { try releases.release($0) }
        if let newest = written.last, newest.version < specification.version {
            written.append(specification)
        }
        return zip(written, written.dropFirst()).map { before, after in
            let notes = ChangeNote.load(after.version, root: root).notes
            let text = ReleaseNotes(from: before, to: after, notes: notes).text()
            return SiteGenerator.Release(version: after.version, notes: text)
        }
    }
}
