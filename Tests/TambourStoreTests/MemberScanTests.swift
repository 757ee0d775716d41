import TambourProtocol
import TambourSQL
import TambourStore
import Testing

@Suite("Reads of members stop at their budget")
struct MemberScanTests {
    @Test("those of a name are found page by page", arguments: SQLEngine.available, [1, 20, 4_000])
    func named(engine: SQLEngine, rows: Int) throws {
        let store = try TestStore(engine, limits: ["maxScannedRows": rows])
        let users = try store.users(100)
        let key = try store.group(users)
        let view = try #require(try store.read { try $0.view(key, for: users[0]) })
        var found: [UserID] = []
        var marker = UserID(0)
        var pages = 0
        while pages < 200 {
            let before = store.reader.sql.rowsStepped
            let page = try store.read {
                try $0.members(of: view, after: marker, limit: 50, onlyAdmins: false) {
                    $0.firstName.hasSuffix("7")
                }
            }
            #expect(store.reader.sql.rowsStepped - before <= rows + 2)
            found += page.members.map(\.contact.id)
            pages += 1
            guard let next = page.next else { break }
            #expect(next > marker)
            marker = next
        }
        #expect(found == users.filter { $0.rawValue % 10 == 7 })
        if rows == 4_000 { #expect(pages == 1) }
    }
}
