import Dispatch
import TambourClient
import TambourProtocol
import TerminalKit

/// Searches messages. Results from this device appear at once; results from the server appear a
/// little later.
extension ScreenController {
    /// The pause in typing after which the screen queries the server.
    private static let pause = DispatchTimeInterval.milliseconds(300)
    private static let found = 200

    /// - Parameter chat: The chat to search in; nil to search in all chats.
    func openSearch(in chat: ChatID?, for words: String = "") {
        let title = chat == nil ? "Search everywhere" : "Search in \(state.openTitle)"
        var query = LineEditor(limit: 100)
        query.setText(words)
        hits = []
        let steps = state.keys.hint(.olderHit, "") + state.keys.hint(.newerHit, "")
        let keys = steps.isEmpty ? "" : "then \(steps)step through"
        show(Panel(kind: .search(chat), title: title, query: query, keys: keys))
    }

    func fillSearch(in chat: ChatID?) {
        guard let panel = state.panel, let words = panel.query?.text.trimmed else { return }
        panelGeneration += 1
        let generation = panelGeneration
        guard !words.isEmpty else {
            hits = []
            state.panel?.items = []
            state.panel?.remark = "words, or how they begin"
            return
        }
        fetch {
            try $0.search(words, in: chat, count: Self.found)
        } then: { screen, found in
            guard screen.panelGeneration == generation else { return }
            screen.showHits(found, remark: screen.remarkOfLocal(found.count, in: chat))
        }
        guard canAskServer(in: chat) else { return }
        queue.asyncAfter(deadline: .now() + Self.pause) { [weak self] in
            guard let self, panelGeneration == generation else { return }
            askServer(words, in: chat, generation)
        }
    }

    /// Returns whether the screen can query the server about a chat: only while the client is
    /// online, and not about comments, because the server cannot search in them.
    private func canAskServer(in chat: ChatID?) -> Bool {
        state.connection == .online && (chat == nil || chat != state.comments?.id)
    }

    private func remarkOfLocal(_ count: Int, in chat: ChatID?) -> String {
        let here = count == 0 ? "nothing on this device" : "\(count) on this device"
        if chat != nil, chat == state.comments?.id { return here }
        return state.connection == .online ? "\(here), asking the server…" : "\(here), offline"
    }

    private func askServer(_ words: String, in chat: ChatID?, _ generation: Int) {
        let client = client
        Task { [weak self] in
            let result = try? await client.searchServer(words, in: chat)
            self?.later { screen in
                guard screen.panelGeneration == generation else { return }
                guard let result else {
                    screen.state.panel?.remark =
                        "\(screen.hits.count) on this device; the server did not answer"
                    return screen.draw()
                }
                screen.add(result.found, hasMore: result.marker != nil)
                screen.draw()
            }
        }
    }

    /// Merges the server's results into the local results.
    private func add(_ found: [Client.Found], hasMore: Bool) {
        struct Name: Hashable {
            let chat: ChatID
            let message: MessageID?
        }
        let known = Set(hits.map { Name(chat: $0.chat, message: $0.row.message) })
        let new = found.filter { !known.contains(Name(chat: $0.chat, message: $0.row.message)) }
        let all = (hits + new).sorted { ($0.row.message ?? .max) > ($1.row.message ?? .max) }
        let here = hits.count
        var remark = "\(all.count) found"
        if !new.isEmpty { remark += ", \(here) of them on this device" }
        if all.isEmpty { remark = "nothing found" }
        if hasMore { remark += "; more words find the older ones" }
        showHits(all, remark: remark)
    }

    private func showHits(_ found: [Client.Found], remark: String) {
        let chosen = state.panel?.selectedItem?.target
        hits = found
        state.panel?.items = found.map { $0.item }
        state.panel?.remark = remark
        let kept = state.panel?.items.firstIndex { $0.target == chosen }
        state.panel?.selected = kept ?? 0
    }

    func chooseHit(_ panel: Panel) {
        let words = panel.query?.text ?? ""
        guard hits.indices.contains(panel.selected) else { return }
        state.words = words.split(whereSeparator: \.isWhitespace).map(String.init)
        closePanel()
        goToHit(panel.selected)
    }
}

extension MessageID {
    /// An id that is greater than the id of any message.
    static let max = MessageID(.max)
}
