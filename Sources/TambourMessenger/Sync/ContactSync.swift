import TambourProtocol
import TambourStore

extension LoginSync {
    /// Returns contacts as sent to clients: in full while they fit `room` bytes, then without
    /// names.
    ///
    /// A page never splits the contacts of one commit. With all names they may exceed the reply, so
    /// some go without. A client that receives a contact without names requests it with
    /// CONTACT_INFO.
    func users(_ contacts: [Contact], room: Int) -> [User] {
        var room = room - contacts.count * Contact.bareSize
        return contacts.map { contact in
            let more = contact.wireSizeEstimate - Contact.bareSize
            guard more <= room else { return contact.bareUser }
            room -= more
            return contact.user(showingRemoval: true)
        }
    }
}

extension Contact {
    /// An upper bound for the wire size of `bareUser`, in bytes.
    static let bareSize = 96

    /// Returns the contact without names.
    fileprivate var bareUser: User {
        let full = user(showingRemoval: true)
        return User(
            id: full.id,
            accountStatus: full.accountStatus,
            updateTime: full.updateTime,
            status: full.status
        )
    }
}
