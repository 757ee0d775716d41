/// Options of a client.
public struct ClientOptions: Sendable {
    /// The name of this device in the server's list of sessions, if `deviceName` is empty.
    public var appName = "Tambour"
    public var appVersion = "0.1"
    public var deviceName = ""
    /// The language of the server's error texts, such as `ru` or `en`.
    public var locale = ""
    /// The maximum number of chats in the reply to LOGIN. Later replies contain the remaining
    /// chats.
    public var chatsAtOnce = 40
    /// The number of messages to request at once.
    public var historyPage = 50
    /// Whether the client publishes a `ClientEvent.frame` for every packet.
    public var tapsFrames = false
    package var link = LinkPolicy()
    /// The time limit for an answer, in milliseconds.
    package var requestTimeoutMs: Int64 = 30_000
    /// Uploads photos, so that messages can refer to them.
    package var photoUpload: any PhotoUpload = StandInUpload()

    public init() {}
}
