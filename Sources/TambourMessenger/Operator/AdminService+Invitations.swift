import TambourProtocol
import TambourStore

// Makes, lists and withdraws invitations to the server.
extension AdminService {
    private static let useRange = 1...10_000
    private static let dayRange = 1...3_650
    private static let shownUsers = 10

    /// Makes an invitation for anybody who has its code, and prints `ID CODE until END`. Only this
    /// line shows the code, because the store contains only a hash of the code.
    func createInvitation(uses: Int, days: Int, _ output: (String) throws -> Void) throws {
        guard Self.useRange.contains(uses) else {
            throw Failure(
                description:
                    "uses: \(uses) is not \(Self.useRange.lowerBound) to "
                    + "\(Self.useRange.upperBound); make several invitations for more people"
            )
        }
        try Self.check(days: days)
        let code = Tokens.makeInvitation(backend.environment)
        let kept = backend.limits.invitationsKeptMs
        let line = Box("")
        try backend.write { tx in
            let end = tx.ct + Int64(days) * Self.dayMs
            let id = try tx.createInvitation(
                codeHash: Tokens.hash(code),
                maxUses: uses,
                expires: end,
                keptSince: tx.ct - kept
            )
            try tx.record(.createInvitation, about: nil, "invitation \(id.rawValue)")
            line.value = "\(id.rawValue) \(code) until \(AdminText.time(end))"
        }
        try output(line.value)
    }

    /// Invites a phone, and prints `ID PHONE until END`. If the phone already has an invitation,
    /// changes the end of this invitation.
    func invite(_ phone: Int64, days: Int, _ output: (String) throws -> Void) throws {
        let shown = PhoneNumber.format(phone)
        guard PhoneNumber.parse(shown) == phone else {
            throw Failure(description: "\(shown) is no phone number: 5 to 15 digits after a plus")
        }
        try Self.check(days: days)
        let kept = backend.limits.invitationsKeptMs
        let line = Box("")
        try backend.write { tx in
            if let account = try tx.reader.account(phone: phone) {
                throw Failure(
                    description:
                        "\(shown) has an account already, \(account.id): it logs in without an "
                        + "invitation"
                )
            }
            let end = tx.ct + Int64(days) * Self.dayMs
            let id = try tx.invite(
                phone: phone,
                expires: end,
                keptSince: tx.ct - kept
            )
            try tx.record(.invite, about: nil, "invitation \(id.rawValue)")
            line.value = "\(id.rawValue) \(shown) until \(AdminText.time(end))"
        }
        try output(line.value)
    }

    private static func check(days: Int) throws {
        guard dayRange.contains(days) else {
            throw Failure(
                description:
                    "days: \(days) is not \(dayRange.lowerBound) to \(dayRange.upperBound)"
            )
        }
    }

    func listInvitations(_ filter: AdminFilter, _ output: (String) throws -> Void) throws {
        let state = try filter.choice(.state, of: ["open", "used", "ended"])
        let first = InvitationID(try filter.number(.after) ?? 0)
        let now = backend.environment.wallMs()
        try list(filter, from: first, output) { snapshot, after, limit in
            try snapshot.invitations(after: after, limit: limit).map { invitation in
                guard state.map({ $0 == invitation.state(at: now) }) ?? true else {
                    return (invitation.id, nil)
                }
                let users =
                    invitation.uses == 0
                    ? [] : try snapshot.users(of: invitation.id, limit: Self.shownUsers)
                return (invitation.id, invitation.line(at: now, users))
            }
        }
    }

    func revokeInvitation(_ id: String, _ output: (String) throws -> Void) throws {
        guard let number = Int64(id) else {
            throw Failure(
                description: "\(id) is no number of an invitation: `invites list` has the numbers"
            )
        }
        try backend.write { tx in
            guard try tx.deleteInvitation(InvitationID(number)) else {
                throw Failure(description: "there is no invitation \(number)")
            }
            try tx.record(.revokeInvitation, about: nil, "invitation \(number)")
        }
        try output("\(number) revoked")
    }
}

extension Invitation {
    fileprivate func state(at now: Int64) -> String {
        isOpen(at: now) ? "open" : uses < maxUses ? "ended" : "used"
    }

    /// Returns the line `ID STATE USES/MOST CREATED END WHOM`. The maker of the invitation and the
    /// users who registered with it follow.
    fileprivate func line(at now: Int64, _ users: [UserID]) -> String {
        var words = [
            "\(id.rawValue)", state(at: now), "\(uses)/\(maxUses)", AdminText.time(created),
            AdminText.time(expires),
            hasCode ? "code" : phone.map { PhoneNumber.format($0) } ?? "phone",
        ]
        if let maker { words += ["by", "\(maker)"] }
        if !users.isEmpty { words += ["used", "by"] + users.map { "\($0)" } }
        if users.count < uses, !users.isEmpty { words.append("…") }
        return words.joined(separator: " ")
    }
}
