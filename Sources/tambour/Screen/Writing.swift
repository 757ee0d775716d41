import TambourClient
import TambourProtocol
import TerminalKit

/// The state of writing that the line does not show: the stored draft and texts put aside.
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

    /// The open chat's draft as this screen last read or wrote it. The write may still be in
    /// progress.
    var stored = Client.Draft.empty
    /// The same draft as shown in the line. An untouched line has exactly this text.
    var shown = Client.Draft.empty
    /// The text that was put aside for the current edit.
    var aside = Aside()
    /// The draft that was put aside for a command; nil while no command has replaced a draft.
    var underCommand: Aside?
    var edits: [ChatID: Edit] = [:]
    /// Drafts whose writes are in progress. A draft read from the store in the meantime is older.
    var unstored: [ChatID: (draft: Client.Draft, generation: Int)] = [:]
    /// Counts changes of `stored` and `shown`. A read that began before a change is ignored.
    var generation = 0
    /// Counts changes made by typing.
    var keys = 0

    /// The pause in typing after which the draft is stored.
    static let pause = Duration.seconds(2)

    /// Returns whether the line is a command. A message that begins with a slash is typed with two
    /// slashes.
    static func isCommand(_ line: String) -> Bool { line.hasPrefix("/") && !line.hasPrefix("//") }

    /// Returns the message text of a line.
    static func message(ofLine line: String) -> String {
        line.hasPrefix("//") ? String(line.dropFirst()) : line
    }

    /// Returns the line for a message text.
    static func line(ofMessage text: String) -> String {
        text.hasPrefix("/") ? "/" + text : text
    }
}
