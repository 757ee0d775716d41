import Foundation
import TambourClient
import TambourProtocol
import TerminalKit

/// Scheduled messages: writes them, and lists the ones of the open chat.
extension ScreenController {
    /// Schedules a message.
    ///
    /// - Parameter line: The time and the text as the user has typed them. If empty, shows the list
    ///   of scheduled messages.
    func schedule(_ line: String, in chat: ChatID) {
        guard !line.isEmpty else { return openScheduled(in: chat) }
        guard !state.isOpenGone else {
            state.notice = ("you are no longer in \(state.openTitle), so nothing can be sent", true)
            return
        }
        let (time, text): (Date, String)
        do {
            (time, text) = try LaterWords.split(line, now: Date(), calendar: .current)
        } catch {
            state.notice = ("\(error)", true)
            return
        }
        let written = Markdown(text.trimmingNewlines)
        guard !written.text.allSatisfy(\.isWhitespace) else {
            return usage("/later tomorrow 9:00 Good morning")
        }
        guard Client.fitsMessage(written.text) else {
            let most = Client.maxMessageUnits
            state.notice = ("one message has room for \(most) characters", true)
            return
        }
        let spans = written.spans + Self.mentions(in: written.text, of: namesHere)
        let intent = state.intent
        var answered: MessageID?
        if case .reply(let message, _) = intent {
            answered = message
            state.intent = .new
            noteWriting()
        }
        let isOnline = state.connection == .online
        perform { [weak self, answered] client in
            do {
                try await client.send(
                    written.text,
                    to: chat,
                    atMs: time.unixMs,
                    replyingTo: answered,
                    formatted: spans
                )
                let condition = isOnline ? "" : ", if this device is online before"
                self?.say("will be sent at \(clock(time.unixMs))\(condition); /later lists it")
            } catch {
                self?.later { $0.restore("/later \(line)", intent, in: chat) }
                throw error
            }
        }
    }

    /// Puts a line that could not be stored back into the input line, unless the user has written
    /// something else.
    private func restore(_ line: String, _ intent: ScreenState.Intent, in chat: ChatID) {
        guard state.open == chat, state.input.isEmpty, state.intent == .new else { return }
        state.input.setText(line)
        state.intent = intent
    }

    // MARK: - The list

    func openScheduled(in chat: ChatID) {
        show(
            Panel(
                kind: .scheduled(chat),
                title: "Scheduled in \(state.openTitle)",
                keys: "e text  t time  n send now  x cancel"
            )
        )
        fillScheduled()
        loadHistory()
    }

    /// Fills the panel with the current list, which may change while it is open.
    func fillScheduled() {
        guard case .scheduled(let chat)? = state.panel?.kind, chat == state.open else { return }
        let remark = state.scheduled.isEmpty ? "nothing is scheduled: /later 18:30 TEXT" : ""
        fill(.scheduled(chat), with: state.scheduled.map(\.item), remark: remark)
    }

    func actOnScheduled(_ letter: Unicode.Scalar, _ chat: ChatID, _ panel: Panel) -> Bool {
        guard case .scheduled(let id)? = panel.selectedItem?.target,
            let message = state.scheduled.first(where: { $0.id == id })
        else { return false }
        switch letter {
        case "e": editScheduled(message)
        case "t": askForTime(of: message, in: chat)
        case "n":
            perform { try await $0.sendScheduledNow(id, in: chat) }
            let isOnline = state.connection == .online
            state.notice = (isOnline ? "sending it now" : "it is sent once you are online", false)
        case "r":
            guard case .refused = message.state else {
                state.notice = ("only a refused message can be tried again", true)
                return true
            }
            perform { try await $0.changeScheduled(id, in: chat) }
        case "x":
            confirm("Cancel this message, so that nobody receives it?") { screen in
                screen.perform { try await $0.cancelScheduled(id, in: chat) }
                screen.state.panel?.remove(.scheduled(id))
            }
        default: return false
        }
        return true
    }

    /// Loads the text of a scheduled message into the input line.
    func editScheduled(_ message: ScheduledMessage) {
        closePanel()
        beginEdit(
            .editScheduled(message.id),
            text: Markdown.source(of: message.text, message.spans)
        )
    }

    private func askForTime(of message: ScheduledMessage, in chat: ChatID, _ text: String? = nil) {
        let old = message.timeMs.map { clock($0) } ?? ""
        ask("Send it at, for example tomorrow 9:00:", text ?? old) { screen, line in
            let time: Date
            do {
                time = try LaterWords.time(of: line, now: Date(), calendar: .current)
            } catch {
                screen.askForTime(of: message, in: chat, line)
                screen.state.notice = ("\(error)", true)
                return
            }
            screen.perform {
                try await $0.changeScheduled(message.id, in: chat, atMs: time.unixMs)
            }
        }
    }

    /// Replaces the text of a scheduled message, and ends the edit.
    ///
    /// - Parameter source: The text as the user has typed it. It is restored if the change cannot
    ///   be stored.
    func changeScheduled(
        _ id: ScheduledMessage.ID,
        in chat: ChatID,
        to text: String,
        _ spans: [MessageSpan],
        source: String
    ) {
        endEdit()
        perform { [weak self] client in
            do {
                try await client.changeScheduled(id, in: chat, text: text, formatted: spans)
                self?.say("changed; /later lists it")
            } catch {
                // The change fails if, for example, the message has been sent in the meantime.
                self?.later { $0.restore(Writing.line(ofMessage: source), .new, in: chat) }
                throw error
            }
        }
    }

    /// Returns the notice about a scheduled message that was sent later than planned.
    static func lateWords(plannedMs: Int64, title: String) -> String {
        "the message to \(title) for \(clock(plannedMs)) was sent only now: this device was offline"
    }
}

extension ScheduledMessage {
    /// The message as a panel item.
    fileprivate var item: Panel.Item {
        var words: String
        var isError = false
        switch state {
        case .scheduled: words = isChanging ? "a change waits for the server" : "scheduled"
        case .waiting: words = "waits for the server, which sends it at once after its time"
        case .refused(let reason):
            words = "refused: \(reason); r tries again"
            isError = true
        case .failed:
            words = "it could not be sent at its time; t or n tries again"
            isError = true
        }
        if replyTo != nil { words += ", a reply" }
        return Panel.Item(
            title: ([text] + attachments).filter { !$0.isEmpty }.joined(separator: " ").oneLine,
            detail: words,
            right: timeMs.map { clock($0) } ?? "now",
            target: .scheduled(id),
            isError: isError
        )
    }
}

extension [ScheduledMessage] {
    /// A short summary of the scheduled messages for the title of the chat; empty if there are
    /// none.
    var words: String {
        let failed = count { message in
            switch message.state {
            case .failed, .refused: true
            case .scheduled, .waiting: false
            }
        }
        var parts: [String] = []
        if count > failed { parts.append("\(count - failed) scheduled") }
        if failed > 0 { parts.append("\(failed) not sent: /later") }
        return parts.joined(separator: ", ")
    }
}
