package import TambourProtocol
import TambourSQL

/// The statements for the table `account_word`, which contains the words of people's names.
/// PUBLIC_SEARCH uses this table.
struct PeopleStatements {
    private static let add = """
        INSERT INTO account_word (word, user_id) VALUES ($1, $2)
        ON CONFLICT (word, user_id) DO NOTHING
        """

    private enum NameColumn: Int, SQLColumn {
        case id, firstName, lastName
    }

    let add: any SQLStatement
    let forget: any SQLStatement
    let byWord: NameStatements<AccountColumn>

    init(_ sql: any SQLConnection) throws {
        add = try sql.prepare(Self.add)
        forget = try sql.prepare("DELETE FROM account_word WHERE user_id = $1")
        byWord = try NameStatements(
            sql,
            table: "account_word",
            id: "user_id",
            owners: "account"
        )
    }

    /// Fills the table in a store that is older than the table.
    @Sendable
    static func indexNames(on sql: any SQLConnection) throws(SQLError) {
        let add = try sql.prepare(Self.add)
        let accounts: SQLQuery<NameColumn> = try sql.query(
            "SELECT \(NameColumn.list) FROM account ORDER BY id"
        )
        defer { accounts.statement.reset() }
        while let row = try accounts.next() {
            let name = [row.string(.firstName), row.string(.lastName)].joined(separator: " ")
            try Self.add(name, of: UserID(row.int(.id)), by: add)
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
    /// Replaces the user's search words by the words of a new name.
    package func indexName(of user: UserID, firstName: String, lastName: String?) throws {
        try store.people.forget.run { $0.bind(1, user.rawValue) }
        let name = [firstName, lastName ?? ""].joined(separator: " ")
        try PeopleStatements.add(name, of: user, by: store.people.add)
    }
}

enum WordColumn: Int, SQLColumn {
    case word
}

/// The statements that find items by the words of their names. The cases of `Item` are the columns
/// of an item.
struct NameStatements<Item: SQLColumn> {
    /// Finds the row at which a page starts. The caller gives the number of preceding rows.
    let place: SQLQuery<SQLPair<WordColumn, IDColumn>>
    let page: SQLQuery<SQLPair<Item, WordColumn>>

    /// - Parameters:
    ///   - table: the table of the words. Its column `id` contains the id of the named item.
    ///   - owners: the table of the named items.
    init(_ sql: any SQLConnection, table: String, id: String, owners: String) throws {
        place = try sql.query(
            """
            SELECT \(WordColumn.list), \(id) FROM \(table) WHERE word >= $1 AND word < $2
            ORDER BY word, \(id) LIMIT 1 OFFSET $3
            """
        )
        page = try sql.query(
            """
            SELECT \(Item.list(of: "c")), \(WordColumn.list(of: "w"))
            FROM \(table) w JOIN \(owners) c ON c.id = w.\(id)
            WHERE (w.word, w.\(id)) >= ($1, $2) AND w.word < $3
            ORDER BY w.word, w.\(id) LIMIT $4
            """
        )
    }
}

/// The results of a name search, and the search's progress.
package struct NamePage<Found> {
    /// The results. Each has the number of rows that were scanned up to this result, including its
    /// own row.
    package var found: [(item: Found, rows: Int)] = []
    /// The number of rows scanned so far, including earlier pages.
    package var rows: Int
    /// Whether the search stopped before it had read all rows.
    package var isCut = false
}

extension ReadTransaction {
    /// Returns the people whose names match: each word of `query` is the start of a word in the
    /// name. The results are sorted first by the word of the name that begins with the longest
    /// query word, then by id. Blocked accounts are omitted.
    ///
    /// - Parameters:
    ///   - rows: the number of rows that earlier pages scanned.
    ///   - limit: the maximum number of people.
    package func people(
        _ query: SearchQuery,
        after rows: Int = 0,
        limit: Int,
        _ budget: inout ScanBudget
    ) throws -> NamePage<Account> {
        try named(
            query,
            by: store.people.byWord,
            after: rows,
            limit: limit,
            &budget,
            read: Account.init(row:)
        ) {
            $0.isBlocked ? nil : (Text($0.firstName), Text($0.lastName ?? ""))
        }
    }

    /// Returns the items whose names match: each word of `query` is the start of a word in one of
    /// the item's two names.
    ///
    /// - Parameter names: returns the names of an item; nil omits the item.
    func named<Item, Found>(
        _ query: SearchQuery,
        by statements: NameStatements<Item>,
        after skipped: Int,
        limit: Int,
        _ budget: inout ScanBudget,
        read: (SQLRow<Item>) -> Found,
        names: (Found) -> (Text, Text)?
    ) throws -> NamePage<Found> {
        var page = NamePage<Found>(rows: skipped)
        // The longest word is likely to be the rarest.
        guard let longest = query.words.max(by: { $0.count < $1.count }) else { return page }
        let end = SearchIndex.end(ofPrefix: longest)
        guard let (word, id) = try place(after: skipped, from: longest, to: end, statements.place)
        else { return page }
        try statements.page.each {
            $0.bindBlob(1, word)
            $0.bind(2, id)
            $0.bindBlob(3, end)
            // Ask for one row more than the limit. If this row exists, more rows follow.
            $0.bind(4, Int64(limits.maxScannedRows) + 1)
        } while: { row in
            guard page.found.count < limit, page.rows == skipped || !budget.isSpent else {
                page.isCut = true
                return false
            }
            budget.take(rows: 1)
            page.rows += 1
            let next = read(row.first())
            guard let names = names(next), query.matches(names.0, names.1) else { return true }
            // If several words in an item's names match, the item has a row for each of them,
            // perhaps on different pages. Only the row of the first of these words counts.
            let words = SearchWords.words(of: names.0).union(SearchWords.words(of: names.1))
            let first = words.filter { $0.starts(with: longest) }
                .min { $0.lexicographicallyPrecedes($1) }
            if let first, first != row.bytes(.second(.word)) { return true }
            page.found.append((next, page.rows))
            return true
        }
        return page
    }

    private func place(
        after rows: Int,
        from word: [UInt8],
        to end: [UInt8],
        _ query: SQLQuery<SQLPair<WordColumn, IDColumn>>
    ) throws -> (word: [UInt8], id: Int64)? {
        guard rows > 0 else { return (word, .min) }
        // A client may invent a marker with a large number, and skipping rows takes time.
        guard rows <= limits.maxSkippedNames else { return nil }
        return try query.one {
            $0.bindBlob(1, word)
            $0.bindBlob(2, end)
            $0.bind(3, Int64(rows))
        } read: {
            ($0.bytes(.first(.word)), $0.int(.second(.id)))
        }
    }
}
