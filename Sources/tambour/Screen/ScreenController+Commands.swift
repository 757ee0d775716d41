import TambourClient
import TambourProtocol
import TerminalKit

/// Commands of the input line, which begin with a slash.
extension ScreenController {
    func command(_ line: String) {
        let parts = line.split(separator: " ", maxSplits: 1).map(String.init)
        let rest = parts.count > 1 ? parts[1].trimmed : ""
        switch parts.first {
        case "quit", "q": end(0)
        case "help": state.help = 0
        case "login": signInAgain()
        case "debug": state.frames = state.frames == nil ? [] : nil
        case "theme": changeTheme(rest)
        case "notify": changeNotification(rest)
        case "find": find(rest)
        case "saved": if let me { open(.dialog(me, me), name: "Saved messages") }
        case "new", "new-channel": create(rest, isChannel: parts.first == "new-channel")
        case "name":
            if rest.isEmpty { usage("/name FIRST LAST") } else { rename(rest) }
        case "about": perform { try await $0.updateProfile(about: rest) }
        case "profile": openProfile()
        case "contacts": openContacts()
        case "blocked": openBlocked()
        case "sessions": openSessions()
        case "queue": openQueue()
        case "folder", "folder-new", "folder-rename", "folder-delete", "folder-add",
            "folder-remove":
            folderCommand(parts[0], rest)
        case "mentions": openMentions()
        case "search": openSearch(in: state.open, for: rest)
        case "password": changePassword()
        case "approve": if rest.isEmpty { usage("/approve LINK") } else { approve(rest) }
        case "phone": if rest.isEmpty { usage("/phone +79990000002") } else { changePhone(rest) }
        case "join": if rest.isEmpty { usage("/join LINK") } else { join(rest) }
        case "public": if rest.isEmpty { usage("/public WORDS") } else { searchPublic(rest) }
        default: chatCommand(parts.first ?? "", rest)
        }
    }

    private func signInAgain() {
        // Checks the store, because the connection state does not show offline whether an account
        // is signed in.
        guard (try? client.isSignedIn()) == false else {
            state.notice = (
                "you are signed in; `tambour open --account NAME` signs in another account", true
            )
            return
        }
        wantsSignIn = true
        end(0)
    }

    /// Runs a command for the open chat.
    private func chatCommand(_ name: String, _ rest: String) {
        guard ScreenCommand.all.contains(where: { $0.name == name }) else {
            state.notice = (
                "there is no command /\(name); type // to begin a message with a slash", true
            )
            return
        }
        guard let id = state.open else {
            let hint = state.keys.hint(.goToChat, "goes to one", before: ": ")
            state.notice = ("no chat is open\(hint)", true)
            return
        }
        if state.comments != nil, !Self.commandsInComments.contains(name) {
            let hint = state.keys.hint(.back, "goes back to it", before: "; ")
            state.notice = ("/\(name) is for the channel, not for comments\(hint)", true)
            return
        }
        switch name {
        case "date": goToDate(rest)
        case "unread": goToFirstUnread()
        case "links": openLinks()
        case "thread": openThread(of: rowToChoose)
        case "comments": openComments(on: rowToChoose)
        case "open": openLink(Int(rest) ?? 1, of: nil)
        case "members": openMembers()
        case "mute": if let chat = state.openChat { toggleMute(chat) }
        case "pin": if let chat = state.openChat { togglePin(chat) }
        case "invite": showInvitation(isNew: rest == "new", of: id)
        case "options": openOptions(of: id)
        case "poll": sendPoll(rest, to: id)
        case "later": schedule(rest, in: id)
        case "pinned":
            if let pinned = state.pinned {
                go(to: pinned.message, in: id)
            } else {
                state.notice = ("this chat has no pinned message", false)
            }
        case "unpin": perform { try await $0.update(id, pinned: MessageID(0)) }
        case "hide": perform { try await $0.hide(id) }
        case "leave":
            let title = state.openTitle
            confirm(state.isOpenGone ? "Delete \(title) here?" : "Leave \(title)?") { screen in
                screen.perform { try await $0.leave(id) }
                if screen.state.open == id { screen.close() }
            }
        case "title", "describe":
            guard !rest.isEmpty else { return usage("/\(name) TEXT") }
            perform {
                _ =
                    try await name == "title"
                    ? $0.update(id, title: rest) : $0.update(id, about: rest)
            }
        case "add", "remove", "admin": memberCommand(name, rest, id)
        default: break
        }
    }

    private func memberCommand(_ name: String, _ who: String, _ chat: ChatID) {
        guard !who.isEmpty else { return usage("/\(name) +79990000002") }
        changeMember(chat, who) { client, user in
            switch name {
            case "add": try await client.add([user], to: chat)
            case "remove": try await client.remove([user], from: chat)
            default:
                let role = try await client.roster(of: chat).first { $0.id == user }?.role
                try await client.setAdministrator(user, in: chat, role != .administrator)
            }
        }
    }

    func usage(_ text: String) {
        state.notice = ("usage: \(text)", true)
    }

    private func changeTheme(_ name: String) {
        guard let theme = Theme.all.first(where: { $0.name == name }) else {
            return usage("/theme \(Theme.all.map(\.name).joined(separator: "|"))")
        }
        state.theme = theme
        keep(name, as: \.theme)
        display?.repaint()
    }

    private func changeNotification(_ name: String) {
        guard let kind = TerminalMessage.Notification(name: name) else {
            return usage("/notify bell|osc9|osc777|off")
        }
        display?.notify(kind, title: "Tambour", body: "This is an alert.")
        state.notice = ("new messages alert you with: \(name)", false)
        keep(name, as: \.notify)
    }

    private func keep(_ name: String, as member: WritableKeyPath<Preferences, String?>) {
        if let reason = preferences.change(member, to: name) {
            state.notice = (
                "the choice lasts until you leave; preferences.json cannot be written: \(reason)",
                true
            )
        }
    }

    /// Opens the dialog with a person. `who` is a phone number or a name.
    private func find(_ who: String) {
        guard !who.isEmpty else { return usage("/find +79990000002") }
        guard let me else { return }
        fetch { client in
            let person = try await client.somebody(who)
            return (person, try client.chat(.dialog(me, person.id)) == nil)
        } then: { screen, found in
            let (person, isNew) = found
            screen.open(.dialog(me, person.id), name: person.name)
            guard isNew else { return }
            screen.state.notice = ("\(person.name): your first message begins the chat", false)
        }
    }

    private func create(_ rest: String, isChannel: Bool) {
        let parts = rest.split(separator: ",").map { String($0).trimmed }
        guard let title = parts.first, !title.isEmpty else {
            return usage("/new Friends, +79990000002, Bob")
        }
        fetch { client in
            var members: [UserID] = []
            for who in parts.dropFirst() where !who.isEmpty {
                members.append(try await client.somebody(who).id)
            }
            let before = Set(try client.chats(includingHidden: true).map(\.id))
            let made = try await client.createChat(
                title: title,
                members: members,
                isChannel: isChannel
            )
            guard await client.settle(within: .seconds(5)) else { return ChatID?.none }
            if let reason = try client.waiting().first(where: { $0.id == made })?.failure {
                // The program puts the refused command back into the input line. The queue must
                // therefore not keep the creation as well.
                try await client.cancel(made)
                throw Failure("\(title) was not made: \(reason)")
            }
            return try client.chats().first { !before.contains($0.id) && $0.title == title }?.id
        } then: { screen, chat in
            if let chat {
                screen.open(chat, name: title)
            } else {
                screen.state.notice = ("\(title) is made when the server answers", false)
            }
        }
    }
}
