import TambourClient
import TambourProtocol
import TerminalKit

/// The text being written, besides what the line shows: what is stored and what is put aside.
struct Writing {
    /// An unfinished edit of a message, in a chat that the person has left.
    struct Edit {
        let intent: ScreenState.Intent
        let line: LineEditor.Draft
        let aside: Aside
    }

    /// A new message put aside while another one is edited.
    struct Aside {
        var line = LineEditor.Draft.empty
        var intent = ScreenState.Intent.new
    }

    /// The open chat's draft as the store has it or will have it, as far as this screen knows.
    var stored = Client.Draft.empty
    /// The same draft as the line shows it: an untouched line has exactly this text.
    var shown = Client.Draft.empty
    /// What was written before the current edit.
    var aside = Aside()
    var edits: [ChatID: Edit] = [:]
    /// Drafts on their way to the store; drafts read from there are older.
    var unstored: [ChatID: (draft: Client.Draft, generation: Int)] = [:]
    /// Counts changes of `stored` and `shown`: results of reads begun before a change are ignored.
    var generation = 0
    /// Counts changes by typing.
    var keys = 0

    /// The pause in typing after which the draft is stored.
    static let pause = Duration.seconds(2)

    /// Returns whether the line is a command; a message that begins with a slash is typed with two.
    static func isCommand(_ line: String) -> Bool { line.hasPrefix("/") && !line.hasPrefix("//") }

    /// Returns the message that a line stands for.
    static func message(ofLine line: String) -> String {
        line.hasPrefix("//") ? String(line.dropFirst()) : line
    }

    /// Returns the line that stands for a message.
    static func line(ofMessage text: String) -> String {
        text.hasPrefix("/") ? "/" + text : text
    }
}
