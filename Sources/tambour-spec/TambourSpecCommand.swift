import ArgumentParser
import Foundation

@main
struct TambourSpecCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "tambour-spec",
        abstract:
            "Checks protocol-spec/, writes the code that is generated from it, and reads packets.",
        subcommands: [
            Generate.self, Check.self, Decode.self, Release.self, Breaking.self, Diff.self,
            Schema.self, Docs.self,
        ]
    )
}

/// The option for the root of the repository.
struct RootOption: ParsableArguments {
    @Option(help: "The root of the repository.")
    var root = "."

    var url: URL { URL(filePath: root, directoryHint: .isDirectory) }

    /// Loads the specification. If there are problems, prints all of them and fails.
    func load() throws -> Specification {
        var loader = SpecificationLoader(root: url.appending(path: "protocol-spec"))
        let specification = loader.load()
        try report(loader.problems)
        return specification
    }

    /// Loads and checks the specification. If the checks find problems, prints them and fails.
    func loadChecked() throws -> Specification {
        let specification = try load()
        // The release folders are checked first, because later checks may trap on an invalid
        // version or number.
        try report(Releases(root: url).folderProblems(for: specification.version))
        try report(SpecificationCheck.problems(of: specification))
        try report(
            GeneratedFiles.problems(of: specification, root: url)
                + Releases(root: url).problems(of: specification)
        )
        return specification
    }

    func say(_ text: String) {
        FileHandle.standardOutput.write(Data("\(text)\n".utf8))
    }

    func report(_ problems: [Problem]) throws {
        guard !problems.isEmpty else { return }
        for problem in problems {
            FileHandle.standardError.write(Data("\(problem)\n".utf8))
        }
        throw ExitCode.failure
    }
}

struct Generate: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Writes the generated files; fills in the bytes of examples that say `hex: auto`."
    )

    @OptionGroup var root: RootOption

    func run() throws {
        let filler = ExampleFiller(specification: try root.load())
        let folder = root.url.appending(path: "protocol-spec")
        for (file, text) in try filler.changes(read: { file in
            try TextFile.read(folder.appending(path: file), as: file)
        }) {
            try Data(text.utf8).write(to: folder.appending(path: file))
            root.say("filled in protocol-spec/\(file)")
        }
        let sample = SampleSource.file(root: root.url)
        let specification = try root.load()
        let dissector = DissectorSource.file(of: specification, root: root.url)
        try root.report(sample.problems + dissector.problems)
        let files =
            Generator(specification: specification).files() + [sample.file, dissector.file]
        for file in files {
            let url = root.url.appending(path: file.path)
            if (try? String(contentsOf: url, encoding: .utf8)) == file.content { continue }
            try FileManager.default.createDirectory(
                at: url.deletingLastPathComponent(),
                withIntermediateDirectories: true
            )
            try Data(file.content.utf8).write(to: url)
            root.say("wrote \(file.path)")
        }
    }
}

struct Check: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract:
            "Checks the specification, its examples, and that the generated files are current."
    )

    @OptionGroup var root: RootOption

    func run() throws {
        let specification = try root.loadChecked()
        root.say("protocol-spec: \(specification.summary)")
    }
}
