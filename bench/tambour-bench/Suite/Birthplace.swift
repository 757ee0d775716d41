import Foundation

/// The conditions under which figures were measured.
struct Birthplace: Codable, Sendable {
    let date: String
    let machine: String
    /// The commit of the working tree from which the benchmark was called; `+` marks uncommitted
    /// changes.
    let commit: String
    let command: String
    /// The file system of the databases.
    let fileSystem: String
    let corpus: String
    /// The duration of the whole command.
    var seconds = 0.0

    /// - Parameter scratch: An existing folder.
    init(scratch: URL, corpus: Corpus) {
        date = Date.now.formatted(.iso8601)
        machine = Self.thisMachine
        commit = Self.thisCommit
        command = CommandLine.arguments.dropFirst().reduce("tambour-bench") { "\($0) \($1)" }
        fileSystem = Self.fileSystem(of: scratch)
        self.corpus = corpus.source
    }

    var markdown: String {
        """
        - Date: \(date)
        - Machine: \(machine)
        - Databases on: \(fileSystem)
        - Commit: \(commit)
        - Command: `\(command)`
        - Took: \(Int(seconds) / 60) min \(Int(seconds) % 60) s
        - Texts: \(corpus)


        """
    }

    /// Processor, memory, kernel.
    static var thisMachine: String {
        let cpu = (try? String(contentsOfFile: "/proc/cpuinfo", encoding: .utf8))?
            .split(separator: "\n").first { $0.hasPrefix("model name") }?
            .split(separator: ":").last?.trimmingCharacters(in: .whitespaces)
        let release = try? String(contentsOfFile: "/proc/sys/kernel/osrelease", encoding: .utf8)
        let memory = ProcessInfo.processInfo.physicalMemory >> 30
        return
            "\(ProcessInfo.processInfo.activeProcessorCount) × \(cpu ?? "unknown processor"), "
            + "\(memory) GiB, Linux \(release?.trimmingCharacters(in: .whitespacesAndNewlines) ?? "?")"
    }

    private static var thisCommit: String {
        func git(_ arguments: String...) -> String? {
            (try? Tool.text("/usr/bin/env", ["git"] + arguments))?
                .trimmingCharacters(in: .whitespacesAndNewlines)
        }
        guard let commit = git("rev-parse", "--short", "HEAD") else { return "unknown" }
        return git("status", "--porcelain", "--untracked-files=no") == "" ? commit : commit + "+"
    }

    /// Returns the name of a folder's file system, such as `ext4`.
    static func fileSystem(of folder: URL) -> String {
        let said = try? Tool.text("/bin/df", ["--output=fstype", folder.path])
        return said?.split(separator: "\n").last.map(String.init) ?? "unknown"
    }

    /// The name of a file system on which a flush costs nothing. Measurements on it do not include
    /// the cost of durability.
    static let memoryFileSystem = "tmpfs"
}
