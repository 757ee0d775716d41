import Foundation

/// Compares the committed files with freshly generated ones.
enum GeneratedFiles {
    /// Reports each outdated file with its first differing lines, and each committed file that the
    /// generator does not produce.
    static func problems(of specification: Specification, root: URL) -> [Problem] {
        let sample = SampleSource.file(root: root)
        let dissector = DissectorSource.file(of: specification, root: root)
        var problems = sample.problems + dissector.problems
        let files =
            Generator(specification: specification).files() + [sample.file, dissector.file]
        for file in files {
            let committed = try? String(
                contentsOf: root.appending(path: file.path),
                encoding: .utf8
            )
            guard committed != file.content else { continue }
            let text = committed.map { difference(from: $0, to: file.content) } ?? "does not exist"
            problems.append(
                Problem(
                    origin: Origin(file: file.path, line: 0),
                    text: "is not current; run make generate\n\(text)"
                )
            )
        }
        let folders = Set(
            files.map { $0.path.split(separator: "/").dropLast().joined(separator: "/") }
        )
        for folder in folders.sorted() where folder.hasSuffix("/Generated") {
            let present =
                (try? FileManager.default.contentsOfDirectory(
                    atPath: root.appending(path: folder).path
                )) ?? []
            for name in present.sorted()
            where !files.contains(where: { $0.path == "\(folder)/\(name)" }) {
                problems.append(
                    Problem(
                        origin: Origin(file: "\(folder)/\(name)", line: 0),
                        text: "is not generated; remove it"
                    )
                )
            }
        }
        return problems
    }

    /// Returns the first differing lines in the format of a diff.
    static func difference(from old: String, to new: String, lines most: Int = 12) -> String {
        let old = old.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        let new = new.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        let changes = new.difference(from: old).map { change in
            switch change {
            case .remove(let offset, let line, _): (offset, "-\(offset + 1): \(line)")
            case .insert(let offset, let line, _): (offset, "+\(offset + 1): \(line)")
            }
        }
        return changes.sorted { $0.0 < $1.0 }.prefix(most).map(\.1).joined(separator: "\n")
    }
}
