import TambourClient
import TambourProtocol
import TerminalKit

/// Joins groups and channels, and invites others to them.
extension ScreenController {
    /// Opens the group or channel that a link refers to. If the user is not a member, asks whether
    /// to join it.
    func join(_ link: String) {
        fetch {
            try await $0.lookUp(link)
        } then: { screen, card in
            guard let card else {
                screen.state.notice = ("this link is not valid, or no longer", true)
                return
            }
            if let known = screen.state.chats.first(where: { $0.id == card.id && !$0.isGone }) {
                return screen.open(known.id, name: known.title)
            }
            screen.confirm("Join “\(card.title)”, \(card.membersInWords)?") { screen in
                screen.joinAfterQuestion(link)
            }
        }
    }

    private func joinAfterQuestion(_ link: String) {
        fetch {
            try await $0.join(link)
        } then: { screen, joining in
            switch joining {
            case .joined(let card): screen.open(card.id, name: card.title)
            case .requested(let card):
                screen.state.notice = ("“\(card.title)” will decide whether you may join", false)
            }
        }
    }

    /// Shows the link by which others can join the chat, and copies it to the clipboard.
    func showInvitation(isNew: Bool, of chat: ChatID) {
        fetch {
            try await isNew ? $0.renewInvitation(of: chat) : $0.invitation(of: chat)
        } then: { screen, link in
            guard let link else {
                screen.state.notice = ("you may not see the invitation of this chat", true)
                return
            }
            let isCopied = screen.display?.copy(link) == true
            screen.state.notice = ("\(isCopied ? "copied: " : "")/join \(link)", false)
        }
    }

    // MARK: - Public chats

    func searchPublic(_ words: String) {
        show(Panel(kind: .publicSearch, title: "Found “\(words)”", keys: "Enter opens or joins"))
        state.panel?.load("asking the server…")
        fetch {
            try await $0.searchPublic(words)
        } then: { screen, found in
            let people = found.people.map { $0.item(.person($0.id)) }
            let chats = found.chats.map { card in
                Panel.Item(
                    title: card.title,
                    detail: card.about.isEmpty ? nil : card.about,
                    right: card.membersInWords,
                    target: .invitation(card.link)
                )
            }
            let items = people + chats
            let remark =
                items.isEmpty ? "nothing found: names and titles by their first letters" : ""
            screen.fill(.publicSearch, with: items, remark: remark)
        }
    }

    // MARK: - Options

    func openOptions(of chat: ChatID) {
        guard chat.isGroup else {
            state.notice = ("only groups and channels have options", true)
            return
        }
        let title = "Options of \(state.openTitle)"
        show(Panel(kind: .options(chat), title: title, keys: "Enter changes"))
        state.panel?.load("asking the server…")
        fillOptions(of: chat)
    }

    private func fillOptions(of chat: ChatID) {
        fetch {
            try await $0.options(of: chat)
        } then: { screen, options in
            let items = options.compactMap { option -> Panel.Item? in
                guard let words = Self.words(for: option.name, isChannel: chat.isChannel) else {
                    return nil
                }
                let target = Panel.Target.option(option.name, isOn: option.isOn)
                return Panel.Item(title: words, right: option.isOn ? "yes" : "no", target: target)
            }
            screen.fill(.options(chat), with: items)
        }
    }

    func set(_ name: String, _ isOn: Bool, of chat: ChatID) {
        fetch {
            try await $0.setOption(name, isOn, of: chat)
        } then: { screen, _ in
            screen.fillOptions(of: chat)
        }
    }

    /// Returns the meaning of an option. Returns nil if the option is unknown, or has no effect in
    /// this kind of chat.
    private static func words(for option: String, isChannel: Bool) -> String? {
        switch option {
        case "ALL_CAN_PIN_MESSAGE": isChannel ? nil : "Every member may pin messages"
        case "ONLY_OWNER_CAN_CHANGE_ICON_TITLE": "Only the owner may change the title"
        case "ONLY_ADMIN_CAN_ADD_MEMBER": "Only administrators may add members"
        case "MEMBERS_CAN_SEE_PRIVATE_LINK": "Every member sees the invitation"
        case "JOIN_REQUEST": "People with the link must ask to join"
        case "COMMENTS": isChannel ? "Readers may comment on posts" : nil
        default: nil
        }
    }
}

extension Client.ChatCard {
    fileprivate var membersInWords: String { members == 1 ? "1 member" : "\(members) members" }
}
