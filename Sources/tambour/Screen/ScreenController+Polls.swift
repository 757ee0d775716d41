import TambourClient
import TambourProtocol
import TerminalKit

/// Sends polls and votes in them.
extension ScreenController {
    func sendPoll(_ line: String, to chat: ChatID) {
        let parts = line.split(separator: "|").map { String($0).trimmed }.filter { !$0.isEmpty }
        guard let question = parts.first, parts.count > 2 else {
            return usage("/poll Where? | Here | There")
        }
        follow()
        perform { try await $0.send(NewPoll(question, Array(parts.dropFirst())), to: chat) }
    }

    func openPoll(of row: HistoryRow, _ message: MessageID, _ chat: ChatID) {
        guard let poll = row.poll else {
            state.notice = ("this message has no poll", true)
            return
        }
        show(
            Panel(
                kind: .poll(message, in: chat),
                title: poll.question,
                keys: poll.isClosed ? "" : "Enter votes, or takes the vote back"
            )
        )
        fillPoll()
    }

    /// Fills the panel with the current votes, which may change while it is open.
    func fillPoll() {
        guard case .poll(let message, _)? = state.panel?.kind, let kind = state.panel?.kind,
            let poll = state.rows.first(where: { $0.message == message })?.poll
        else { return }
        let items = poll.answers.map { answer in
            Panel.Item(
                title: "\(answer.isChosen ? "●" : "○") \(answer.text)",
                right: "\(answer.votes)",
                target: .answer(answer.id)
            )
        }
        fill(kind, with: items, remark: poll.remark)
    }

    func vote(_ answer: Int64, _ message: MessageID, _ chat: ChatID) {
        guard let poll = state.rows.first(where: { $0.message == message })?.poll else { return }
        guard !poll.isClosed else {
            state.notice = ("this poll is closed", true)
            return
        }
        var chosen = Set(poll.answers.filter(\.isChosen).map(\.id))
        if chosen.contains(answer) {
            chosen.remove(answer)
        } else {
            if !poll.allowsSeveral { chosen = [] }
            chosen.insert(answer)
        }
        let answers = chosen.sorted()
        perform { try await $0.vote(for: answers, in: poll.id, of: message, in: chat) }
    }
}

extension Poll {
    /// The poll as lines of text. The screen shows them in the message that contains the poll.
    var text: String {
        let lines = answers.map { answer in
            "\(answer.isChosen ? "●" : "○") \(answer.text)  \(answer.votes)"
        }
        return (["[poll] \(question)"] + lines + [remark]).joined(separator: "\n")
    }

    fileprivate var remark: String {
        var words = [voters == 1 ? "1 person has voted" : "\(voters) people have voted"]
        if allowsSeveral { words.append("several answers") }
        if isAnonymous { words.append("anonymous") }
        if isClosed { words.append("closed") }
        return words.joined(separator: ", ")
    }
}
