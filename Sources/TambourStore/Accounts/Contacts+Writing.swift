package import TambourProtocol
import TambourSQL

/// A change of a contact by its owner. A field that is nil keeps its value.
package struct ContactChange: Sendable {
    package var isAdded: Bool?
    package var isBlocked: Bool?
    /// The names that the owner gives to the user. The outer nil keeps the stored names; the inner
    /// nil removes them.
    package var names: (first: String, last: String?)??

    package init(
        isAdded: Bool? = nil,
        isBlocked: Bool? = nil,
        names: (first: String, last: String?)?? = nil
    ) {
        self.isAdded = isAdded
        self.isBlocked = isBlocked
        self.names = names
    }

    /// Whether this change alters any field of `contact`.
    package func changes(_ contact: Contact) -> Bool {
        if let isAdded, isAdded != contact.isAdded { return true }
        if let isBlocked, isBlocked != contact.isBlocked { return true }
        guard let names else { return false }
        return names?.first != contact.firstName || names?.last != contact.lastName
    }
}

extension WriteTransaction {
    /// Changes a contact of `owner`. The owner's devices receive the change at their next login.
    ///
    /// - Parameter known: the contact before the change.
    /// - Returns: the updated contact.
    package func change(_ known: Contact, of owner: UserID, by change: ContactChange) throws
        -> Contact
    {
        writes += 1
        let user = known.account
        let isAdded = change.isAdded ?? known.isAdded
        let isBlocked = change.isBlocked ?? known.isBlocked
        var names = change.names ?? known.firstName.map { ($0, known.lastName) }
        if !isAdded, !isBlocked, !known.isPartner { names = nil }
        let contact = Contact(
            account: user,
            isAdded: isAdded,
            isBlocked: isBlocked,
            isPartner: known.isPartner,
            firstName: names?.first,
            lastName: names?.last,
            isMutual: known.isMutual,
            changed: ct,
            wasMet: true
        )
        try store.contacts.upsert.run {
            $0.bind(1, owner.rawValue)
            $0.bind(2, user.id.rawValue)
            $0.bind(3, contact.isAdded ? 1 : 0)
            $0.bind(4, contact.isBlocked ? 1 : 0)
            $0.bind(5, contact.isPartner ? 1 : 0)
            $0.bindWords(6, contact.firstName)
            $0.bindWords(7, contact.lastName)
            $0.bind(8, ct)
        }
        // The owner may show their phone only to users whom the owner has added. The contact that
        // the user has for the owner therefore changes too.
        if contact.isAdded != known.isAdded {
            try store.contacts.touchOne.run {
                $0.bind(1, user.id.rawValue)
                $0.bind(2, owner.rawValue)
                $0.bind(3, ct)
            }
        }
        if contact.isBlocked != known.isBlocked,
            let dialog = try chat(of: owner, and: user.id)
        {
            dialog.setBlocked(contact.isBlocked, by: owner)
        }
        return contact
    }

    /// Makes the two users of a dialog contacts of each other.
    func addPartners(_ a: UserID, _ b: UserID) throws {
        for (owner, user) in [(a, b), (b, a)] {
            try store.contacts.addPartner.run {
                $0.bind(1, owner.rawValue)
                $0.bind(2, user.rawValue)
                $0.bind(3, ct)
            }
        }
    }

    /// Changes a user's own profile. Everyone who has the user as a contact receives the new
    /// profile at the next login.
    package func setProfile(
        of user: UserID,
        firstName: String,
        lastName: String?,
        description: String?
    ) throws {
        writes += 1
        try store.accounts.setProfile.run {
            $0.bind(1, user.rawValue)
            $0.bindWords(2, firstName)
            $0.bindWords(3, lastName)
            $0.bindWords(4, description)
            $0.bind(5, ct)
        }
        try indexName(of: user, firstName: firstName, lastName: lastName)
        try touchContacts(of: user)
    }

    func touchContacts(of user: UserID) throws {
        try store.contacts.touch.run {
            $0.bind(1, user.rawValue)
            $0.bind(2, ct)
        }
    }
}
