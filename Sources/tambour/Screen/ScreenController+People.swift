import TambourClient
import TambourProtocol
import TerminalKit

/// Contacts, members of groups, and the user's own profile.
extension ScreenController {
    // MARK: - Contacts

    func openContacts() {
        show(
            Panel(
                kind: .contacts,
                title: "Contacts",
                query: LineEditor(limit: 100),
                keys: "Alt-a add  Alt-r rename  Alt-d remove  Alt-b block"
            )
        )
        fillContacts()
    }

    func fillContacts() {
        fetch {
            try $0.people()
        } then: { screen, people in
            let items = people.filter { $0.id != screen.me }.map { $0.item(.person($0.id)) }
            let remark = items.isEmpty ? "nobody yet: Alt-a adds somebody by phone" : ""
            screen.fill(.contacts, with: items, remark: remark)
        }
    }

    func actOnContact(_ letter: Unicode.Scalar, _ panel: Panel) -> Bool {
        if letter == "a" {
            ask("Phone of the new contact:") { screen, phone in screen.addContact(phone) }
            return true
        }
        guard case .person(let user)? = panel.selectedItem?.target,
            let name = panel.selectedItem?.title
        else { return false }
        switch letter {
        case "r":
            ask("Name for \(name):", name) { screen, new in
                let names = Names(new)
                screen.change(
                    user,
                    .rename(firstName: names.first, lastName: names.last),
                    "they are \(new) for you now"
                )
            }
        case "d":
            confirm("Remove \(name) from your contacts?") {
                $0.change(user, .remove, "removed \(name)")
            }
        case "b":
            confirm("Block \(name)? They cannot write to you then.") {
                $0.change(user, .block, "blocked \(name): /blocked lists them")
            }
        default: return false
        }
        return true
    }

    private func addContact(_ phone: String) {
        fetch { client in
            let person = try await client.find(phone: phone)
            try await client.change(person.id, .add(firstName: nil, lastName: nil))
            return person
        } then: { screen, person in
            screen.state.notice = ("\(person.name) is a contact now", false)
        }
    }

    func change(_ user: UserID, _ change: Client.ContactChange, _ words: String) {
        fetch {
            try await $0.change(user, change)
        } then: { screen, _ in
            screen.state.notice = (words, false)
            if screen.state.panel?.kind == .blocked { screen.openBlocked() }
        }
    }

    func openBlocked() {
        show(Panel(kind: .blocked, title: "Blocked", keys: "Enter unblocks"))
        state.panel?.load("asking the server…")
        fetch {
            try await $0.blocked()
        } then: { screen, people in
            let items = people.map { $0.item(.person($0.id)) }
            screen.fill(.blocked, with: items, remark: items.isEmpty ? "nobody" : "")
        }
    }

    // MARK: - Members

    func openMembers() {
        guard let chat = state.open, chat.isGroup else {
            state.notice = ("this is no group", true)
            return
        }
        show(
            Panel(
                kind: .members(chat),
                title: "Members of \(state.openTitle)",
                query: LineEditor(limit: 100),
                keys: "Alt-a add  Alt-d remove  Alt-r administrator or not"
            )
        )
        state.panel?.load("asking the server…")
        fillMembers(of: chat)
    }

    private func fillMembers(of chat: ChatID) {
        fetch {
            try await $0.roster(of: chat)
        } then: { screen, members in
            let items = members.map { member in
                var item = member.person.item(.member(member.id, member.role))
                item.right =
                    switch member.role {
                    case .owner: "owner"
                    case .administrator: "administrator"
                    case .member: ""
                    }
                return item
            }
            screen.learn(members.map { ($0.id, $0.person.name) }, in: chat)
            screen.fill(.members(chat), with: items, remark: "\(items.count) members")
        }
    }

    func actOnMember(_ letter: Unicode.Scalar, _ chat: ChatID, _ panel: Panel) -> Bool {
        if letter == "a" {
            ask("Phone or name of whom to add:") { screen, who in
                screen.changeMember(chat, who) { try await $0.add([$1], to: chat) }
            }
            return true
        }
        guard case .member(let user, let role)? = panel.selectedItem?.target,
            let name = panel.selectedItem?.title
        else { return false }
        switch letter {
        case "d":
            confirm("Remove \(name) from the group?") { screen in
                screen.changeMembers(of: chat) { try await $0.remove([user], from: chat) }
            }
        case "r":
            guard role != .owner else {
                state.notice = ("the owner has all rights", true)
                return true
            }
            changeMembers(of: chat) {
                try await $0.setAdministrator(user, in: chat, role == .member)
            }
        default: return false
        }
        return true
    }

    /// Runs `body` for a person. `who` is a phone number or the beginning of a name.
    func changeMember(
        _ chat: ChatID,
        _ who: String,
        _ body: @escaping @Sendable (Client, UserID) async throws -> Void
    ) {
        changeMembers(of: chat) { try await body($0, try await $0.somebody(who).id) }
    }

    private func changeMembers(
        of chat: ChatID,
        _ body: @escaping @Sendable (Client) async throws -> Void
    ) {
        fetch { client in
            try await body(client)
            // Only the server knows the members, so waits until the change has reached the server.
            _ = await client.settle(within: .seconds(5))
        } then: { screen, _ in
            if screen.state.panel?.kind == .members(chat) { screen.fillMembers(of: chat) }
        }
    }

    // MARK: - Own profile

    func openProfile() {
        show(Panel(kind: .profile, title: "You", keys: "n name  a about"))
        fillProfile()
    }

    func fillProfile() {
        guard let me else { return }
        fetch {
            try $0.person(me)
        } then: { screen, person in
            guard let person else { return }
            let lines = [
                ("Name", person.name), ("About", person.about ?? "–"),
                ("Phone", person.phone.map { "+\($0)" } ?? "–"), ("Number", "\(person.id)"),
            ]
            let items = lines.map { name, value in
                Panel.Item(title: name, detail: value, target: .none)
            }
            screen.fill(.profile, with: items)
        }
    }

    func actOnProfile(_ letter: Unicode.Scalar) -> Bool {
        guard let me else { return false }
        let person = try? client.person(me)
        switch letter {
        case "n": ask("Your name:", person?.name ?? "") { $0.rename($1) }
        case "a":
            ask("About you:", person?.about ?? "", emptyMeans: "") { screen, text in
                screen.perform { try await $0.updateProfile(about: text) }
            }
        default: return false
        }
        return true
    }

    func rename(_ text: String) {
        let names = Names(text)
        perform {
            try await $0.updateProfile(firstName: names.first, lastName: names.last ?? "")
        }
    }
}

/// A name that the user has typed, split into the first name and the last name of the protocol.
struct Names: Equatable, Sendable {
    let first: String
    let last: String?

    init(_ text: String) {
        let parts = text.split(separator: " ", maxSplits: 1).map(String.init)
        first = parts.first ?? ""
        last = parts.count > 1 ? parts[1] : nil
    }
}

extension Person {
    func item(_ target: Panel.Target) -> Panel.Item {
        let phone = phone.map { "+\($0)" }
        let detail = [phone, about].compactMap { $0 }.filter { !$0.isEmpty }.joined(separator: "  ")
        return Panel.Item(
            title: name,
            detail: detail.isEmpty ? nil : detail,
            right: isOnline ? "online" : "",
            target: target
        )
    }
}

extension Client {
    /// Returns the person with a phone number or with a name that begins with `who`. Contacts win
    /// over other known people. Among contacts, and among other people, a full match wins over a
    /// beginning.
    func somebody(_ who: String) async throws -> Person {
        if ChatName.phone(who) != nil { return try await find(phone: who) }
        let wanted = FoldedText(who)
        let fitting = try knownPeople().filter { FoldedText($0.name).hasPrefix(wanted) }
        let groups = [
            fitting.filter { $0.isContact && FoldedText($0.name) == wanted },
            fitting.filter(\.isContact),
            fitting.filter { FoldedText($0.name) == wanted },
            fitting,
        ]
        guard let people = groups.first(where: { !$0.isEmpty }) else {
            throw Failure("this device knows nobody called “\(who)”; give a phone number")
        }
        guard people.count == 1 else {
            throw Failure("several people are called “\(who)”; give a phone number")
        }
        return people[0]
    }
}
