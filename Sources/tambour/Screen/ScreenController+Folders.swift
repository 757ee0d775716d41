import TambourClient
import TambourProtocol
import TerminalKit

/// Folders of chats: chooses the folder that the list shows, and changes folders.
extension ScreenController {
    /// The title of the list when it shows no folder.
    private static let allChats = "All chats"

    /// Handles `/folder` and the commands that begin with `/folder-`.
    func folderCommand(_ name: String, _ rest: String) {
        switch name {
        case "folder":
            guard !rest.isEmpty else { return openFolders() }
            if FoldedText(rest).scalars == FoldedText(Self.allChats).scalars {
                return showFolder(nil)
            }
            if let folder = folder(named: rest) { showFolder(folder.id) }
        case "folder-new":
            guard !rest.isEmpty else { return usage("/folder-new Work") }
            createFolder(rest)
        case "folder-rename":
            guard let folder = shownFolder(orNamed: "") else { return }
            guard !rest.isEmpty else { return usage("/folder-rename NAME") }
            rename(folder, to: rest)
        case "folder-delete":
            if let folder = shownFolder(orNamed: rest) { delete(folder) }
        case "folder-add", "folder-remove":
            guard let open = state.open else {
                let hint = state.keys.hint(.goToChat, "goes to one", before: ": ")
                state.notice = ("no chat is open\(hint)", true)
                return
            }
            guard let folder = shownFolder(orNamed: rest) else { return }
            put(open, state.openTitle, in: folder, name == "folder-add")
        default: break
        }
    }

    /// Returns the folder with this name, or else the only folder whose title begins with the name.
    /// If there is no such folder or several, tells the user.
    private func folder(named name: String) -> ChatFolder? {
        let wanted = FoldedText(name)
        let similar = state.folders.filter { FoldedText($0.title).hasPrefix(wanted) }
        let same = state.folders.first { FoldedText($0.title).scalars == wanted.scalars }
        guard let found = same ?? (similar.count == 1 ? similar.first : nil) else {
            let words = similar.isEmpty ? "there is no folder" : "several folders begin with"
            state.notice = ("\(words) “\(name)”; /folder lists them", true)
            return nil
        }
        return found
    }

    /// Returns the folder with this name. If the name is empty, returns the folder that the list
    /// shows.
    private func shownFolder(orNamed name: String) -> ChatFolder? {
        guard name.isEmpty else { return folder(named: name) }
        guard let shown = state.shownFolder else {
            state.notice = ("the list shows no folder; /folder chooses one", true)
            return nil
        }
        return shown
    }

    /// Makes the list show a folder. If `id` is nil, the list shows all chats.
    func showFolder(_ id: ChatFolder.ID?) {
        state.folder = id
        loading.stale.folders = true
        load()
    }

    // MARK: - Changing

    private func createFolder(_ title: String) {
        perform { [weak self] client in
            let id = try await client.createFolder(title)
            self?.later { screen in
                screen.showFolder(id)
                screen.state.notice = (
                    "the list shows “\(title)”; /folder-add puts the open chat into it", false
                )
                screen.draw()
            }
        }
    }

    private func rename(_ folder: ChatFolder, to title: String) {
        perform { try await $0.renameFolder(folder.id, to: title) }
    }

    private func delete(_ folder: ChatFolder) {
        confirm("Delete the folder “\(folder.title)”? Its chats stay.") { screen in
            screen.perform { try await $0.deleteFolder(folder.id) }
        }
    }

    private func put(_ chat: ChatID, _ title: String, in folder: ChatFolder, _ isIn: Bool) {
        guard folder.chats.contains(chat) != isIn else {
            let words = isIn ? "is already in" : "was not put into"
            state.notice = ("\(title) \(words) “\(folder.title)”", true)
            return
        }
        perform { [weak self] client in
            try await client.put(chat, in: folder.id, isIn)
            let words = isIn ? "is in" : "is no longer in"
            self?.say("\(title) \(words) “\(folder.title)”")
        }
    }

    // MARK: - The list of folders

    func openFolders() {
        show(
            Panel(
                kind: .folders,
                title: "Folders",
                keys: "n new  r rename  d delete  a open chat in, out  K J move"
            )
        )
        fillFolders()
        let shown = state.folders.firstIndex { $0.id == state.folder }
        state.panel?.selected = shown.map { $0 + 1 } ?? 0
    }

    /// Fills the panel with the current folders, which may change while it is open.
    func fillFolders() {
        let unread = state.chats.loudUnread
        let all = Panel.Item(
            title: Self.allChats,
            right: unread > 0 ? "\(unread)" : "",
            target: .folder(nil)
        )
        let folders = state.folders.map { folder in
            let chats = state.chats(in: folder)
            let unread = chats.loudUnread
            let isHere = state.open.map { folder.chats.contains($0) } ?? false
            let words = chats.count == 1 ? "1 chat" : "\(chats.count) chats"
            return Panel.Item(
                title: folder.title,
                detail: isHere ? "\(words), with \(state.openTitle)" : words,
                right: unread > 0 ? "\(unread)" : "",
                target: .folder(folder.id)
            )
        }
        let remark = folders.isEmpty ? "no folders yet: n makes one" : ""
        fill(.folders, with: [all] + folders, remark: remark)
    }

    func actOnFolder(_ letter: Unicode.Scalar, _ panel: Panel) -> Bool {
        if letter == "n" {
            ask("Name of the new folder:") { screen, title in
                screen.closePanel()
                screen.createFolder(title)
            }
            return true
        }
        guard case .folder(let id)? = panel.selectedItem?.target,
            let index = state.folders.firstIndex(where: { $0.id == id })
        else { return false }
        let folder = state.folders[index]
        switch letter {
        case "r": ask("New name:", folder.title) { $0.rename(folder, to: $1) }
        case "d": delete(folder)
        case "a":
            guard let open = state.open else {
                state.notice = ("no chat is open", true)
                return true
            }
            put(open, state.openTitle, in: folder, !folder.chats.contains(open))
        case "K", "J":
            let other = letter == "K" ? index - 1 : index + 1
            guard state.folders.indices.contains(other) else { return true }
            var ids = state.folders.map(\.id)
            ids.swapAt(index, other)
            perform { [ids] in try await $0.orderFolders(ids) }
        default: return false
        }
        return true
    }
}

extension ScreenState {
    /// The folder that the list shows; nil for all chats.
    var shownFolder: ChatFolder? { folders.first { $0.id == folder } }

    /// The chats that the list shows: the chats of the shown folder, or all chats.
    var shownChats: [ChatSummary] { shownFolder.map { chats(in: $0) } ?? chats }

    func chats(in folder: ChatFolder) -> [ChatSummary] {
        chats.filter { chat in folder.contains(chat) { contacts.contains($0) } }
    }
}

extension [ChatSummary] {
    /// The number of unread messages in chats that are not muted.
    var loudUnread: Int { reduce(0) { $0 + ($1.isMuted ? 0 : $1.unread) } }
}
