/// A command that the user types in the input line.
struct ScreenCommand: Equatable {
    let name: String
    /// The arguments as the help describes them.
    let arguments: String
    let summary: String

    static let all: [ScreenCommand] = [
        .init("about", "TEXT", "changes the text about you in your profile"),
        .init("add", "PHONE|NAME", "adds a person to the group"),
        .init("admin", "PHONE|NAME", "makes an administrator; repeat to undo"),
        .init("approve", "LINK", "signs in the device that shows this QR code"),
        .init("blocked", "", "lists the people you have blocked"),
        .init("comments", "", "shows the comments on the post"),
        .init("contacts", "", "lists contacts: add, rename, remove, block"),
        .init("date", "2026-11-23", "goes to a day; yesterday and 23.11 work too"),
        .init("debug", "", "shows packets with their round-trip times"),
        .init("describe", "TEXT", "changes the description of the group"),
        .init("find", "PHONE|NAME", "opens the chat with a person"),
        .init("folder", "[NAME]", "shows a folder in the list, or chooses one"),
        .init("folder-add", "[NAME]", "puts the open chat into a folder"),
        .init("folder-delete", "[NAME]", "deletes a folder; its chats stay"),
        .init("folder-new", "NAME", "makes a folder"),
        .init("folder-remove", "[NAME]", "takes the open chat out of a folder"),
        .init("folder-rename", "NAME", "renames the folder that the list shows"),
        .init("help", "", "shows all keys and commands"),
        .init("hide", "", "hides the chat until a new message arrives"),
        .init("invite", "[new]", "shows and copies the link; new replaces it"),
        .init("join", "LINK", "joins a group or channel by link or name"),
        .init("later", "[WHEN TEXT]", "sends at 18:30, tomorrow 9:00, 2h; or lists"),
        .init("leave", "", "leaves the group"),
        .init("links", "", "lists the links of the chat"),
        .init("login", "", "signs in again after you were signed out"),
        .init("members", "", "lists the members: add, remove, roles"),
        .init("mentions", "", "lists mentions of you and replies to you"),
        .init("mute", "", "mutes the chat; repeat to undo"),
        .init("name", "FIRST LAST", "changes your name"),
        .init("new", "TITLE, PHONE, PHONE", "creates a group"),
        .init("new-channel", "TITLE, PHONE", "creates a channel"),
        .init("notify", "bell|osc9|osc777|off", "chooses how new messages alert you"),
        .init("open", "NUMBER", "opens a link of the newest message"),
        .init("options", "", "changes what members of the group may do"),
        .init("password", "", "sets, changes or removes the password"),
        .init("phone", "PHONE", "moves the account to another phone number"),
        .init("pin", "", "keeps the chat at the top; repeat to undo"),
        .init("pinned", "", "goes to the pinned message of the chat"),
        .init("poll", "QUESTION | ANSWER | ANSWER", "sends a poll; v votes in one"),
        .init("profile", "", "shows your profile"),
        .init("public", "WORDS", "finds people, public groups and channels"),
        .init("queue", "", "lists what waits to be sent: cancel, retry"),
        .init("quit", "", "leaves; waiting messages are sent next time"),
        .init("remove", "PHONE|NAME", "removes a person from the group"),
        .init("saved", "", "opens your saved messages"),
        .init("search", "WORDS", "searches this chat; Alt-s searches all"),
        .init("sessions", "", "lists the devices that are signed in"),
        .init("theme", "NAME", "dark, light, sixteen, mono or none"),
        .init("thread", "", "shows the thread of the message"),
        .init("title", "TEXT", "renames the group"),
        .init("unpin", "", "unpins the chat's pinned message"),
        .init("unread", "", "goes to the first unread message"),
    ]

    init(_ name: String, _ arguments: String, _ summary: String) {
        self.name = name
        self.arguments = arguments
        self.summary = summary
    }

    /// Returns the command whose arguments the user is typing, or nil.
    static func usage(for line: String) -> ScreenCommand? {
        guard line.hasPrefix("/"), let space = line.firstIndex(of: " ") else { return nil }
        let name = line[line.index(after: line.startIndex)..<space]
        return all.first { $0.name == name }
    }
}
