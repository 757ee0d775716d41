import ArgumentParser
import TambourMessenger
import TambourProtocol

extension Tambourd.Admin {
    struct Invites: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Makes, lists and revokes invitations, for serve --registration invite.",
            subcommands: [Create.self, List.self, Revoke.self]
        )
    }
}

extension Tambourd.Admin.Invites {
    struct Create: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Prints a line ID CODE until END or ID PHONE until END for each invitation.",
            discussion: """
                Whoever has the code can register: `tambour login SERVER PHONE --invite CODE`, or the form of \
                `tambour`. A code is shown only once. Other apps have no field for it: invite their phones with \
                --phone, and they register as usual.
                """
        )

        @OptionGroup var data: Tambourd.DataOption

        @Option(help: "A phone to invite, as +79990000001; may be given several times.")
        var phone: [String] = []

        @Option(help: "The number of people who can register with the code.")
        var uses: Int?

        @Option(help: "The number of codes to make.")
        var count: Int?

        @Option(help: "The number of days after which the invitation ends.")
        var days = 30

        func validate() throws {
            guard phone.isEmpty || (uses == nil && count == nil) else {
                throw ValidationError(
                    "An invited phone registers once: leave out --uses and --count, or --phone."
                )
            }
            guard (1...1_000).contains(count ?? 1) else {
                throw ValidationError("--count is 1 to 1000.")
            }
        }

        func run() throws {
            // Check all phone numbers first. If one of them has a typing error, the command invites
            // nobody.
            let phones = try phone.map { text in
                guard let phone = PhoneNumber.parse(text) else {
                    throw Failure("\(text) is no phone number: 5 to 15 digits after a plus")
                }
                return phone
            }
            for phone in phones { try data.run(.invite(phone: phone, days: days)) }
            guard phones.isEmpty else { return }
            for _ in 0..<(count ?? 1) {
                try data.run(.createInvitation(uses: uses ?? 1, days: days))
            }
        }
    }

    struct List: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Prints a line ID STATE USES/MOST CREATED END WHOM for every invitation.",
            discussion: """
                WHOM is an invited phone, `code`, or `phone` after the invited phone has registered. Then follow \
                the user who made the invitation and the first users who registered with it. Invitations stay \
                on the list for 30 days after their end.
                """
        )

        @OptionGroup var data: Tambourd.DataOption
        @OptionGroup var page: Tambourd.PageOptions

        @Option(help: "open, used or ended; all by default.")
        var state: String?

        func run() throws {
            try page.run([.state: state], data) { .invitations($0) }
        }
    }

    struct Revoke: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Deletes an invitation; people who have registered with it stay."
        )

        @OptionGroup var data: Tambourd.DataOption

        @Argument(help: "An id as the list has it.")
        var invitation: String

        func run() throws { try data.run(.revokeInvitation(invitation)) }
    }
}
