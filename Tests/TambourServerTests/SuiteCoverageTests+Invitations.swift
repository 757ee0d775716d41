import TambourMessenger
import TambourProtocol
import TambourTesting
import Testing

extension SuiteCoverageTests {
    func registeringWithoutInvitation(_ tour: Tour) throws {
        try withServer(registration: .invite, userInvitations: 1) { server in
            let phone = server.freshPhone()
            let line = try server.admin(.invite(phone: phone, days: 1))[0]
            let client = try server.connect()
            let checked = try server.enterCode(phone: phone, on: client)
            let id = String(line.prefix { $0 != " " })
            _ = try server.admin(.revokeInvitation(id))
            let token = try #require(checked.tokenAttrs.register?.token)
            try tour.play(client, AuthConfirmRequest(firstName: "A", token: token))
            _ = try server.admin(.invite(phone: phone, days: 1))
            let made = try client.call(AuthConfirmRequest(firstName: "A", token: token))
            client.token = made.token
            _ = try server.login(client)
            try tour.play(client, InvitationCreateRequest())
        }
        try withServer { server in
            try tour.play(try server.signUp("Alice"), InvitationCreateRequest())
        }
    }
}
