package import TambourProtocol
import TambourSQL

/// The fields of a contact that its owner may change.
package struct ContactChange: Sendable {
    package var isAdded: Bool?
    package var isBlocked: Bool?
    /// The names the owner gives; an inner nil removes them.
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

    /// Whether this changes anything in `contact`.
    package func changes(_ contact: Contact) -> Bool {
        if let isAdded, isAdded != contact.isAdded { return true }
        if let isBlocked, isBlocked != contact.isBlocked { return true }
        guard let names else { return false }
        return names?.first != contact.firstName || names?.last != contact.lastName
    }
}

extension WriteTransaction {
    /// Changes what `owner` stores about a user; the owner's next login receives it.
    ///
    /// - Parameter known: what the owner has stored so far.
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
        let statement = store.contacts.upsert
        statement.bind(1, owner.rawValue)
        statement.bind(2, user.id.rawValue)
        statement.bind(3, contact.isAdded ? 1 : 0)
        statement.bind(4, contact.isBlocked ? 1 : 0)
        statement.bind(5, contact.isPartner ? 1 : 0)
        statement.bindWords(6, contact.firstName)
        statement.bindWords(7, contact.lastName)
        statement.bind(8, ct)
        try statement.run()
        // Some users show their phone only to people they have added.
        if contact.isAdded != known.isAdded {
            store.contacts.touchOne.bind(1, user.id.rawValue)
            store.contacts.touchOne.bind(2, owner.rawValue)
            store.contacts.touchOne.bind(3, ct)
            try store.contacts.touchOne.run()
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
            store.contacts.addPartner.bind(1, owner.rawValue)
            store.contacts.addPartner.bind(2, user.rawValue)
            store.contacts.addPartner.bind(3, ct)
            try store.contacts.addPartner.run()
        }
    }

    /// Changes a user's own profile; everyone who has the user as a contact sees it at the next
    /// login.
    package func setProfile(
        of user: UserID,
        firstName: String,
        lastName: String?,
        description: String?
    ) throws {
        writes += 1
        let statement = store.accounts.setProfile
        statement.bind(1, user.rawValue)
        statement.bindWords(2, firstName)
        statement.bindWords(3, lastName)
        statement.bindWords(4, description)
        statement.bind(5, ct)
        try statement.run()
        try indexName(of: user, firstName: firstName, lastName: lastName)
        try touchContacts(of: user)
    }

    func touchContacts(of user: UserID) throws {
        store.contacts.touch.bind(1, user.rawValue)
        store.contacts.touch.bind(2, ct)
        try store.contacts.touch.run()
    }
}
