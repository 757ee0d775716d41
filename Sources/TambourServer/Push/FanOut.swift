import TambourProtocol
import TambourStore

/// About how many bytes lanes handle to tell others of something: what the sockets get, and for each push
/// what it costs to have one.
enum FanOut {
    private static let bytesPerPush = 512
    /// A user with many connections is one receiver here.
    private static let fewestReceivers = 16
    /// Some hundred short pushes, one of a few thousand bytes to all own devices.
    static let most = 65_536

    static func bytes(of events: ArraySlice<Event>) -> Int {
        events.reduce(0) { $0 + bytes(of: $1) }
    }

    private static func bytes(of event: Event) -> Int {
        switch event {
        case .push(let push, let users, _):
            max(users.count, fewestReceivers) * (bytesPerPush + push.sizeEstimate)
        case .settingsChanged: most
        case .sessionsClosed, .unfollowed, .delayed, .code: 0
        }
    }
}

extension Push {
    /// About how many bytes its payload takes.
    fileprivate var sizeEstimate: Int {
        switch self {
        case .notifMessage(let push): push.message.wireSizeEstimate
        case .notifChat(let push): push.chat.wireSizeEstimate
        case .notifDraft, .notifMsgDelayed, .notifFolders, .notifConfig, .notifObj: 4_096
        case .notifMsgDelete(let push): push.messageIDs.count * 9
        case .notifTyping, .notifMark, .notifContact, .notifPresence, .notifMsgDeleteRange,
            .notifDraftDiscard, .notifMsgReactionsChanged, .notifMsgYouReacted, .notifProfile:
            256
        }
    }
}
