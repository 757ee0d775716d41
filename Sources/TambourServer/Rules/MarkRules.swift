/// Where a read mark may stand.
enum MarkRules {
    /// The mark a client asked for, brought down to what it can have read.
    ///
    /// Some clients send their clock, one sends random numbers up to the year 2033: a mark never
    /// passes the server's now or the chat's last message, and is that of the message the client names.
    /// All values are Unix milliseconds.
    static func readMark(
        asked: Int64?,
        message: Int64?,
        lastMessage: Int64,
        now: Int64
    ) -> Int64 {
        max(0, min(message ?? asked ?? now, now, lastMessage))
    }
}
