import Foundation

@testable import tambour_spec

/// Trials that change the role table.
extension Trials {
    private static var bits: [String] {
        old.roles.permissions.map { "permission \($0.name)" }
            + old.roles.options.map { "option \($0.name)" }
    }

    /// Returns the titles of the cells for whose text `isMeant` returns true.
    private static func cells(where isMeant: (String) -> Bool) -> [String] {
        old.roles.actions.flatMap { action in
            action.cells.flatMap { kind, row in
                row.filter { isMeant($0.value) }.map { "\(action.name) by \($0.key) in \(kind)" }
            }
        }
    }

    /// Applies `change` to every cell of the role table.
    private static func forEachCell(
        _ specification: inout Specification,
        _ change: (String) -> String
    ) {
        for index in specification.roles.actions.indices {
            specification.roles.actions[index].cells = specification.roles.actions[index].cells
                .mapValues { $0.mapValues(change) }
        }
    }

    private static func forEachBit(
        _ specification: inout Specification,
        _ change: (inout RoleSpecification.Bit) -> Void
    ) {
        for index in specification.roles.permissions.indices {
            change(&specification.roles.permissions[index])
        }
        for index in specification.roles.options.indices {
            change(&specification.roles.options[index])
        }
    }

    mutating func addRoles() {
        func broken(_ titles: [String], _ rule: String) -> [Broken] {
            titles.map { Broken(title: $0, rule: rule) }
        }
        let bits = Self.bits
        add("a permission or an option is removed", bits, breaks: broken(bits, "role-bit-removed"))
        {
            $0.roles.permissions = []
            $0.roles.options = []
        }
        add("a bit is another one", bits, breaks: broken(bits, "role-bit-renumbered")) {
            Self.forEachBit(&$0) { $0.bit <<= 20 }
        }
        add("a bit is dated anew", bits, breaks: broken(bits, "since-of-roleBit")) {
            Self.forEachBit(&$0) { $0.documented.since = Self.next.version }
        }
        for (what, since, rules) in [
            ("an option is added", Self.next.version, []),
            ("an option is added and dated back", Self.old.version, ["since-of-added-roleBit"]),
        ] as [(String, Int, [String])] {
            add(what, ["added"], breaks: rules.flatMap { broken(["option ADDED"], $0) }) {
                var option = $0.roles.options[0]
                option.documented.name = "ADDED"
                option.documented.since = since
                option.bit <<= 30
                $0.roles.options.append(option)
            }
        }
        let all = Self.cells { _ in true }
        add("an action is removed", all, breaks: broken(all, "role-cell-removed")) {
            $0.roles.actions = []
        }
        let allowed = Self.cells { $0 != "no" && $0 != "unknown" }
        add(
            "nobody may do anything any more",
            allowed,
            breaks: broken(allowed, "role-cell-narrowed")
        ) {
            Self.forEachCell(&$0) { $0 == "unknown" ? $0 : "no" }
        }
        let free = Self.cells { $0 == "yes" }
        add("what was free takes a permission", free, breaks: broken(free, "role-cell-narrowed")) {
            Self.forEachCell(&$0) { $0 == "yes" ? "info" : $0 }
        }
        let several = Self.cells { $0.contains(" or ") }
        add(
            "one alternative of several is left",
            several,
            breaks: broken(several, "role-cell-narrowed")
        ) {
            Self.forEachCell(&$0) { String($0.split(separator: " or ")[0]) }
        }
        add("everybody may do everything", all) { Self.forEachCell(&$0) { _ in "yes" } }
        add("another alternative is added", all) {
            Self.forEachCell(&$0) { ["yes", "no", "unknown"].contains($0) ? $0 : "\($0) or info" }
        }
    }
}
