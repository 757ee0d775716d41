package import TambourProtocol
import TambourSQL

/// The words of people's names, `account_word`, by which PUBLIC_SEARCH finds them.
struct PeopleStatements {
    private static let add = """
        INSERT INTO account_word (word, user_id) VALUES ($1, $2)
        ON CONFLICT (word, user_id) DO NOTHING
        """

    let add: any SQLStatement
    let forget: any SQLStatement
    let byWord: any SQLStatement

    init(_ sql: any SQLConnection) throws {
        add = try sql.prepare(Self.add)
        forget = try sql.prepare("DELETE FROM account_word WHERE user_id = $1")
        byWord = try sql.prepare(
            """
            SELECT \(AccountStatements.columns), word
            FROM account_word w JOIN account a ON a.id = w.user_id
            WHERE w.word >= $1 AND w.word < $2
            ORDER BY w.word, w.user_id LIMIT $3
            """
        )
    }

    /// Fills the table of a store that is older than it.
    @Sendable
    static func indexNames(on sql: any SQLConnection) throws(SQLError) {
        let add = try sql.prepare(Self.add)
        let accounts = try sql.prepare("SELECT id, first_name, last_name FROM account ORDER BY id")
        defer { accounts.reset() }
        while try accounts.step() {
            let name = [accounts.string(1), accounts.string(2)].joined(separator: " ")
            try Self.add(name, of: UserID(accounts.int(0)), by: add)
        }
    }

    static func add(
        _ name: String,
        of user: UserID,
        by statement: any SQLStatement
    ) throws(SQLError) {
        for word in SearchWords.words(of: Text(name)) {
            statement.bindBlob(1, word)
            statement.bind(2, user.rawValue)
            try statement.run()
        }
    }
}

extension WriteTransaction {
    /// Puts the words of a name in place of those that the user was found by before.
    package func indexName(of user: UserID, firstName: String, lastName: String?) throws {
        store.people.forget.bind(1, user.rawValue)
        try store.people.forget.run()
        let name = [firstName, lastName ?? ""].joined(separator: " ")
        try PeopleStatements.add(name, of: user, by: store.people.add)
    }
}

extension ReadTransaction {
    /// Names that one search looks at: some milliseconds of a reader's time.
    private static let namesPerSearch = 5_000

    /// The people in whose names all words of `query` begin a word, in the order of the word that the
    /// longest of them found; blocked accounts are nobody.
    ///
    /// - Parameter limit: how many, at most; who wants fewer asks for more letters.
    package func people(_ query: SearchQuery, limit: Int) throws -> [Account] {
        try named(query, by: store.people.byWord, limit: limit, read: Account.init(row:)) {
            let names = (Text($0.firstName), Text($0.lastName ?? ""))
            return $0.isBlocked ? nil : ($0.id, names)
        }
    }

    /// What has a name, or two, in which all words of `query` begin a word.
    ///
    /// - Parameters:
    ///   - statement: reads rows from one word up to another, so many at most.
    ///   - names: of what was read; nil for what is not to be found.
    func named<Found, ID: Hashable>(
        _ query: SearchQuery,
        by statement: any SQLStatement,
        limit: Int,
        read: (any SQLStatement) -> Found,
        names: (Found) -> (id: ID, names: (Text, Text))?
    ) throws -> [Found] {
        // The longest word is likely to be the rarest.
        guard let longest = query.words.max(by: { $0.count < $1.count }) else { return [] }
        defer { statement.reset() }
        statement.bindBlob(1, longest)
        statement.bindBlob(2, SearchIndex.end(ofPrefix: longest))
        statement.bind(3, Int64(Self.namesPerSearch))
        var found: [Found] = []
        var seen: Set<ID> = []
        while found.count < limit, try statement.step() {
            let next = read(statement)
            guard let (id, names) = names(next), seen.insert(id).inserted,
                query.matches(names.0, names.1)
            else { continue }
            found.append(next)
        }
        return found
    }
}
