import Yams

/// A YAML map that records which keys the loader reads. Reports the keys that the loader has not
/// read, because they are probably misspelt.
final class YAMLMap {
    let origin: Origin
    let entries: [(String, Node)]
    let duplicateKeys: [String]
    private var asked: Set<String> = []
    private var found: [Problem] = []

    init?(_ node: Node, file: String) {
        guard let mapping = node.mapping else { return nil }
        origin = Origin(file: file, line: node.mark?.line ?? 0)
        entries = mapping.map { ($0.key.string ?? "?", $0.value) }
        var seen: Set<String> = []
        duplicateKeys = entries.map(\.0).filter { !seen.insert($0).inserted }
    }

    func node(_ key: String) -> Node? {
        asked.insert(key)
        return entries.first { $0.0 == key }?.1
    }

    func string(_ key: String) -> String? {
        guard let node = node(key) else { return nil }
        guard let scalar = node.scalar else {
            complain("\"\(key)\" must be a string")
            return nil
        }
        return scalar.string.split(whereSeparator: \.isNewline).joined(separator: " ")
    }

    /// Returns the line of a key's value.
    func line(_ key: String) -> Int { node(key)?.mark?.line ?? 0 }

    func required(_ key: String) -> String {
        guard let string = string(key), !string.isEmpty else {
            complain("has no \"\(key)\"")
            return "?"
        }
        return string
    }

    func int(_ key: String) -> Int? {
        guard let node = node(key) else { return nil }
        guard let int = node.int else {
            complain("\"\(key)\" must be a number")
            return nil
        }
        return int
    }

    func requiredInt(_ key: String) -> Int {
        guard node(key) != nil else {
            complain("has no \"\(key)\"")
            return 0
        }
        return int(key) ?? 0
    }

    func bool(_ key: String) -> Bool? {
        guard let node = node(key) else { return nil }
        guard let bool = node.bool else {
            complain("\"\(key)\" must be true or false")
            return nil
        }
        return bool
    }

    func strings(_ key: String) -> [String] {
        guard let node = node(key) else { return [] }
        guard let sequence = node.sequence else {
            complain("\"\(key)\" must be a list")
            return []
        }
        return sequence.compactMap(\.string)
    }

    /// Reads either one name or a list of names.
    func names(_ key: String) -> [String] {
        guard let node = node(key) else { return [] }
        if let name = node.scalar?.string { return [name] }
        return strings(key)
    }

    func choice<Choice: RawRepresentable<String>>(_ key: String) -> Choice? {
        guard let string = string(key) else { return nil }
        guard let choice = Choice(rawValue: string) else {
            complain("\"\(key)\" has no value \"\(string)\"")
            return nil
        }
        return choice
    }

    /// Returns the problems found so far. Each key that was never read is a problem too.
    func problems() -> [Problem] {
        found
            + entries.map(\.0).filter { !asked.contains($0) }.map {
                Problem(origin: origin, text: "unknown key \"\($0)\"")
            }
    }

    private func complain(_ text: String) {
        found.append(Problem(origin: origin, text: text))
    }
}
