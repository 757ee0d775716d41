import TambourProtocol
import TambourStore

/// Decides whom a viewer may see, within one request. No other code decides it.
///
/// The viewer may see the profiles of
/// - themselves, and their present and former contacts; a dialog makes both sides contacts;
/// - present and former members of groups that they share;
/// - owners and administrators of channels that they read, and readers of channels that they administer;
/// - owners of public chats, and users who ask to join a chat where the viewer decides;
/// - authors of messages forwarded into their chats, and users whose contact cards were sent there;
/// - users who have commented in channels that they read;
/// - users they have recently found by a phone, a name or a link;
/// - erased users, who have nothing left to show.
///
/// Presence requires a contact, a dialog or a common group, and that the other user shows it and has not
/// blocked the viewer. All other users look like unassigned ids. Reasons:
/// docs/decisions/0022-who-sees-whom.md
struct Sight {
    private let found: FoundPeople
    private var meetings: Meetings

    init(of viewer: UserID, found: FoundPeople, limits: Limits) {
        self.found = found
        meetings = Meetings(of: viewer, limits: limits)
    }

    /// Whether the viewer may see the user's profile.
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

    /// Whether the viewer may see the user's presence, if the user shows it.
    mutating func seesPresence(
        _ user: UserID,
        as contact: Contact?,
        in snapshot: ReadTransaction
    ) throws -> Bool {
        try meetings.isAtLeast(.near, user, as: contact, in: snapshot) && contact != nil
    }

    /// The same as `sees`, for a command: includes the changes that its batch has made to chats so
    /// far.
    mutating func sees(_ user: UserID, in tx: WriteTransaction) throws -> Bool {
        let contact = try tx.reader.contact(user, of: meetings.viewer)
        if contact?.wasMet == true { return true }
        return try sees(user, as: contact, in: tx.flushedReader())
    }
}
