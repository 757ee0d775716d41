import TambourProtocol
import TambourStore

extension LoginSync {
    /// Returns contacts in the form that clients receive. Contacts are complete while they fit
    /// `room` bytes. The others have no names.
    ///
    /// A page never splits the contacts of one commit. With all their names, these contacts may
    /// exceed the reply, so some of them are sent without names. The client then requests such a
    /// contact with CONTACT_INFO.
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
