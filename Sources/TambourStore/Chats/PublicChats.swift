package import TambourProtocol
import TambourSQL

/// The statements for the table `chat_word`, which is the search index of public chats, and for the
/// list of the largest public chats.
struct PublicChatStatements {
    let addWord: any SQLStatement
    let forgetWords: any SQLStatement
    let byWord: NameStatements<ChatCardColumn>
    let largest: SQLQuery<ChatCardColumn>

    init(_ sql: any SQLConnection) throws {
        addWord = try sql.prepare(
            """
            INSERT INTO chat_word (word, chat) VALUES ($1, $2)
            ON CONFLICT (word, chat) DO NOTHING
            """
        )
        forgetWords = try sql.prepare("DELETE FROM chat_word WHERE chat = $1")
        byWord = try NameStatements(
            sql,
            table: "chat_word",
            id: "chat",
            owners: "chat"
        )
        largest = try sql.query(
            """
            SELECT \(ChatCardColumn.list(of: "c")) FROM chat c
            WHERE c.is_public = 1 AND NOT EXISTS (
              SELECT 1 FROM member m WHERE m.user_id = $1 AND m.chat = c.id)
            ORDER BY c.member_count DESC, c.id LIMIT $2
            """
        )
    }
}

/// A chat as users who are not members see it: without messages and members.
package struct ChatCard: Sendable {
    package let key: ChatKey
    package let chat: Chat
    /// Whether a user who follows the link does not join at once, but only creates a join request.
    package let asksFirst: Bool

    init(row: SQLRow<ChatCardColumn>) {
        key = ChatKey(row.int(.id))
        let kind = ChatKind(rawValue: row.int(.kind)) ?? .group
        let created = row.int(.created)
        let isPublic = row.bool(.isPublic)
        let options = RoleTable.Options(rawValue: row.int(.options))
        asksFirst = options.contains(.joinRequest)
        chat =
            ChatObject(
                id: ChatID(key.rawValue),
                kind: kind,
                owner: UserID(row.int(.owner)),
                created: created,
                joined: created,
                modified: created,
                lastEvent: created,
                participants: IDMap([]),
                details: ChatObject.Details(
                    title: row.optionalText(.title),
                    description: row.optionalText(.description),
                    memberCount: Int(clamping: row.int(.memberCount)),
                    options: asksFirst ? .joinRequest : nil,
                    link: isPublic ? row.optionalText(.link) : nil,
                    isPublic: isPublic,
                    reactions: nil
                ),
                admins: nil,
                messages: nil
            ).wire
    }
}

extension WriteTransaction {
    /// Replaces the search words of a chat by the words of its new title and new public name. If
    /// the chat is no longer public, only deletes its search words.
    func indexName(of chat: ChatState, as details: ChatDetails) throws {
        try store.publicChats.forgetWords.run { $0.bind(1, chat.key.rawValue) }
        guard details.isPublic else { return }
        let words = [details.title, details.link].compactMap { $0 }
            .reduce(into: Set<[UInt8]>()) { $0.formUnion(SearchWords.words(of: $1)) }
        for word in words {
            try store.publicChats.addWord.run {
                $0.bindBlob(1, word)
                $0.bind(2, chat.key.rawValue)
            }
        }
    }
}

extension ReadTransaction {
    /// Returns the chat that has this invitation or public name, without checking membership.
    package func card(linkedBy link: Text) throws -> ChatCard? {
        try store.chats.byLink.one({ $0.bindWords(1, link) }, read: ChatCard.init(row:))
    }

    /// Returns the public chats that match: each word of `query` is the start of a word in the
    /// title or name. The results are sorted by the word of the title or name that starts with the
    /// longest query word.
    ///
    /// - Parameters:
    ///   - rows: the number of rows that earlier pages scanned.
    ///   - limit: the maximum number of chats.
    package func publicChats(
        _ query: SearchQuery,
        after rows: Int = 0,
        limit: Int,
        _ budget: inout ScanBudget
    ) throws -> NamePage<ChatCard> {
        try named(
            query,
            by: store.publicChats.byWord,
            after: rows,
            limit: limit,
            &budget,
            read: ChatCard.init(row:)
        ) {
            ($0.chat.title ?? .empty, $0.chat.link ?? .empty)
        }
    }

    /// Returns the public chats of which `user` is not a member, the largest first.
    package func largestPublicChats(but user: UserID, limit: Int) throws -> [ChatCard] {
        try store.publicChats.largest.all {
            $0.bind(1, user.rawValue)
            $0.bind(2, Int64(limit))
        } read: {
            ChatCard(row: $0)
        }
    }
}
