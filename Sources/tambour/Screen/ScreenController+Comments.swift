import TambourClient
import TambourProtocol

/// Comments on posts of channels. The screen shows them like a chat. The action `back` returns to
/// the channel.
extension ScreenController {
    /// The actions on messages that also apply to comments.
    static let actionsOnComments: Set<KeyAction> = [.reply, .react, .unreact]
    /// The chat commands that also work in comments.
    static let commandsInComments: Set<String> = ["comments", "date", "links", "open", "thread"]

    /// - Parameter row: The row of the post; nil when the chat shows no message.
    func openComments(on row: HistoryRow?) {
        guard state.comments == nil else {
            let hint = state.keys.hint(.thread, "shows the answers to one", before: "; ")
            state.notice = ("these are the comments\(hint)", true)
            return
        }
        guard let open = state.open, let row, row.event == nil else {
            state.notice = ("there is no post here", true)
            return
        }
        guard let post = row.message else {
            state.notice = ("it is not sent yet", true)
            return
        }
        fetch {
            try await $0.comments(on: post, of: open)
        } then: { screen, comments in
            guard screen.state.open == open else { return }
            screen.open(comments.id, name: comments.title)
            screen.state.notice =
                comments.areAllowed
                ? (screen.state.keys.hint(.back, "goes back to the channel"), false)
                : ("comments are closed in this channel, so they can only be read", false)
        }
    }

    /// Leaves the comments if their post was deleted.
    func checkPost() {
        guard let comments = state.comments else { return }
        do {
            if try client.comments(comments.id) != nil { return }
        } catch {
            return
        }
        open(comments.channel)
        places.forget(comments.id)
        state.notice = ("the post was deleted, and its comments with it", true)
    }
}

extension Client.Comments {
    /// The title of the pane.
    var title: String { postText.isEmpty ? "Comments" : "Comments on “\(postText)”" }
}
