import TambourEvents
import TambourProtocol
import TambourStore

extension AdminService {
    /// Prints a line `ID TIME ACTION USER TIMES ADDRESS "DETAIL"` for every entry of the audit log.
    func listAudit(_ filter: AdminFilter, _ output: (String) throws -> Void) throws {
        let user = try filter[.user].map { try id(of: $0) }
        let kind = try filter.choice(.kind, of: AuditEntry.Kind.allCases.map(\.word))
        let action = try filter.choice(.action, of: AuditEntry.Action.allCases.map(\.rawValue))
        let since = try filter.days(.days).map { days in
            backend.environment.wallMs() - days * Self.dayMs
        }
        let first = try filter.number(.after) ?? 0
        try list(filter, from: first, output) { snapshot, after, limit in
            let entries =
                if let user {
                    try snapshot.auditEntries(about: user, after: after, limit: limit)
                } else {
                    try snapshot.auditEntries(after: after, limit: limit)
                }
            return entries.map { entry in
                guard kind.map({ $0 == entry.kind?.word }) ?? true,
                    action.map({ $0 == entry.action }) ?? true,
                    since.map({ entry.last >= $0 }) ?? true,
                    filter.matches(.address, entry.address)
                else { return (entry.id, nil) }
                return (entry.id, entry.line)
            }
        }
    }

    /// Records an action that changes nothing in the store, such as an export.
    ///
    /// Records nothing when no server runs. A person who can open the store could copy it anyway.
    ///
    /// - Parameter user: returns the user whom the action concerns.
    func recordIfServing(
        _ action: AuditEntry.Action,
        about user: @escaping @Sendable (WriteTransaction) throws -> UserID? = { _ in nil }
    ) throws {
        guard backend.servesClients else { return }
        try backend.write { tx in try tx.record(action, about: user(tx)) }
    }
}

extension AuditEntry {
    fileprivate var line: String {
        let details = times > 1 ? "the last at \(AdminText.time(last))" : detail
        return "\(id) \(AdminText.time(created)) \(action) \(user.map { "\($0)" } ?? "-") "
            + "\(times) \(address.isEmpty ? "-" : address) \(AdminText.quoted(details))"
    }
}
