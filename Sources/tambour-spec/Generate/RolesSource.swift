/// Generates `RoleTable`: the permitted actions by role and kind of chat.
struct RolesSource {
    let roles: RoleSpecification

    func text() -> String {
        var source = SourceText(from: "protocol-spec/roles.yaml")
        source.doc("Who may do what in which kind of chat.")
        source.block("package enum RoleTable") { source in
            enumeration("Kind", roles.kinds, "Kinds of chats.", to: &source)
            source.line()
            enumeration("Role", roles.roles, "What somebody is in a chat.", to: &source)
            source.line()
            enumeration(
                "Action",
                roles.actions.map(\.documented),
                "What somebody asks for.",
                to: &source
            )
            source.line()
            bits("Permissions", roles.permissions, "What an administrator may.", to: &source)
            source.line()
            bits("Options", roles.options, "Switches of a chat.", to: &source)
            source.line()
            source.doc("What one of the alternatives of a cell asks for.")
            source.block("package enum Condition: Hashable, Sendable") { source in
                source.line("case permission(Permissions)")
                source.line("case isSet(Options)")
                source.line("case isNotSet(Options)")
            }
            source.line()
            source.doc("What becomes of an action.")
            source.block("package enum Cell: Hashable, Sendable") { source in
                source.doc("There is no such role in such a chat.")
                source.line("case absent")
                source.doc("It is done.")
                source.line("case yes")
                source.doc("`not.allowed`")
                source.line("case no")
                source.doc("`chat.not.found`")
                source.line("case unknown")
                source.doc("Done if one of them holds, otherwise `not.allowed`.")
                source.line("case anyOf([Condition])")
            }
            source.line()
            source.doc("The cell of an action in a kind of chat for a role.")
            source.block(
                "package static func cell(_ action: Action, in kind: Kind, for role: Role) -> Cell"
            ) { source in
                source.line(
                    "cells[(action.rawValue * Kind.allCases.count + kind.rawValue) * Role.allCases.count + role.rawValue]"
                )
            }
            source.line()
            source.block("private static let cells: [Cell] = [", "]") { source in
                for action in roles.actions {
                    for kind in roles.kinds {
                        let row = roles.roles.map { role in
                            text(roles.cell(action.cells[kind.name]?[role.name]) ?? .absent)
                        }
                        source.line(
                            "\(row.joined(separator: ", ")),  // \(action.name), \(kind.name)"
                        )
                    }
                }
            }
        }
        return source.text
    }

    private func enumeration(
        _ name: String,
        _ values: [Specification.Documented],
        _ doc: String,
        to source: inout SourceText
    ) {
        source.doc(doc)
        source.block("package enum \(name): Int, CaseIterable, Sendable") { source in
            for value in values {
                source.doc(value.doc)
                source.line("case \(value.name)")
            }
        }
    }

    private func bits(
        _ name: String,
        _ values: [RoleSpecification.Bit],
        _ doc: String,
        to source: inout SourceText
    ) {
        source.doc(doc)
        source.block("package struct \(name): OptionSet, Hashable, Sendable") { source in
            source.line("package let rawValue: Int64")
            source.line("package init(rawValue: Int64) { self.rawValue = rawValue }")
            for value in values {
                source.doc(value.documented.doc)
                source.line(
                    "package static let \(swiftName(value.name)) = \(name)(rawValue: \(literal(value.bit)))"
                )
            }
            source.line()
            source.doc("Every one there is, under the name it has on the wire and in the table.")
            source.block("package static let named: [(name: String, value: \(name))] = [", "]") {
                source in
                for value in values {
                    source.line("(\(literal(value.name)), .\(swiftName(value.name))),")
                }
            }
        }
    }

    private func text(_ cell: RoleSpecification.Cell) -> String {
        switch cell {
        case .absent: return ".absent"
        case .yes: return ".yes"
        case .no: return ".no"
        case .unknown: return ".unknown"
        case .anyOf(let conditions):
            let texts = conditions.map { condition in
                switch condition {
                case .permission(let name): ".permission(.\(swiftName(name)))"
                case .option(let name, true): ".isSet(.\(swiftName(name)))"
                case .option(let name, false): ".isNotSet(.\(swiftName(name)))"
                }
            }
            return ".anyOf([\(texts.joined(separator: ", "))])"
        }
    }

    private func swiftName(_ name: String) -> String {
        name.first?.isUppercase == true ? Names.camel(fromUpper: name) : name
    }
}
