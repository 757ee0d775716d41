/// How a client behaves.
public struct ClientOptions: Sendable {
    /// What the server lists this device as.
    public var appName = "Tambour"
    public var appVersion = "0.1"
    public var deviceName = ""
    /// Language of refusals, as `ru` or `en`.
    public var locale = ""
    /// How many chats the first answer brings at most; the others follow.
    public var chatsAtOnce = 40
    /// How many messages are asked for at once.
    public var historyPage = 50
    /// Whether `ClientEvent.frame` tells of every packet.
    public var tapsFrames = false
    package var link = LinkPolicy()
    /// How long an answer may take, milliseconds.
    package var requestTimeoutMs: Int64 = 30_000
    /// Carries photos to where messages can name them.
    package var photoUpload: any PhotoUpload = StandInUpload()

    public init() {}
}
