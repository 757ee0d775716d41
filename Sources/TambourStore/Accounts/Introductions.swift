import TambourProtocol
import TambourSQL

/// The statements for users whom a chat's messages name: authors of messages forwarded to the chat,
/// and users on contact cards sent to it. The chat's members may see these users, even users who
/// are not members.
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

    /// Fills the table from the messages of an older store.
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
    /// Returns the users named by the contact cards and the forward of a message.
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
    /// Members of a channel see commenters, and the users whom comments name.
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
