import Foundation
import TambourMessenger
import TambourProtocol
import Yams

/// Reads the file that `--features` names. The file is YAML or JSON, and maps the names of features
/// to their rules.
///
/// Each error message contains the file and, if possible, the line, the feature and the rule.
struct FeatureFile {
    let path: String
    let limits: Limits

    func rules() throws -> FeatureRules {
        let root: Node?
        do {
            root = try Yams.compose(yaml: text())
        } catch let error as YamlError {
            throw Failure("\(path)\(Self.place(of: error))")
        }
        // Refuse an empty file. An editor may leave the file empty for a moment while it writes,
        // and without rules every feature would be on.
        guard let root else {
            throw Failure("\(path): is empty; {} says that there are no features")
        }
        let entries = try map(root, "the file")
        if entries.count > limits.maxFeatures {
            throw Failure("\(path): \(entries.count) features, limit \(limits.maxFeatures)")
        }
        var lines: [String: [Int]] = [:]
        var plans: [FeaturePlan] = []
        for (name, node) in entries {
            let (plan, rules) = try plan(name, node)
            plans.append(plan)
            lines[name] = [line(node)] + rules
        }
        do {
            return try FeatureRules(plans)
        } catch {
            let line = lines[error.feature]?[(error.rule ?? -1) + 1] ?? 0
            throw Failure("\(path):\(line): \(error)")
        }
    }

    private func text() throws -> String {
        let limit = limits.maxFeatureFileBytes
        var isFolder: ObjCBool = false
        guard FileManager.default.fileExists(atPath: path, isDirectory: &isFolder),
            !isFolder.boolValue, let file = FileHandle(forReadingAtPath: path)
        else { throw Failure("cannot read \(path)") }
        var bytes = Data()
        while bytes.count <= limit, let more = try file.read(upToCount: limit + 1), !more.isEmpty {
            bytes += more
        }
        if bytes.count > limit { throw Failure("\(path): more than \(limit) bytes") }
        guard let text = String(validating: bytes, as: UTF8.self) else {
            throw Failure("\(path): not UTF-8")
        }
        return text
    }

    /// Returns the place and the reason of a YAML error, on one line.
    private static func place(of error: YamlError) -> String {
        switch error {
        case .scanner(_, let problem, let mark, _), .parser(_, let problem, let mark, _),
            .composer(_, let problem, let mark, _):
            ":\(mark.line): \(problem)"
        case .reader(let problem, _, _, _): ": \(problem)"
        case .duplicatedKeysInMapping(let keys, _):
            ": stands there twice: \(keys.sorted().joined(separator: ", "))"
        default: ": \("\(error)".split(separator: "\n").joined(separator: " "))"
        }
    }

    /// Returns the plan of one feature, and the line of each of its rules.
    private func plan(_ name: String, _ node: Node) throws -> (FeaturePlan, lines: [Int]) {
        var plan = FeaturePlan(name: name)
        var lines: [Int] = []
        var hasRules = false
        for (key, value) in try map(node, name) {
            let place = "\(name): \(key)"
            switch key {
            case "kill": plan.isKilled = try bool(value, place)
            case "salt": plan.salt = try text(value, place)
            case "variations":
                plan.variations = try map(value, place).map { name, weight in
                    guard let weight = weight.int else {
                        throw mistake(weight, "\(place): the weight of \(name) is no whole number")
                    }
                    return FeaturePlan.Variation(name: name, weight: weight)
                }
            case "rules":
                hasRules = true
                for (index, rule) in try list(value, place).enumerated() {
                    lines.append(line(rule))
                    plan.rules.append(try self.rule(rule, "\(name), rule \(index + 1)"))
                }
            default: throw mistake(value, "\(name): unknown key \"\(key)\"")
            }
        }
        guard hasRules || plan.isKilled else {
            throw mistake(node, "\(name): has neither rules nor \"kill: true\"")
        }
        return (plan, lines)
    }

    private func rule(_ node: Node, _ name: String) throws -> FeatureRule {
        var isEnabled = true
        var variation: String?
        var percent: Int?
        var systems: [String] = []
        var appVersion: AppVersionRange?
        var locales: [String] = []
        var userIDs: [Int64] = []
        for (key, value) in try map(node, name) {
            let place = "\(name): \(key)"
            switch key {
            case "enabled": isEnabled = try bool(value, place)
            case "variation": variation = try text(value, place)
            case "percent": percent = try hundredths(value, place)
            case "os": systems = try texts(value, place)
            case "appVersion": appVersion = try versions(value, place)
            case "locale": locales = try texts(value, place)
            case "userIds":
                userIDs = try list(value, place).map { node in
                    guard let id = node.int, id > 0 else {
                        throw mistake(node, "\(place): not a user id")
                    }
                    return Int64(id)
                }
                // Refuse an empty list, because a rule with an empty list would apply to every
                // user.
                if userIDs.isEmpty { throw mistake(value, "\(place): is empty") }
            default: throw mistake(value, "\(name): unknown key \"\(key)\"")
            }
        }
        return FeatureRule(
            isEnabled: isEnabled,
            variation: variation,
            percent: percent,
            systems: systems,
            appVersion: appVersion,
            locales: locales,
            userIDs: Set(userIDs)
        )
    }

    /// Parses a map such as `{from: "2.1", below: "3"}`. One of the two keys may be missing.
    private func versions(_ node: Node, _ place: String) throws -> AppVersionRange {
        var range: [String: AppVersion] = [:]
        for (key, value) in try map(node, place) {
            guard key == "from" || key == "below" else {
                throw mistake(value, "\(place): unknown key \"\(key)\"")
            }
            let text = try text(value, "\(place): \(key)")
            guard let version = AppVersion(text) else {
                throw mistake(value, "\(place): \"\(text)\" is no version")
            }
            range[key] = version
        }
        if range.isEmpty { throw mistake(node, "\(place): has neither from nor below") }
        return AppVersionRange(from: range["from"], below: range["below"])
    }

    /// Parses a percentage with at most two decimal places, and returns it in hundredths of a
    /// percent. Does not use floating point, which would round some values.
    private func hundredths(_ node: Node, _ place: String) throws -> Int {
        let text = try text(node, place)
        guard let match = text.wholeMatch(of: /([0-9]{1,3})(?:\.([0-9]{1,2}))?/),
            let whole = Int(match.1),
            let decimals = Int((match.2 ?? "") + "00".dropFirst(match.2?.count ?? 0)),
            whole * 100 + decimals <= 100_00
        else {
            throw mistake(node, "\(place): \"\(text)\" is not 0 to 100 with at most two decimals")
        }
        return whole * 100 + decimals
    }

    // MARK: - Nodes

    private func map(_ node: Node, _ place: String) throws -> [(String, Node)] {
        guard let mapping = node.mapping else {
            throw mistake(node, "\(place): not a map of names to values")
        }
        return try mapping.map { key, value in
            guard let name = key.string else { throw mistake(key, "\(place): a key is no name") }
            return (name, value)
        }
    }

    private func list(_ node: Node, _ place: String) throws -> [Node] {
        guard let sequence = node.sequence else { throw mistake(node, "\(place): not a list") }
        return Array(sequence)
    }

    /// Returns the text of a scalar exactly as it is written, because 2.10 and 2.1 are different
    /// versions.
    private func text(_ node: Node, _ place: String) throws -> String {
        guard let scalar = node.scalar else { throw mistake(node, "\(place): not a text") }
        return scalar.string
    }

    /// Returns a list of texts. A single text counts as a list of one text.
    private func texts(_ node: Node, _ place: String) throws -> [String] {
        let nodes = node.sequence.map(Array.init) ?? [node]
        let texts = try nodes.map { try text($0, place) }
        // Refuse an empty list, because a rule with an empty list would apply to every subject.
        if texts.isEmpty || texts.contains("") { throw mistake(node, "\(place): is empty") }
        return texts
    }

    private func bool(_ node: Node, _ place: String) throws -> Bool {
        guard let bool = node.bool else {
            throw mistake(node, "\(place): neither true nor false")
        }
        return bool
    }

    private func line(_ node: Node) -> Int { node.mark?.line ?? 0 }

    private func mistake(_ node: Node, _ text: String) -> Failure {
        Failure("\(path):\(line(node)): \(text)")
    }
}
