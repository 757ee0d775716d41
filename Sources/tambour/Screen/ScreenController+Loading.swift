import Dispatch
import Foundation
import TambourClient
import TambourProtocol
import TerminalKit

/// The state of reading from the store: which parts have changed, and whether a read is running.
struct Loading {
    struct Stale {
        var chats: Set<ChatID> = []
        var allChats = false
        var history = false
        var queue = false
        var thread = false
        var folders = false
    }

    /// The result of one read.
    struct Read: Sendable {
        var allChats: [ChatSummary]?
        /// The new line of the list for each chat; nil if the chat is no longer in the list.
        var chats: [ChatID: ChatSummary?] = [:]
        var page: HistoryPage?
        var pinned: HistoryRow.Quote?
        var scheduled: [ScheduledMessage] = []
        var thread: MessageThread?
        var folders: [ChatFolder]?
        var contacts: Set<UserID> = []
        var queueLength = 0
        var traffic = (sent: 0, received: 0)
        var pauseBeforeRetry: Duration?
        var connectionFailure: ConnectionFailure?
    }

    var stale = Stale()
    var isRunning = false
    var isScheduled = false
    /// Whether all chats were read at least once. Messages cause alerts only after that.
    var hasBegun = false
    /// Whether the top of the list has been read.
    var hasFirst = false
    var last = ContinuousClock.now - .seconds(1)
    /// The minimum time between two reads. Users would not notice more frequent updates.
    var interval = Duration.milliseconds(33)

    /// The number of changed chats above which it is cheaper to read the whole list.
    static let manyChats = 30
    /// The number of chats in the first read. It is greater than the number that the list shows on
    /// a large terminal.
    static let firstChats = 60
    /// The number of messages in one read. They fill several screens before and after the reading
    /// position.
    static let page = 200
}

extension ScreenController {
    /// Marks the changed data as stale.
    func noted(_ change: ChangeSet) {
        loading.stale.chats.formUnion(change.chats)
        loading.stale.chats.formUnion(change.drafts)
        if change.everything { loading.stale.allChats = true }
        // If the user's own name has changed, the preview of any chat may have changed too.
        if let me, change.people.contains(me) { loading.stale.allChats = true }
        if let open = state.open, change.everything || change.drafts.contains(open) {
            takeDraft()
        }
        if state.comments != nil, change.everything || !change.comments.isEmpty { checkPost() }
        if let me {
            loading.stale.chats.formUnion(change.people.map { ChatID.dialog(me, $0) })
        }
        if !change.people.isEmpty {
            // The previews in group lines contain names of people, which may have changed.
            loading.stale.chats.formUnion(state.chats.map(\.id).filter(\.isGroup))
        }
        if let open = state.open,
            change.everything || change.histories.contains(open)
                || change.comments.contains(open) || !change.people.isEmpty
        {
            loading.stale.history = true
        }
        if change.queue || change.everything {
            loading.stale.queue = true
            if state.panel?.kind == .queue { fillQueue() }
        }
        if !change.people.isEmpty, state.panel?.kind == .contacts { fillContacts() }
        let hasContacts = state.folders.contains { $0.hasContacts }
        if change.folders || change.everything || hasContacts && !change.people.isEmpty {
            loading.stale.folders = true
        }
        if change.account, state.panel?.kind == .profile { fillProfile() }
        load()
    }

    func loadHistory() {
        loading.stale.history = true
        load()
    }

    /// Reads stale data in the background, at most once per `loading.interval`.
    func load() {
        guard !loading.isRunning, !loading.isScheduled else { return }
        let wait = loading.last + loading.interval - .now
        guard wait > .zero else { return read() }
        loading.isScheduled = true
        let nanoseconds = Int(wait / .nanoseconds(1))
        queue.asyncAfter(deadline: .now() + .nanoseconds(nanoseconds)) { [weak self] in
            self?.loading.isScheduled = false
            self?.read()
        }
    }

    private func read() {
        let stale = loading.stale
        loading.stale = Loading.Stale()
        loading.isRunning = true
        loading.last = .now
        let (open, anchor, client, panel) = (state.open, anchor, client, state.panel?.kind)
        // The first read returns only the top of the list, so that the screen appears before the
        // rest is read.
        let isFirst = !loading.hasFirst
        if isFirst { loading.stale.allChats = true }
        Task { [weak self] in
            var read = Loading.Read()
            if stale.allChats || stale.chats.count > Loading.manyChats {
                read.allChats = try? client.chats(limit: isFirst ? Loading.firstChats : nil)
            } else {
                for chat in stale.chats {
                    let line = try? client.chat(chat)
                    // Does not use the subscript, because assigning nil would remove the key. The
                    // line would then stay in the list.
                    read.chats.updateValue(line?.isHidden == false ? line : nil, forKey: chat)
                }
            }
            if stale.history, let open {
                read.page = try? client.history(
                    of: open,
                    anchor.map { .around($0) } ?? .newest,
                    count: Loading.page
                )
            }
            if let open {
                read.pinned = try? client.pinnedMessage(in: open)
                read.scheduled = (try? client.scheduled(in: open)) ?? []
            }
            if stale.history || stale.thread, case .thread(let message, _, let chat)? = panel {
                read.thread = try? client.thread(of: message, in: chat)
            }
            if stale.folders, let folders = try? client.folders() {
                read.folders = folders
                if folders.contains(where: \.hasContacts) {
                    read.contacts = Set((try? client.people().map(\.id)) ?? [])
                }
            }
            read.queueLength = (try? client.queueLength()) ?? 0
            read.traffic = await client.traffic()
            read.pauseBeforeRetry = await client.pauseBeforeRetry()
            read.connectionFailure = await client.connectionFailure()
            let result = read
            self?.later { screen in
                if let panel, let thread = result.thread { screen.show(thread, in: panel) }
                screen.show(result, of: open, at: anchor)
            }
        }
    }

    private func show(_ read: Loading.Read, of open: ChatID?, at anchor: MessageID?) {
        loading.isRunning = false
        let before = state.chats
        if let all = read.allChats {
            state.chats = all
        } else if !read.chats.isEmpty {
            merge(read.chats)
        }
        if let folders = read.folders { show(folders, contacts: read.contacts) }
        if loading.hasBegun { tellNews(since: before, of: read) }
        if read.allChats != nil {
            // The second read returns the rest of the list. It must not cause alerts either.
            loading.hasBegun = loading.hasFirst
            loading.hasFirst = true
        }
        if open == state.open {
            state.pinned = read.pinned
            state.scheduled = read.scheduled
        }
        state.queueLength = read.queueLength
        state.traffic = read.traffic
        state.connectionFailure = read.connectionFailure
        state.nextTryMs = read.pauseBeforeRetry.map {
            Int64((Date().timeIntervalSince1970 + $0 / .seconds(1)) * 1000)
        }
        if let page = read.page {
            if open == state.open, anchor == self.anchor {
                show(page)
            } else {
                loading.stale.history = true
            }
        }
        if state.panel?.kind == .goTo { fillPanel() }
        let stale = loading.stale
        if stale.allChats || !stale.chats.isEmpty || stale.history || stale.queue || stale.thread
            || stale.folders
        {
            load()
        }
        if case .poll? = state.panel?.kind { fillPoll() }
        if case .scheduled? = state.panel?.kind { fillScheduled() }
        if state.panel?.kind == .folders { fillFolders() }
        draw()
    }

    private func show(_ folders: [ChatFolder], contacts: Set<UserID>) {
        let wasShown = state.shownFolder
        state.folders = folders
        state.contacts = contacts
        guard let wasShown, state.shownFolder == nil else { return }
        state.folder = nil
        state.notice = (
            "the folder “\(wasShown.title)” is deleted; the list shows all chats", false
        )
    }

    /// Merges changed lines into the list. The lines keep the order that the library uses.
    private func merge(_ lines: [ChatID: ChatSummary?]) {
        let isPinChanged = state.chats.contains { old in
            guard let new = lines[old.id] else { return false }
            return old.isPinned || new?.isPinned == true
        }
        if isPinChanged || lines.values.contains(where: { $0?.isPinned == true }) {
            // Only the library knows the order of pinned chats.
            loading.stale.allChats = true
        }
        state.chats.removeAll { lines[$0.id] != nil }
        for case let line? in lines.values {
            let place = state.chats.firstIndex { !$0.isPinned && Self.isBefore(line, $0) }
            state.chats.insert(line, at: line.isPinned ? 0 : place ?? state.chats.count)
        }
    }

    private static func isBefore(_ line: ChatSummary, _ other: ChatSummary) -> Bool {
        (other.lastEventMs, line.id) < (line.lastEventMs, other.id)
    }

    /// Alerts the user to new messages in an unmuted chat, unless the user is looking at the chat.
    private func tellNews(since before: [ChatSummary], of read: Loading.Read) {
        let kind = preferences.value.notification
        guard kind != .none, state.connection == .online else { return }
        let candidates = read.allChats ?? read.chats.values.compactMap { $0 }
        let loud = candidates.filter { $0.unread > 0 && !$0.isMuted }
        guard !loud.isEmpty else { return }
        let known = Dictionary(before.map { ($0.id, $0.unread) }) { first, _ in first }
        let new = loud.first { chat in
            chat.unread > known[chat.id] ?? 0 && !(isLookedAt && chat.id == state.open)
        }
        guard let new, ContinuousClock.now - lastNotice > .seconds(1) else { return }
        lastNotice = .now
        display?.notify(kind, title: new.title, body: new.preview?.text ?? "")
    }

    private func show(_ page: HistoryPage) {
        let width = paneWidth
        let isFollowing = state.scroll == 0 && anchor == nil
        let bottom = isFollowing ? nil : view.bottomLine(of: state, width)
        if let newest = page.rows.last, newest.id != state.rows.last?.id,
            newest.senderName == state.typing
        {
            state.typing = nil
        }
        state.rows = page.rows
        updateQuote()
        state.isGapBefore = page.isGapBefore
        state.isStart = page.isStart
        state.isEnd = page.isEnd
        if isAnchorToBeShown, let anchor {
            let isHeld = page.rows.contains { $0.message == anchor }
            if isHeld { isAnchorToBeShown = false }
            state.scroll = view.scroll(
                of: state,
                width,
                centering: anchor,
                in: max(1, seen.paneRows)
            )
            if isHeld, state.focus == .messages {
                state.selected = page.rows.first { $0.message == anchor }?.id
            }
        } else if let bottom {
            // When messages appear above or below, the text that the user reads stays in its place.
            state.scroll = view.scroll(of: state, width, keeping: bottom) ?? state.scroll
        }
    }

    var paneWidth: Int { ScreenView.textWidth(of: display?.size.columns ?? 80) }
}
