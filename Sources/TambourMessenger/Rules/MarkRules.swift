/// Limits read marks.
enum MarkRules {
    /// Returns the requested mark, or an earlier time if the client cannot have read that far.
    ///
    /// Some clients send a time by their own clock, and one client sends random times up to the
    /// year 2033. A mark is therefore never later than the server's time or the chat's last
    /// message. If the client names a message, the mark is that message's time. All values are Unix
    /// milliseconds.
    static func readMark(
        asked: Int64?,
        message: Int64?,
        lastMessage: Int64,
        now: Int64
    ) -> Int64 {
        max(0, min(message ?? asked ?? now, now, lastMessage))
    }
}
