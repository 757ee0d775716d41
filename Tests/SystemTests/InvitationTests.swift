import Foundation
import TambourProtocol
import TambourTesting
import Testing

/// A server for invited people, as its operator and the invited people use it.
@Suite("Invitations, from the operator to the account")
struct InvitationTests {
    private func admin(_ server: TambourdProcess, _ arguments: [String]) throws -> [String] {
        let result = try ChildProcess.run(
            try TambourdProcess.program(),
            ["admin", "invites"] + arguments + ["--data", server.dataDirectory]
        )
        try #require(result.status == 0, "\(result.errors)")
        return result.output.split(separator: "\n").map(String.init)
    }

    /// Logs in with answers that are read from standard input.
    private func logIn(
        _ account: TambourAccount,
        at address: String,
        _ phone: String,
        invitation: String? = nil
    ) async throws -> TambourAccount.Outcome {
        try await account.run(
            ["login", address, phone] + (invitation.map { ["--invite", $0] } ?? []),
            saying: "123456\nAnn\n"
        )
    }

    @Test("a code and an invited phone let in, and nothing else does")
    func everything() async throws {
        let arguments = ["--registration", "invite", "--login-codes", "fixed:123456"]
        try await TambourdProcess.run(arguments: arguments) { server in
            let directory = URL(fileURLWithPath: try TestServer.temporaryDirectory())
            defer { try? FileManager.default.removeItem(at: directory) }
            func account(_ name: String) -> TambourAccount {
                TambourAccount(directory: directory, name: name)
            }

            // Without an invitation the server refuses any code, and the error says what to do.
            let stranger = try await logIn(account("stranger"), at: server.address, "+79990000001")
            #expect(stranger.status == 1)
            #expect(stranger.errors.contains("--invite CODE"), "\(stranger.errors)")
            // A typing error is found before anything is sent.
            let typed = try await logIn(
                account("stranger"),
                at: server.address,
                "+79990000001",
                invitation: "K7QF-9M2X"
            )
            #expect(typed.status == 1)
            #expect(typed.errors.contains("16 letters and digits"), "\(typed.errors)")

            let line = try #require(try admin(server, ["create", "--uses", "2"]).first)
            let words = line.split(separator: " ").map(String.init)
            let ann = try await logIn(
                account("ann"),
                at: server.address,
                "+79990000001",
                invitation: words[1].lowercased()
            )
            #expect(ann.status == 0, "\(ann.errors)")
            let phones = try admin(
                server,
                ["create", "--phone", "+79990000002", "--phone", "+79990000003", "--days", "7"]
            )
            #expect(phones.count == 2)
            let bo = try await logIn(account("bo"), at: server.address, "+79990000002")
            #expect(bo.status == 0, "\(bo.errors)")
            // An account needs no invitation on its next device.
            let again = try await account("laptop").run(
                ["login", server.address, "+79990000001"],
                saying: "123456\n"
            )
            #expect(again.status == 0, "\(again.errors)")

            let list = try admin(server, ["list"])
            #expect(list.count == 3)
            #expect(list[0].hasPrefix("\(words[0]) open 1/2 "))
            #expect(list[0].contains(" code used by "))
            #expect(list[1].contains(" used 1/1 ") && list[1].contains(" phone used by "))
            #expect(list[2].contains(" open 0/1 ") && list[2].hasSuffix(" +79990000003"))
            #expect(try admin(server, ["list", "--state", "used"]) == [list[1]])
            #expect(try admin(server, ["revoke", words[0]]) == ["\(words[0]) revoked"])
            let late = try await logIn(
                account("late"),
                at: server.address,
                "+79990000004",
                invitation: words[1]
            )
            #expect(late.status == 1)
            #expect(try admin(server, ["list"]).count == 2)
        }
    }

    @Test("what cannot be made is refused with the reason")
    func refusals() throws {
        let data = try TestServer.temporaryDirectory()
        defer { TestServer.removeDirectory(data) }
        for (arguments, reason) in [
            (["create", "--phone", "12"], "12 is no phone number"),
            (["create", "--phone", "+79990000001", "--uses", "2"], "leave out --uses"),
            (["create", "--uses", "0"], "uses: 0 is not 1 to 10000"),
            (["create", "--days", "0"], "days: 0 is not 1 to 3650"),
            (["create", "--count", "0"], "--count is 1 to 1000"),
            (["revoke", "7"], "there is no invitation 7"),
            (["revoke", "x"], "`invites list` has the numbers"),
            (["list", "--state", "x"], "open, used, ended"),
        ] {
            let result = try ChildProcess.run(
                try TambourdProcess.program(),
                ["admin", "invites"] + arguments + ["--data", data]
            )
            #expect(result.status != 0 && result.errors.contains(reason), "\(result.errors)")
        }
        _ = try ChildProcess.run(
            try TambourdProcess.program(),
            ["admin", "users", "create", "--count", "1", "--first-phone", "+79990000001"]
                + ["--data", data]
        )
        let known = try ChildProcess.run(
            try TambourdProcess.program(),
            ["admin", "invites", "create", "--phone", "+79990000001", "--data", data]
        )
        #expect(known.status != 0 && known.errors.contains("has an account already"))
    }
}
