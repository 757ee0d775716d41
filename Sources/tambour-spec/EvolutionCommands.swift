import ArgumentParser
import Foundation

struct Release: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract:
            "Keeps a copy of the specification in protocol-spec/released/ as the release that is being written.",
        discussion: """
            Which release that is, `version` of protocol.yaml says. Raising it freezes the one before: this command \
            never writes it again.
            """
    )

    @OptionGroup var root: RootOption

    @Flag(help: "Replace what is there. Only for a release that nobody has yet.")
    var again = false

    func run() throws {
        let specification = try root.load()
        let changed = try Releases(root: root.url).write(specification, again: again)
        root.say("release \(specification.version): \(changed ? "written" : "is current")")
    }
}

struct Breaking: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Refuses changes that clients of the newest release would not survive."
    )

    @OptionGroup var root: RootOption

    @Option(
        help:
            "A release by its number, or a folder with a specification; the newest release unless given."
    )
    var against: String?

    func run() throws {
        let specification = try root.load()
        let releases = Releases(root: root.url)
        try root.report(releases.folderProblems(for: specification.version))
        let chosen = try against.map(releases.release(named:))
        try root.report(
            chosen.map { releases.problems(of: specification, against: $0) }
                ?? releases.compatibilityProblems(of: specification)
        )
        guard let release = try chosen ?? releases.newest() else { return }
        let check = CompatibilityCheck(from: release, to: specification)
        root.say(
            "release \(release.version): nothing of \(check.before.items.count) is broken, "
                + "\(check.differences().count) differ"
        )
    }
}

struct Diff: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Writes what changed between two releases, as Markdown."
    )

    @OptionGroup var root: RootOption

    @Argument(help: "The older release: its number, or a folder with a specification.")
    var old: String

    @Argument(help: "The newer one; what the specification says now unless given.")
    var new: String?

    func run() throws {
        let releases = Releases(root: root.url)
        let before = try releases.release(named: old)
        let after = try new.map(releases.release(named:)) ?? writtenNow(releases)
        let notes = ChangeNote.load(
            after: before.version,
            through: after.version,
            root: root.url
        )
        try root.report(notes.problems)
        root.say(
            ReleaseNotes(from: before, to: after, notes: notes.notes).text()
                .trimmingCharacters(in: .newlines)
        )
    }

    private func writtenNow(_ releases: Releases) throws -> Specification {
        let specification = try root.load()
        try root.report(releases.folderProblems(for: specification.version))
        return specification
    }
}

struct Schema: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Writes a JSON Schema for every payload to schema/ in a folder."
    )

    @OptionGroup var root: RootOption

    @Option(help: "The folder; it is made if need be.")
    var out: String

    func run() throws {
        let files = PayloadSchemas(specification: try root.load()).files()
        let folder = URL(filePath: out, directoryHint: .isDirectory)
        for file in files {
            let url = folder.appending(path: file.path)
            try FileManager.default.createDirectory(
                at: url.deletingLastPathComponent(),
                withIntermediateDirectories: true
            )
            try Data(file.content.utf8).write(to: url)
        }
        root.say("wrote \(files.count) schemas to \(folder.appending(path: "schema").relativePath)")
    }
}

extension Releases {
    /// Returns the release with the given number or in the given folder.
    fileprivate func release(named name: String) throws -> Specification {
        if let version = Int(name) { return try release(version) }
        return try Self.release(at: URL(filePath: name, directoryHint: .isDirectory))
    }
}
