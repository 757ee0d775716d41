import TambourMessenger
import TambourProtocol
import TambourServer
import TambourTesting

extension CommandPlay {
    /// Plays SYNC, CONTACT_UPDATE, CONTACT_CREATE and COMPLAIN.
    static let people: [Maker] = [phoneBook, contacts, blocking, creatingContacts, reportingUsers]

    private static let phoneBook: Maker = { player, mark in
        let somebody = player.strangers[0]
        return CommandPlay(
            "names of a phone book",
            mark,
            change: { number in
                let entry = PhoneBookEntry(firstName: mark.text(number))
                let book = NameMap([(Text("+\(somebody.phone)"), entry)])
                return ChangeRequest(SyncRequest(contactList: book))
            },
            read: { try names(of: somebody, $0, mark) },
            after: { $0 == 0 ? [] : [$0] }
        )
    }

    private static func names(
        of somebody: CommandUser,
        _ player: CommandPlayer,
        _ mark: CommandMark
    ) throws -> [Int] {
        let request = ContactInfoRequest(contactIDs: [somebody.id])
        // The payload may contain a name as a whole and in parts.
        return Set(mark.numbers(in: try player.own.payload(of: request))).sorted()
    }

    /// Adds, renames and removes a contact.
    private static let contacts: Maker = { player, mark in
        let somebody = player.strangers[1]
        return CommandPlay(
            "contacts",
            mark,
            change: { number in
                ChangeRequest(
                    ContactUpdateRequest(
                        contactID: somebody.id,
                        action: [.remove, .add, .update][number % 3],
                        firstName: number % 3 == 0 ? nil : mark.text(number)
                    )
                )
            },
            read: { try names(of: somebody, $0, mark) },
            after: { $0 % 3 == 0 ? [] : [$0] }
        )
    }

    /// Blocks and unblocks two users.
    private static let blocking: Maker = { player, mark in
        let users = [player.strangers[2].id, player.strangers[5].id]
        return CommandPlay(
            "blocked users",
            mark,
            change: { number in
                ChangeRequest(
                    ContactUpdateRequest(
                        contactID: users[number % 2],
                        action: number / 2 % 2 == 0 ? .block : .unblock
                    )
                )
            },
            read: { player in
                let request = ContactListRequest(status: .blocked, count: 100)
                let found = try player.own.call(request).contacts.map(\.id)
                return users.map { user in found.count { $0 == user } }
            },
            after: { inTurn(2, $0) { $0 / 2 % 2 == 0 ? 1 : 0 } }
        )
    }

    /// Adds a contact by phone and removes it.
    private static let creatingContacts: Maker = { player, mark in
        let somebody = player.strangers[3]
        return CommandPlay(
            "contacts by phone",
            mark,
            change: { number in
                guard number % 2 == 1 else {
                    return ChangeRequest(
                        ContactUpdateRequest(contactID: somebody.id, action: .remove)
                    )
                }
                return ChangeRequest(
                    ContactCreateRequest(
                        phone: "+\(somebody.phone)",
                        firstName: mark.text(number)
                    )
                )
            },
            read: { try names(of: somebody, $0, mark) },
            after: { $0 % 2 == 1 ? [$0] : [] }
        )
    }

    private static let reportingUsers: Maker = { player, mark in
        let somebody = player.strangers[0].id
        return CommandPlay(
            "reports of users",
            mark,
            change: {
                ChangeRequest(
                    ComplainRequest(ids: [somebody.rawValue], reason: AnyValue(mark.text($0)))
                )
            },
            read: { try reports($0, mark) },
            after: { $0 == 0 ? [] : [$0] }
        )
    }

    /// Returns the marks in the open reports that an administrator sees.
    static func reports(_ player: CommandPlayer, _ mark: CommandMark) throws -> [Int] {
        var found: [Int] = []
        _ = try AdminClient(dataDirectory: player.dataDirectory).run(.reports) { line in
            found += mark.numbers(in: line)
        }
        return found
    }
}
