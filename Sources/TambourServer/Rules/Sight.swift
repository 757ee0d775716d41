import TambourProtocol
import TambourStore

/// Who may see whom, within one request of somebody: the one place that decides it.
///
/// The viewer may see the profile of
/// - themselves, and of whoever is or was a contact of theirs, which a dialog makes of both sides;
/// - members of groups that they share, also former ones, whose messages stay;
/// - owners and administrators of channels that they read, and readers of channels that they administer;
/// - the owner of any public chat, and who asks to be let into a chat where they decide about it;
/// - authors of what was forwarded into their chats, and those whose contact cards were sent there;
/// - whomever they have just found by a phone, a name or a link;
/// - erased users, of whom nothing is left to see.
///
/// Presence takes a contact, a dialog or a common group, beside what the other shows and whom they have
/// blocked. Everybody else looks like nobody. Reasons: docs/decisions/0022-who-sees-whom.md
struct Sight {
    private let found: FoundPeople
    private var meetings: Meetings

    init(of viewer: UserID, found: FoundPeople, limits: Limits) {
        self.found = found
        meetings = Meetings(of: viewer, limits: limits)
    }

    /// Whether the viewer may see who it is.
    ///
    /// - Parameter contact: what the viewer keeps of the user; nil when nobody has the id.
    mutating func sees(
        _ user: UserID,
        as contact: Contact?,
        in snapshot: ReadTransaction
    ) throws -> Bool {
        if contact != nil, found.has(user, foundBy: meetings.viewer) { return true }
        return try meetings.isAtLeast(.met, user, as: contact, in: snapshot) && contact != nil
    }

    /// Whether the viewer may see if the user is online, as far as the user lets them.
    mutating func seesPresence(
        _ user: UserID,
        as contact: Contact?,
        in snapshot: ReadTransaction
    ) throws -> Bool {
        try meetings.isAtLeast(.near, user, as: contact, in: snapshot) && contact != nil
    }

    /// The same as `sees` for a command: chats that its batch has changed count as they are now.
    mutating func sees(_ user: UserID, in tx: WriteTransaction) throws -> Bool {
        let contact = try tx.reader.contact(user, of: meetings.viewer)
        if contact?.wasMet == true { return true }
        return try sees(user, as: contact, in: tx.flushedReader())
    }
}
