import TambourClient
import TambourProtocol
import TerminalKit

/// The state of writing that the input line does not show: the stored draft, and texts that were
/// put aside.
struct Writing {
    /// An unfinished edit of a message, in a chat that is no longer open.
    struct Edit {
        let intent: ScreenState.Intent
        let line: LineEditor.Draft
        let aside: Aside
    }

    /// A new message that is put aside while another message is edited.
    struct Aside {
        var line = LineEditor.Draft.empty
        var intent = ScreenState.Intent.new
    }

    /// The draft of the open chat that this screen has last read from the store or written to it.
    /// The write may still be in progress.
    var stored = Client.Draft.empty
    /// The same draft in the form in which the line shows it. If the user has not changed the line,
    /// the line equals this draft.
    var shown = Client.Draft.empty
    /// The text that was put aside for the current edit.
    var aside = Aside()
    /// The draft that was put aside for a command; nil while no command has replaced a draft.
    var underCommand: Aside?
    var edits: [ChatID: Edit] = [:]
    /// The drafts that are being written to the store. A draft that is read from the store in the
    /// meantime is outdated.
    var unstored: [ChatID: (draft: Client.Draft, generation: Int)] = [:]
    /// The number of changes of `stored` and `shown`. It identifies reads that began before a
    /// change. Their results are ignored.
    var generation = 0
    /// The number of changes that the user has made by typing.
    var keys = 0

    /// The pause in typing after which the draft is stored.
    static let pause = Duration.seconds(2)

    /// Returns whether the line is a command. To write a message that begins with a slash, the user
    /// types two slashes.
    static func isCommand(_ line: String) -> Bool { line.hasPrefix("/") && !line.hasPrefix("//") }

    /// Returns the text of the message that a line stands for.
    static func message(ofLine line: String) -> String {
        line.hasPrefix("//") ? String(line.dropFirst()) : line
    }

    /// Returns the line that stands for the text of a message.
    static func line(ofMessage text: String) -> String {
        text.hasPrefix("/") ? "/" + text : text
    }
}
