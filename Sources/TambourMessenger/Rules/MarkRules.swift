/// The bounds of a read mark.
enum MarkRules {
    /// Returns the requested mark, lowered to the last message that the client can have read.
    ///
    /// Some clients send their own clock, and one client sends random times up to the year 2033. A
    /// mark therefore never exceeds the server's time or the chat's last message. If the client
    /// names a message, the mark is that message's time. All values are Unix milliseconds.
    static func readMark(
        asked: Int64?,
        message: Int64?,
        lastMessage: Int64,
        now: Int64
    ) -> Int64 {
        max(0, min(message ?? asked ?? now, now, lastMessage))
    }
}
