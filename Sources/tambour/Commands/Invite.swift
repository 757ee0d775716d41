import ArgumentParser
import TambourClient

struct Invite: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Prints the code of a new invitation to the server, for one person.",
        discussion: """
            For servers that take only invited people and let users invite them. The person enters the code while \
            signing in, or says `tambour login SERVER PHONE --invite CODE`.
            """
    )

    @OptionGroup var account: AccountOptions

    func run() async throws {
        let client = try account.signedIn()
        client.start()
        let invitation = try await client.makeInvitation()
        try say(printable(invitation.code))
        remark("It can be used until \(clock(invitation.expiresMs)); \(invitation.left) more now.")
        await client.stop()
    }
}
