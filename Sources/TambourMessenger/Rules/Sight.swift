import TambourProtocol
import TambourStore

/// Decides which users a viewer may see, within one request. No other code makes this decision.
///
/// The viewer may see the profiles of
/// - themselves, and their present and former contacts; a dialog makes both partners contacts;
/// - present and former members of groups that they share;
/// - owners and administrators of channels that they read, and readers of channels that they
///   administer;
/// - owners of public chats, and users who request to join a chat in which the viewer decides about
///   requests;
/// - authors of messages forwarded into their chats, and users whose contact cards were sent there;
/// - users who have commented in channels that they read;
/// - users whom the viewer has recently found by phone, name or link;
/// - erased users, whose profiles are empty.
///
/// To see a user's presence, the viewer needs a contact, a dialog or a common group with the user.
/// The user must also show the presence and must not have blocked the viewer. A user whose profile
/// the viewer may not see looks like an unassigned id. Reasons:
/// docs/decisions/0022-who-sees-whom.md
struct Sight {
    private let found: FoundPeople
    private var meetings: Meetings

    init(of viewer: UserID, found: FoundPeople, limits: Limits) {
        self.found = found
        meetings = Meetings(of: viewer, limits: limits)
    }

    /// Returns whether the viewer may see the user's profile.
    ///
    /// - Parameter contact: the viewer's row for the user; nil if the id is unassigned.
    mutating func sees(
        _ user: UserID,
        as contact: Contact?,
        in snapshot: ReadTransaction
    ) throws -> Bool {
        if contact != nil, found.has(user, foundBy: meetings.viewer) { return true }
        return try meetings.isAtLeast(.met, user, as: contact, in: snapshot) && contact != nil
    }

    /// Returns whether the viewer may see the user's presence, if the user shows it.
    mutating func seesPresence(
        _ user: UserID,
        as contact: Contact?,
        in snapshot: ReadTransaction
    ) throws -> Bool {
        try meetings.isAtLeast(.near, user, as: contact, in: snapshot) && contact != nil
    }

    /// Like `sees`, but for a command. Includes the changes to chats that the command's batch has
    /// made so far.
    mutating func sees(_ user: UserID, in tx: WriteTransaction) throws -> Bool {
        let contact = try tx.reader.contact(user, of: meetings.viewer)
        if contact?.wasMet == true { return true }
        return try sees(user, as: contact, in: tx.flushedReader())
    }
}
