import TambourProtocol
import TambourSQL

/// The statements for the users whom the messages of a chat name. A message names a user if it
/// forwards a message of this user, or contains the user's contact card. The members of the chat
/// may see a named user, even if this user is not a member.
struct IntroductionStatements {
    private static let add = """
        INSERT INTO introduction (user_id, chat) VALUES ($1, $2)
        ON CONFLICT (user_id, chat) DO NOTHING
        """

    private enum NamingColumn: Int, SQLColumn {
        case chat, attaches, forward
    }

    let add: any SQLStatement

    init(_ sql: any SQLConnection) throws {
        add = try sql.prepare(Self.add)
    }

    /// Fills the table from the messages of a store that is older than the table.
    @Sendable
    static func introduceNamed(on sql: any SQLConnection) throws(SQLError) {
        let add = try sql.prepare(Self.add)
        let messages: SQLQuery<NamingColumn> = try sql.query(
            """
            SELECT \(NamingColumn.list) FROM message
            WHERE attaches IS NOT NULL OR forward IS NOT NULL
            """
        )
        defer { messages.statement.reset() }
        while let message = try messages.next() {
            let named = People.named(
                attaches: message.packed(.attaches),
                forward: message.packed(.forward)
            )
            for user in named {
                add.bind(1, user.rawValue)
                add.bind(2, message.int(.chat))
                try add.run()
            }
        }
    }
}

private enum People {
    /// Returns the users whom a message names: users on its contact cards, and the author of the
    /// forwarded message.
    static func named(
        attaches: Packed<[Attach]>?,
        forward: Packed<MessageLink>?
    ) -> Set<UserID> {
        var named: Set<UserID> = []
        func cards(_ attaches: [Attach]) {
            for attach in attaches where attach.type == .contact {
                if let user = attach.contactID { named.insert(user) }
            }
        }
        if let attaches = attaches?.stored { cards(attaches) }
        if let original = forward?.stored?.message {
            if let author = original.sender { named.insert(author) }
            if let attaches = original.attaches.stored { cards(attaches) }
        }
        return named
    }
}

extension WriteTransaction {
    /// Lets the members of a chat see the users whom a message names.
    ///
    /// For a comment, lets the members of the channel see the author of the comment and the users
    /// whom the comment names.
    func introduceNamed(in record: MessageRecord, of chat: ChatState) throws {
        guard record.attaches != nil || record.forward != nil || chat.post != nil else { return }
        var named = People.named(attaches: record.attaches, forward: record.forward)
        if chat.post != nil { named.insert(record.sender) }
        for user in named {
            try store.introductions.add.run {
                $0.bind(1, user.rawValue)
                $0.bind(2, (chat.post?.channel ?? chat).key.rawValue)
            }
        }
    }
}
