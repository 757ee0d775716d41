/// The bounds of a read mark.
enum MarkRules {
    /// Returns the requested mark, lowered to what the client can have read.
    ///
    /// Some clients send their clock, and one sends random numbers up to the year 2033. So a mark
    /// never passes the server's now or the chat's last message. If the client names a message, the
    /// mark is that message's time. All values are Unix milliseconds.
    static func readMark(
        asked: Int64?,
        message: Int64?,
        lastMessage: Int64,
        now: Int64
    ) -> Int64 {
        max(0, min(message ?? asked ?? now, now, lastMessage))
    }
}
