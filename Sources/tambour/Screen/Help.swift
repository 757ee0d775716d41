/// What F1 shows: keys, then commands.
enum Help {
    static let lines: [String] = keys + [""] + ["Commands"] + commands

    private static let keys = [
        "Writing",
        "  Enter           send",
        "  Alt-Enter       new line; pasted line breaks never send",
        "  Alt-e           write in $EDITOR",
        "  Tab             take the suggestion: /command, @name, :emoji:",
        "  //text          a message that begins with a slash",
        "  Ctrl-_          undo; the other keys are those of readline",
        "",
        "Going places",
        "  Alt-g           go to a chat by some of its letters",
        "  Alt-n           next chat with something unread",
        "  Alt-Up/Down     the chat above, below",
        "  PgUp PgDn       scroll",
        "  Alt-End         the newest message",
        "  Alt-u           the first unread message",
        "  Alt-o Alt-i     back and forward between places",
        "  Alt-/           search in this chat",
        "  Alt-s           search everywhere",
        "  Alt-a           where you were named or answered",
        "",
        "Chats",
        "  Alt-m Alt-p     mute, pin the open chat, or the chosen one of Alt-g",
        "  Alt-c           contacts",
        "  Alt-q           what waits to be sent",
        "",
        "A message: Esc chooses one, Up and Down another, Esc goes back",
        "  r e f           reply, edit, forward",
        "  d D             delete for all, for me",
        "  + -             react, take the reaction back",
        "  q               go to the message that is quoted",
        "  t               its thread: what it answers, and all that answers",
        "  y               copy",
        "  o 1-9           open its link",
        "  n N             older, newer message that the search found",
        "  u               unread from here",
        "  P               pin for everybody",
        "  R               try again what was not sent",
        "",
        "Everywhere",
        "  Ctrl-L          draw again",
        "  Ctrl-Z          suspend",
        "  Ctrl-Q          leave",
        "",
        "States of a message:  … waits   ✓ sent   ✓✓ read   ✗ refused",
    ]

    private static let commands = ScreenCommand.all.map { command in
        let usage = "/\(command.name) \(command.arguments)"
        let padding = String(repeating: " ", count: max(1, 30 - usage.count))
        return "  \(usage)\(padding)\(command.summary)"
    }
}
