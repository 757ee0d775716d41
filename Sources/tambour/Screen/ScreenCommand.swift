/// A command of the input line.
struct ScreenCommand: Equatable {
    let name: String
    /// The arguments in the notation of the help.
    let arguments: String
    let summary: String

    static let all: [ScreenCommand] = [
        .init("about", "TEXT", "says something of you"),
        .init("add", "PHONE", "adds somebody to the group"),
        .init("admin", "PHONE", "makes an administrator; again: no longer"),
        .init("blocked", "", "whom you have blocked"),
        .init("contacts", "", "add, rename, remove, block people"),
        .init("date", "2026-11-23", "goes to a day; 23.11, yesterday, monday too"),
        .init("debug", "", "packets with their round-trip times"),
        .init("describe", "TEXT", "says something of the group"),
        .init("find", "PHONE", "begins a chat"),
        .init("help", "", "all keys and commands"),
        .init("hide", "", "puts the chat away until it has news"),
        .init("leave", "", "leaves the group"),
        .init("links", "", "the links of the chat, to open or copy"),
        .init("login", "", "signs in again after being signed out"),
        .init("members", "", "who is in the group; add, remove, roles"),
        .init("mentions", "", "where you were named or answered"),
        .init("mute", "", "no alerts of the chat; again: alerts"),
        .init("name", "FIRST LAST", "changes your name"),
        .init("new", "TITLE, PHONE, PHONE", "makes a group"),
        .init("new-channel", "TITLE, PHONE", "makes a channel"),
        .init("notify", "bell|osc9|osc777|off", "how you are told of messages"),
        .init("open", "NUMBER", "opens a link of the newest message"),
        .init("pin", "", "keeps the chat at the top; again: no longer"),
        .init("profile", "", "what others see of you"),
        .init("queue", "", "what waits to be sent: cancel, retry"),
        .init("quit", "", "leaves; what waits is sent next time"),
        .init("remove", "PHONE", "takes somebody out of the group"),
        .init("search", "WORDS", "looks in this chat; Alt-s everywhere"),
        .init("sessions", "", "where you are signed in"),
        .init("theme", "NAME", "dark, light, sixteen, mono or none"),
        .init("thread", "", "what the message answers, and all answers"),
        .init("title", "TEXT", "renames the group"),
        .init("unread", "", "goes to the first unread message"),
    ]

    init(_ name: String, _ arguments: String, _ summary: String) {
        self.name = name
        self.arguments = arguments
        self.summary = summary
    }

    /// Returns the command whose arguments are being typed.
    static func usage(for line: String) -> ScreenCommand? {
        guard line.hasPrefix("/"), let space = line.firstIndex(of: " ") else { return nil }
        let name = line[line.index(after: line.startIndex)..<space]
        return all.first { $0.name == name }
    }
}
