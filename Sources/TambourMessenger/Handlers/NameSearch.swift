import TambourProtocol
import TambourStore

/// The position at which a page of `PUBLIC_SEARCH` starts.
///
/// On the wire it is a number, 0 for the first page:
///
///     rows, 42 bits | people, 10 bits | chats, 10 bits | in chats, 1 bit
///
/// `rows` is the number of index rows that earlier pages have examined. They are words of people's
/// names or, if `isInChats` is set, words of chats. `people` and `chats` are the numbers of results
/// on earlier pages.
struct NameCursor: Equatable {
    private static let countBits: Int64 = 10
    private static let maxCount = (1 << 10) - 1

    var rows = 0
    var people = 0
    var chats = 0
    var isInChats = false

    init(marker: Int64) {
        let marker = max(0, marker)
        isInChats = marker & 1 == 1
        chats = Int(clamping: marker >> 1) & Self.maxCount
        people = Int(clamping: marker >> (1 + Self.countBits)) & Self.maxCount
        rows = Int(clamping: marker >> (1 + 2 * Self.countBits))
    }

    /// The marker on the wire.
    var marker: Int64 {
        var marker = Int64(rows)
        for count in [people, chats] {
            marker = marker << Self.countBits | Int64(min(count, Self.maxCount))
        }
        return marker << 1 | (isInChats ? 1 : 0)
    }
}

/// One search for people and public chats, within the scan budget of one request.
struct NameSearch {
    enum Result {
        case person(Account, byPhone: Bool)
        case chat(ChatCard)

        var account: Account? {
            guard case .person(let account, _) = self else { return nil }
            return account
        }
    }

    let caller: UserID
    let limits: Limits
    /// The results, each with the cursor that continues after it.
    private(set) var found: [(result: Result, next: NameCursor)] = []
    private(set) var cursor: NameCursor
    /// Whether the search ended early, because the budget ran out.
    private(set) var isCut = false
    private var budget: ScanBudget
    private var byPhone: UserID?

    init(caller: UserID, cursor: NameCursor, limits: Limits) {
        self.caller = caller
        self.cursor = cursor
        self.limits = limits
        budget = ScanBudget(limits)
    }

    /// Puts the user who was found by phone at the start of the first page.
    mutating func put(_ account: Account?) {
        guard let account, account.id != caller else { return }
        byPhone = account.id
        guard cursor == NameCursor(marker: 0) else { return }
        cursor.people = 1
        found.append((.person(account, byPhone: true), cursor))
    }

    mutating func run(_ query: SearchQuery, in snapshot: ReadTransaction) throws {
        if !cursor.isInChats { try findPeople(query, in: snapshot) }
        if !isCut { try findChats(query, in: snapshot) }
    }

    private mutating func findPeople(_ query: SearchQuery, in snapshot: ReadTransaction) throws {
        let most = limits.maxPeopleFound
        let page = try snapshot.people(
            query,
            after: cursor.rows,
            // Get two more than needed, because the caller and the user found by phone may be among
            // the results. These two are skipped.
            limit: max(0, most - cursor.people) + 2,
            &budget
        )
        for (account, rows) in page.found where account.id != caller && account.id != byPhone {
            guard cursor.people < most else { break }
            cursor.people += 1
            cursor.rows = rows
            found.append((.person(account, byPhone: false), cursor))
        }
        cursor.rows = page.rows
        isCut = page.isCut && cursor.people < most
        guard !isCut else { return }
        cursor.rows = 0
        cursor.isInChats = true
    }

    private mutating func findChats(_ query: SearchQuery, in snapshot: ReadTransaction) throws {
        guard !budget.isSpent else {
            isCut = true
            return
        }
        let most = limits.maxPeopleFound
        let page = try snapshot.publicChats(
            query,
            after: cursor.rows,
            limit: max(0, most - cursor.chats),
            &budget
        )
        for (card, rows) in page.found {
            cursor.chats += 1
            cursor.rows = rows
            found.append((.chat(card), cursor))
        }
        cursor.rows = page.rows
        isCut = page.isCut && cursor.chats < most
    }
}
