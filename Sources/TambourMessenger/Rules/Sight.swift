import TambourProtocol
import TambourStore

/// Decides which users a viewer may see, within one request. No other code makes this decision.
///
/// The viewer may see the profiles of
/// - themselves, and their present and former contacts (a dialog makes both partners contacts);
/// - present and former members of groups that they share;
/// - owners and administrators of channels that the viewer reads;
/// - readers of channels that the viewer administers;
/// - owners of public chats;
/// - users who request to join a chat, if the viewer decides about requests in this chat;
/// - authors of messages that were forwarded into the viewer's chats;
/// - users whose contact cards were sent into the viewer's chats;
/// - users who have commented in channels that the viewer reads;
/// - users whom the viewer has recently found by phone, name or link;
/// - erased users, whose profiles are empty.
///
/// To see a user's presence, the viewer needs a contact, a dialog or a common group with the user.
/// The user must also show the presence and must not have blocked the viewer. If the viewer may not
/// see a profile, the server answers as if nobody had this id. Reasons:
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
    /// - Parameter contact: the viewer's contact row for the user; nil if nobody has this id.
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

    /// Returns whether the viewer may see the user's profile, for a command. Takes into account the
    /// changes to chats that the command's batch has made so far.
    mutating func sees(_ user: UserID, in tx: WriteTransaction) throws -> Bool {
        let contact = try tx.reader.contact(user, of: meetings.viewer)
        if contact?.wasMet == true { return true }
        return try sees(user, as: contact, in: tx.flushedReader())
    }
}
