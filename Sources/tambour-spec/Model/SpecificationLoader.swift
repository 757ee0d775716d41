import Foundation
import Yams

/// Reads `protocol-spec/` into a `Specification`. Does not stop at the first problem, but collects
/// all of them.
struct SpecificationLoader {
    let root: URL
    var problems: [Problem] = []

    /// - Parameter root: The folder `protocol-spec`.
    init(root: URL) {
        self.root = root
    }

    mutating func load() -> Specification {
        var specification = Specification()
        loadProtocol(into: &specification)
        loadLimits(into: &specification)
        loadErrors(into: &specification)
        loadTypes(into: &specification)
        loadRoles(into: &specification)
        loadEntities(into: &specification)
        for file in files(under: "opcodes") {
            loadFamily(file, into: &specification)
        }
        for file in files(under: "examples") {
            loadExamples(file, into: &specification)
        }
        for file in files(under: "prose", ofType: "md") {
            loadChapter(file, into: &specification)
        }
        for file in files(under: "flows") {
            loadFlow(file, into: &specification)
        }
        return specification
    }

    // MARK: Files

    private func files(under folder: String, ofType type: String = "yaml") -> [String] {
        let enumerator = FileManager.default.enumerator(atPath: root.appending(path: folder).path)
        var found: [String] = []
        while let path = enumerator?.nextObject() as? String {
            if path.hasSuffix(".\(type)") { found.append("\(folder)/\(path)") }
        }
        return found.sorted()
    }

    mutating func document(_ file: String) -> YAMLMap? {
        do {
            let text = try TextFile.read(root.appending(path: file), as: file)
            guard let node = try Yams.compose(yaml: text) else {
                problems.append(Problem(origin: Origin(file: file, line: 0), text: "is empty"))
                return nil
            }
            return map(node, file: file)
        } catch let problem as Problem {
            problems.append(problem)
            return nil
        } catch {
            problems.append(
                Problem(origin: Origin(file: file, line: 0), text: "cannot be read: \(error)")
            )
            return nil
        }
    }

    mutating func map(_ node: Node, file: String) -> YAMLMap? {
        guard let map = YAMLMap(node, file: file) else {
            problems.append(
                Problem(
                    origin: Origin(file: file, line: node.mark?.line ?? 0),
                    text: "expected a map"
                )
            )
            return nil
        }
        for key in map.duplicateKeys {
            problems.append(Problem(origin: map.origin, text: "key \"\(key)\" is there twice"))
        }
        return map
    }

    mutating func maps(_ map: YAMLMap, _ key: String) -> [YAMLMap] {
        guard let node = map.node(key) else { return [] }
        guard let sequence = node.sequence else {
            problems.append(Problem(origin: map.origin, text: "\"\(key)\" must be a list"))
            return []
        }
        return sequence.compactMap { self.map($0, file: map.origin.file) }
    }

    mutating func finish(_ map: YAMLMap) {
        problems += map.problems()
    }

    // MARK: Prose

    private mutating func loadChapter(_ file: String, into specification: inout Specification) {
        do {
            let text = try TextFile.read(root.appending(path: file), as: file)
            let name = file.dropFirst("prose/".count).dropLast(".md".count)
            specification.chapters.append(ChapterParser.parse(text, name: String(name), file: file))
        } catch {
            problems.append(error)
        }
    }
}
