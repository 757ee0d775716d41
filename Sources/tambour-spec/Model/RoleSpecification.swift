/// The contents of `roles.yaml`: the permitted actions by role and kind of chat.
struct RoleSpecification: Sendable {
    /// One bit of a number: a permission of an administrator, or an option of a chat.
    struct Bit: Sendable {
        var documented: Specification.Documented
        var bit: Int

        var name: String { documented.name }
    }

    struct Action: Sendable {
        var documented: Specification.Documented
        /// The texts of the table cells. The first key is the kind of chat, the second is the role.
        var cells: [String: [String: String]]

        var name: String { documented.name }
    }

    /// Whether a role may perform an action.
    enum Cell: Equatable, Sendable {
        /// The role does not exist in this kind of chat.
        case absent
        case yes, no, unknown
        /// At least one condition must hold.
        case anyOf([Condition])
    }

    enum Condition: Equatable, Sendable {
        case permission(String)
        case option(String, isSet: Bool)
    }

    var kinds: [Specification.Documented] = []
    var roles: [Specification.Documented] = []
    var permissions: [Bit] = []
    var options: [Bit] = []
    var actions: [Action] = []

    /// - Returns: nil if the text is not a valid cell.
    func cell(_ text: String?) -> Cell? {
        guard let text else { return .absent }
        switch text {
        case "yes": return .yes
        case "no": return .no
        case "unknown": return .unknown
        default: break
        }
        var conditions: [Condition] = []
        for part in text.split(separator: " or ") {
            let isSet = !part.hasPrefix("not ")
            let name = String(isSet ? part : part.dropFirst(4))
            if isSet, permissions.contains(where: { $0.name == name }) {
                conditions.append(.permission(name))
            } else if options.contains(where: { $0.name == name }) {
                conditions.append(.option(name, isSet: isSet))
            } else {
                return nil
            }
        }
        return conditions.isEmpty ? nil : .anyOf(conditions)
    }

    func problems(in specification: Specification) -> [Problem] {
        var problems: [Problem] = []
        let bits = permissions + options
        let lists = [kinds, roles, bits.map(\.documented), actions.map(\.documented)]
        let all = lists.flatMap { $0 }
        for entry in all {
            if entry.doc.last != "." {
                problems.append(
                    .init(
                        origin: entry.origin,
                        text: "\(entry.name): the text must end with a full stop"
                    )
                )
            }
            if entry.since < 1 || entry.since > specification.version {
                problems.append(
                    .init(origin: entry.origin, text: "\(entry.name): since no release there is")
                )
            }
        }
        for list in lists {
            var names: Set<String> = []
            for entry in list where !names.insert(entry.name).inserted {
                problems.append(.init(origin: entry.origin, text: "\(entry.name) is there twice"))
            }
        }
        for list in [permissions, options] {
            var seen = 0
            for entry in list {
                if entry.bit <= 0 || entry.bit & (entry.bit - 1) != 0 || seen & entry.bit != 0 {
                    problems.append(
                        .init(
                            origin: entry.documented.origin,
                            text: "\(entry.name): \(entry.bit) is no bit of its own"
                        )
                    )
                }
                seen |= entry.bit
            }
        }
        for action in actions {
            for kind in kinds {
                guard let row = action.cells[kind.name], !row.isEmpty else {
                    problems.append(
                        .init(
                            origin: action.documented.origin,
                            text: "\(action.name): nothing about \(kind.name)"
                        )
                    )
                    continue
                }
                for role in roles where cell(row[role.name]) == nil {
                    problems.append(
                        .init(
                            origin: action.documented.origin,
                            text: "\(action.name): \(kind.name), \(role.name) is no cell"
                        )
                    )
                }
                // Every action must have the same roles for a kind of chat.
                if Set(row.keys) != Set(actions.first?.cells[kind.name]?.keys ?? row.keys) {
                    problems.append(
                        .init(
                            origin: action.documented.origin,
                            text: "\(action.name): other roles in \(kind.name) than elsewhere"
                        )
                    )
                }
            }
        }
        return problems
    }
}
