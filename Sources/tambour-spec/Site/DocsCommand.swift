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
        let specification = try root.load()
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

/// Every file that MkDocs needs: what is made from the specification and what is written by hand.
struct Site {
    let specification: Specification
    /// The root of the repository.
    let root: URL

    private var handmade: URL { root.appending(path: "protocol-spec/site") }

    /// Path below the output's folder and content, pages below `pages`.
    func files() throws -> [(path: String, content: Data)] {
        let cases = ConformanceCases(under: root.appending(path: "protocol-spec/conformance/src"))
        let downloads = try downloads()
        let generator = SiteGenerator(specification, cases: cases, downloads: downloads)
        var files = generator.pages().map { ("pages/\($0.path).md", Data($0.text.utf8)) }
        files += downloads.map { ("pages/\($0.name)", Data($0.content.utf8)) }
        for folder in ["assets", "theme"] {
            let names = try FileManager.default.contentsOfDirectory(
                atPath: handmade.appending(path: folder).path
            )
            for name in names.sorted() {
                let content = try Data(contentsOf: handmade.appending(path: "\(folder)/\(name)"))
                files.append(
                    (folder == "assets" ? "pages/assets/\(name)" : "\(folder)/\(name)", content)
                )
            }
        }
        var configuration = try Data(contentsOf: handmade.appending(path: "mkdocs.yml"))
        configuration.append(Data("\n\(generator.navigation())".utf8))
        files.append(("mkdocs.yml", configuration))
        return files
    }

    private func downloads() throws -> [SiteGenerator.Download] {
        [
            SiteGenerator.Download(
                name: "protocol.json",
                doc:
                    "The whole specification as one canonical document: opcodes, types, limits, errors, requirements, flows, examples.",
                content: ProtocolBundle(specification: specification).text()
            )
        ]
    }
}
