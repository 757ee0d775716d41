package import TambourProtocol
import TambourSQL

/// The statements for the card shown before joining, and for `chat_word`, which finds public chats.
struct PublicChatStatements {
    let addWord: any SQLStatement
    let forgetWords: any SQLStatement
    let byWord: NameStatements
    let largest: any SQLStatement

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
            columns: ChatStatements.cardColumns,
            table: "chat_word",
            id: "chat",
            owners: "chat"
        )
        largest = try sql.prepare(
            """
            SELECT \(ChatStatements.cardColumns) FROM chat c
            WHERE c.is_public = 1 AND NOT EXISTS (
              SELECT 1 FROM member m WHERE m.user_id = $1 AND m.chat = c.id)
            ORDER BY c.member_count DESC, c.id LIMIT $2
            """
        )
    }
}

/// A chat as shown to users who are not members: without messages and members.
package struct ChatCard: Sendable {
    package let key: ChatKey
    package let chat: Chat
    /// Whether following the link only requests to join.
    package let asksFirst: Bool

    init(row: any SQLStatement) {
        key = ChatKey(row.int(0))
        let kind = ChatKind(rawValue: row.int(1)) ?? .group
        let created = row.int(4)
        let isPublic = row.int(7) != 0
        let options = RoleTable.Options(rawValue: row.int(9))
        asksFirst = options.contains(.joinRequest)
        func text(_ index: Int) -> Text? {
            row.isNull(index) ? nil : Text(unchecked: Bytes(row.bytes(index)))
        }
        chat = Chat(
            id: ChatID(key.rawValue),
            type: kind.onWire,
            status: .active,
            owner: UserID(row.int(2)),
            participants: IDMap([]),
            title: text(3),
            lastEventTime: created,
            created: created,
            joinTime: created,
            modified: created,
            participantsCount: row.int(5),
            access: isPublic ? .public : .private,
            link: isPublic ? text(8) : nil,
            description: text(6),
            options: asksFirst ? RoleTable.Options.joinRequest.onWire : nil
        )
    }
}

extension WriteTransaction {
    /// Replaces the words by which a public chat is found with those of its new name and title.
    func indexName(of chat: ChatState, as details: ChatDetails) throws {
        store.publicChats.forgetWords.bind(1, chat.key.rawValue)
        try store.publicChats.forgetWords.run()
        guard details.isPublic else { return }
        let words = [details.title, details.link].compactMap { $0 }
            .reduce(into: Set<[UInt8]>()) { $0.formUnion(SearchWords.words(of: $1)) }
        for word in words {
            store.publicChats.addWord.bindBlob(1, word)
            store.publicChats.addWord.bind(2, chat.key.rawValue)
            try store.publicChats.addWord.run()
        }
    }
}

extension ReadTransaction {
    /// Returns the chat of an invitation or a public name, without checking membership.
    package func card(linkedBy link: Text) throws -> ChatCard? {
        let statement = store.chats.byLink
        defer { statement.reset() }
        statement.bindWords(1, link)
        return try statement.step() ? ChatCard(row: statement) : nil
    }

    /// Returns the public chats whose title or name contains, for each word of `query`, a word that
    /// starts with it. They are ordered by the word that the longest query word found.
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
            wordAt: ChatStatements.cardColumnCount,
            after: rows,
            limit: limit,
            &budget,
            read: ChatCard.init(row:)
        ) {
            ($0.chat.title ?? .empty, $0.chat.link ?? .empty)
        }
    }

    /// Returns the public chats that `user` is not in, those with the most members first.
    package func largestPublicChats(but user: UserID, limit: Int) throws -> [ChatCard] {
        let statement = store.publicChats.largest
        defer { statement.reset() }
        statement.bind(1, user.rawValue)
        statement.bind(2, Int64(limit))
        var cards: [ChatCard] = []
        while try statement.step() { cards.append(ChatCard(row: statement)) }
        return cards
    }
}
