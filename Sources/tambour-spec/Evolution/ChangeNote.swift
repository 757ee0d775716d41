import Foundation
import Yams

/// The reason for a change in a release. Each change has one file under
/// `protocol-spec/changes/<version>/`.
///
/// The front matter contains the audience and the names of the changed things. The rest of the file
/// is Markdown.
struct ChangeNote: Sendable {
    enum Audience: String, Sendable {
        case client, server, both
    }

    /// The name of the note's file, without the extension.
    var name: String
    var audience: Audience
    /// What the change affects: names of opcodes, structs, enums, limits, errors and capabilities,
    /// and ids of requirements.
    var touches: [String]
    /// The names in `touches` whose text has changed without a change of meaning: requirements, and
    /// opcodes whose effects were reworded.
    var reworded: [String] = []
    var text: String
    var origin: Origin

    /// Reads the notes of a release.
    static func load(_ version: Int, root: URL) -> (notes: [ChangeNote], problems: [Problem]) {
        let folder = "protocol-spec/changes/\(version)"
        let names =
            (try? FileManager.default.contentsOfDirectory(
                atPath: root.appending(path: folder).path
            )) ?? []
        var notes: [ChangeNote] = []
        var problems: [Problem] = []
        for name in names.sorted() where name.hasSuffix(".md") {
            let file = "\(folder)/\(name)"
            do {
                let text = try TextFile.read(root.appending(path: file), as: file)
                let (note, found) = parse(text, file: file)
                problems += found
                if let note { notes.append(note) }
            } catch {
                problems.append(error)
            }
        }
        return (notes, problems)
    }

    /// Reads the notes of all releases after `old`, up to and including `new`.
    static func load(
        after old: Int,
        through new: Int,
        root: URL
    ) -> (notes: [ChangeNote], problems: [Problem]) {
        let folder = root.appending(path: "protocol-spec/changes")
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []
        // Lists the folders instead of counting from `old` to `new`, because a release outside the
        // repository may have any number.
        let versions = names.compactMap { Int($0) }.filter { $0 > old && $0 <= new }.sorted()
        let loaded = versions.map { load($0, root: root) }
        return (loaded.flatMap(\.notes), loaded.flatMap(\.problems))
    }

    /// - Parameter file: The file's path from the root of the repository.
    static func parse(_ text: String, file: String) -> (note: ChangeNote?, problems: [Problem]) {
        let origin = Origin(file: file, line: 1)
        let parts = text.split(separator: "---\n", maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count == 3, parts[0].isEmpty,
            let node = try? Yams.compose(yaml: String(parts[1])),
            let map = YAMLMap(node, file: file)
        else {
            return (nil, [Problem(origin: origin, text: "has no front matter between two ---")])
        }
        let note = ChangeNote(
            name: String(file.split(separator: "/").last?.dropLast(".md".count) ?? ""),
            audience: map.choice("audience") ?? .both,
            touches: map.strings("touches"),
            reworded: map.strings("reworded"),
            text: parts[2].trimmingCharacters(in: .whitespacesAndNewlines),
            origin: origin
        )
        var problems = map.problems()
        if note.text.isEmpty {
            problems.append(Problem(origin: origin, text: "does not say why"))
        }
        for name in note.reworded where !note.touches.contains(name) {
            problems.append(
                Problem(origin: origin, text: "says that \(name) is reworded, but not touched")
            )
        }
        return (note, problems)
    }

    /// Reports changes without a note, and notes without a change.
    static func problems(
        of notes: [ChangeNote],
        for check: CompatibilityCheck
    ) -> [Problem] {
        var changed: Set<String> = []
        var reworded: Set<String> = []
        var problems: [Problem] = []
        let explained = Set(notes.flatMap(\.touches))
        for difference in check.differences() where difference.item.kind != .known {
            let item = difference.item
            let subject = check.subject(of: item)
            if difference.changesWords { reworded.insert(subject) }
            if changed.insert(subject).inserted, !explained.contains(subject) {
                problems.append(
                    Problem(
                        origin: check.after.origin(of: item),
                        text:
                            "\(item.title) differs from release \(check.before.version), and no note in "
                            + "protocol-spec/changes/\(check.after.version) touches \(subject)"
                    )
                )
            }
        }
        for note in notes {
            for name in note.touches where !changed.contains(name) {
                problems.append(
                    Problem(origin: note.origin, text: "touches \(name), which has not changed")
                )
            }
            for name in note.reworded where changed.contains(name) && !reworded.contains(name) {
                problems.append(
                    Problem(
                        origin: note.origin,
                        text: "says that \(name) is reworded, whose words have not changed"
                    )
                )
            }
        }
        return problems
    }
}

extension CompatibilityCheck {
    /// Returns the name by which a note refers to a changed item: the name of the opcode or type
    /// that contains the item, or else the item's own name.
    func subject(of item: Promise) -> String {
        if let owner = item.owner.flatMap({ after[$0] ?? before[$0] }) { return subject(of: owner) }
        switch item.kind {
        case .opcode: return item[.name] ?? item.title
        case .framing, .version: return "header"
        case .state, .capability, .feature, .limit, .error, .range: return item.lastWord
        default: return item.id
        }
    }
}
