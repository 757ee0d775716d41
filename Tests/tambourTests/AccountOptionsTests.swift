import Foundation
import TambourTesting
import Testing

@testable import tambour

@Suite("Without --account")
struct AccountOptionsTests {
    @Test(
        "the account is `default`, or the only one",
        arguments: [
            ([], "default"), (["bob"], "bob"), (["bob", "default"], "default"),
            (["bob", "carol"], "default"),
        ]
    )
    func onlyOne(accounts: [String], chosen: String) throws {
        let home = try TestServer.temporaryDirectory()
        defer { try? FileManager.default.removeItem(atPath: home) }
        for account in accounts { try Data().write(to: URL(filePath: "\(home)/\(account).db")) }
        #expect(AccountOptions.name(nil, in: home) == chosen)
        #expect(AccountOptions.name("dora", in: home) == "dora")
    }
}
