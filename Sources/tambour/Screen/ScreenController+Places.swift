import Foundation
import TambourClient
import TambourProtocol

/// Opens chats, and moves to places in them.
extension ScreenController {
    /// Opens a chat at its newest message.
    ///
    /// - Parameter name: The title of the chat. Needed only if the chat is not in the list.
    func open(_ chat: ChatID, name: String? = nil) {
        guard chat != state.open else { return }
        notePlace()
        change(to: chat, name: name)
        follow()
        loadHistory()
    }

    /// Closes the open chat.
    func close() {
        guard let old = state.open else { return }
        client.lookAway(from: old)
        perform { try await $0.keepOpenChat(nil) }
        state.open = nil
        state.openName = nil
        state.comments = nil
        state.pinned = nil
        state.scheduled = []
        state.rows = []
        state.typing = nil
        state.newAfterMs = nil
        state.intent = .new
        state.focus = .input
        writing.generation += 1
        writing.underCommand = nil
        seen = ScreenView.Seen()
        follow()
    }

    private func change(to chat: ChatID, name: String?) {
        leaveLine()
        if let old = state.open { client.lookAway(from: old) }
        state.open = chat
        state.comments = try? client.comments(chat)
        let listed = state.listed
        perform { try await $0.keepOpenChat(listed) }
        state.pinned = nil
        state.scheduled = []
        state.openName = name ?? state.comments?.title ?? (try? client.chat(chat)?.title)
        state.rows = []
        state.typing = nil
        state.suggestions = nil
        if state.focus == .messages { state.focus = .input }
        // At the start of the program, the list has not been read yet. The chat is then read from
        // the store.
        let summary = state.openChat ?? (try? client.chat(chat))
        let isUnread = (summary?.unread ?? 0) > 0
        state.newAfterMs = isUnread ? try? client.readMark(of: chat) : nil
        arriveAtLine(of: chat)
        seen = ScreenView.Seen()
        learnWhoWrote(in: chat)
    }

    /// Shows the newest messages. Messages that arrive later are then shown at once.
    func follow() {
        state.scroll = 0
        isAnchorToBeShown = false
        isGoingBack = true
        if anchor != nil {
            anchor = nil
            loadHistory()
        }
    }

    /// Goes to a message of any chat.
    func go(to message: MessageID, in chat: ChatID) {
        notePlace()
        arrive(at: Places.Place(chat: chat, message: message))
    }

    /// Goes to an unsent message of the open chat. Shows the newest messages, because unsent
    /// messages are among them.
    func goToWaiting(_ row: HistoryRow.ID) {
        notePlace()
        follow()
        state.selected = row
        state.focus = .messages
    }

    private func arrive(at place: Places.Place) {
        if place.chat != state.open { change(to: place.chat, name: nil) }
        guard let message = place.message else {
            follow()
            return loadHistory()
        }
        anchor = message
        isAnchorToBeShown = true
        state.scroll = 0
        state.selected = state.rows.first { $0.message == message }?.id ?? .message(message)
        state.focus = .messages
        // Fetches the page around the message, because the message may be missing on this device.
        client.look(
            at: place.chat,
            position: message,
            rowsOnScreen: max(1, seen.rowsOnScreen),
            visible: []
        )
        loadHistory()
    }

    private var here: Places.Place? {
        guard let open = state.open else { return nil }
        let isFollowing = anchor == nil && state.scroll == 0
        return Places.Place(chat: open, message: isFollowing ? nil : seen.messages.last ?? anchor)
    }

    private func notePlace() {
        if let here { places.leave(here) }
    }

    func goBack() {
        guard let here, let place = places.goBack(from: here) else {
            state.notice = ("there is no place to go back to", false)
            return
        }
        arrive(at: place)
    }

    func goForward() {
        guard let here, let place = places.goForward(from: here) else {
            state.notice = ("there is no place to go forward to", false)
            return
        }
        arrive(at: place)
    }

    func scroll(by lines: Int) {
        isGoingBack = lines > 0
        isAnchorToBeShown = false
        let most = max(0, seen.lines - seen.paneRows)
        let wanted = state.scroll + lines
        // If less than one screen remains before either end of the loaded messages, loads more.
        let sent = state.rows.lazy.compactMap(\.message)
        if lines > 0, wanted > most - seen.paneRows, !state.isStart {
            read(at: sent.first)
        } else if lines < 0, wanted < seen.paneRows, !state.isEnd {
            read(at: sent.last)
        } else if wanted <= 0, state.isEnd {
            read(at: nil)
        }
        state.scroll = min(max(0, wanted), most)
    }

    private func read(at message: MessageID?) {
        guard message != anchor else { return }
        anchor = message
        loadHistory()
    }

    func goToNeighbour(_ step: Int) {
        let chats = state.shownChats
        guard !chats.isEmpty else { return }
        let index = chats.firstIndex { $0.id == state.listed }
        let next = index.map { min(max(0, $0 + step), chats.count - 1) } ?? 0
        open(chats[next].id)
    }

    func goToNextUnread() {
        // The chats of the shown folder come first.
        let unread = (state.shownChats + state.chats).filter {
            $0.unread > 0 && $0.id != state.open
        }
        guard let next = unread.first(where: { !$0.isMuted }) ?? unread.first else {
            state.notice = ("nothing is unread", false)
            return
        }
        open(next.id)
    }

    func goToFirstUnread() {
        guard let open = state.open else { return }
        guard let mark = state.newAfterMs else {
            state.notice = ("nothing was unread here", false)
            return
        }
        // The first unread message comes directly after this position, even if it is not on this
        // device.
        go(to: MessageID(timeMs: max(mark, 1), counter: .max), in: open)
        state.focus = .input
    }

    func goToDate(_ text: String) {
        guard let open = state.open else { return }
        guard let time = DateWords.time(of: text, now: Date(), calendar: .current) else {
            usage("/date 2026-11-23, 23.11, yesterday, monday")
            return
        }
        go(to: MessageID(timeMs: time, counter: 0), in: open)
        state.focus = .input
    }

    // MARK: - Search hits

    /// Shows a search hit. The user can then step to the other hits.
    func goToHit(_ index: Int) {
        guard hits.indices.contains(index), let message = hits[index].row.message else { return }
        hitIndex = index
        go(to: message, in: hits[index].chat)
        let words = state.words.isEmpty ? "" : ", n older, N newer"
        state.notice = ("\(index + 1) of \(hits.count)\(words)", false)
    }

    func stepToHit(_ step: Int) {
        guard !hits.isEmpty else {
            let hint = state.keys.hint(.searchChat, "does too", before: "; ")
            state.notice = ("look for something first: /search WORDS\(hint)", true)
            return
        }
        guard hits.indices.contains(hitIndex + step) else {
            state.notice = (step > 0 ? "this is the oldest hit" : "this is the newest hit", false)
            return
        }
        goToHit(hitIndex + step)
    }
}
