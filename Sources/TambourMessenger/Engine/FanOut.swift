import TambourEvents
import TambourProtocol
import TambourStore

/// Estimates the work of the doors to deliver pushes, in bytes. The cost of a push for each
/// receiver is the size of the payload plus a fixed part.
enum FanOut {
    private static let bytesPerPush = 512
    /// The smallest number of receivers to count for a push, because one user may have many
    /// connections.
    private static let fewestReceivers = 16
    /// From this estimate on, the subject of a command waits for the doors. The value corresponds
    /// to a short push to about a hundred receivers, or to a push of 4 KB to `fewestReceivers`.
    static let most = 65_536

    static func bytes(of events: ArraySlice<Event>) -> Int {
        events.reduce(0) { $0 + bytes(of: $1) }
    }

    private static func bytes(of event: Event) -> Int {
        switch event {
        case .push(let push, let users, _):
            // Only a few of a channel's readers receive pushes about comments.
            (push.comments == nil ? max(users.count, fewestReceivers) : fewestReceivers)
                * (bytesPerPush + push.sizeEstimate)
        case .settingsChanged: most
        case .counters, .sessionsClosed, .unfollowed, .delayed, .code, .codeWithheld: 0
        }
    }
}

extension Push {
    /// The approximate size of the payload in bytes.
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
