import ArgumentParser
import Foundation

struct Release: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract:
            "Writes the surface of the release that is being written to protocol-spec/released/.",
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
            "A release by its number, or a folder or file with a surface; the newest release unless given."
    )
    var against: String?

    func run() throws {
        let specification = try root.load()
        let releases = Releases(root: root.url)
        guard let release = try against.map(releases.surface(named:)) ?? releases.newest() else {
            root.say("there is no release to compare with")
            return
        }
        try root.report(CompatibilityCheck.problems(of: specification, against: release))
        let check = CompatibilityCheck(from: release, to: Surface(of: specification))
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

    @Argument(help: "The older release: its number, or a folder or file with a surface.")
    var old: String

    @Argument(help: "The newer one; what the specification says now unless given.")
    var new: String?

    func run() throws {
        let releases = Releases(root: root.url)
        let before = try releases.surface(named: old)
        let after = try new.map(releases.surface(named:)) ?? Surface(of: root.load())
        var notes: [ChangeNote] = []
        for version in stride(from: before.version + 1, through: after.version, by: 1) {
            let loaded = ChangeNote.load(version, root: root.url)
            try root.report(loaded.problems)
            notes += loaded.notes
        }
        root.say(
            ReleaseNotes(from: before, to: after, notes: notes).text()
                .trimmingCharacters(in: .newlines)
        )
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
    /// The surface of a release by its number, or in a folder or file.
    fileprivate func surface(named name: String) throws -> Surface {
        if let version = Int(name) { return try surface(of: version) }
        return try Self.surface(at: URL(filePath: name))
    }
}
