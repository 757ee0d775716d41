import TambourClient
import TambourProtocol

/// What is being written, beside what the line shows: what of it is kept, and what is put aside.
struct Writing {
    /// A change of a message that somebody has begun, in a chat they have left.
    struct Edit {
        let intent: ScreenState.Intent
        let line: LineEditor.Draft
        let aside: Aside
    }

    /// A new message that gave its place to the change of another one.
    struct Aside {
        var line = LineEditor.Draft.empty
        var intent = ScreenState.Intent.new
    }

    /// The draft of the open chat as the store has it or will have it, as far as this screen knows.
    var stored = Client.Draft.empty
    /// The same as the line shows it: an untouched line says just this.
    var shown = Client.Draft.empty
    /// What was written before the message that is changed now.
    var aside = Aside()
    var edits: [ChatID: Edit] = [:]
    /// Drafts on their way to the store; what is read from there is older.
    var unstored: [ChatID: (draft: Client.Draft, generation: Int)] = [:]
    /// Counts what was stored and shown: what was read before is of no use any more.
    var generation = 0
    /// Counts what was typed.
    var keys = 0

    /// How long nothing may be typed before it is stored.
    static let pause = Duration.seconds(2)

    /// Commands are no messages; two slashes begin a message with one.
    static func isCommand(_ line: String) -> Bool { line.hasPrefix("/") && !line.hasPrefix("//") }

    /// The message that a line stands for.
    static func message(ofLine line: String) -> String {
        line.hasPrefix("//") ? String(line.dropFirst()) : line
    }

    /// The line that stands for a message.
    static func line(ofMessage text: String) -> String {
        text.hasPrefix("/") ? "/" + text : text
    }
}
