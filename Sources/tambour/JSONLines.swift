import Foundation
import TambourClient
import TambourProtocol

/// A line that `--json` prints. `docs/schema` describes the fields of each kind.
///
/// Ids are strings, because many programs read numbers as doubles, which cannot hold all integers
/// above 2⁵³. Fields without a value are absent.
protocol JSONLine: Encodable {
    associatedtype CodingKeys: CodingKey, CaseIterable
}

extension JSONLine {
    /// The names of all fields.
    static var fields: [String] { CodingKeys.allCases.map(\.stringValue) }

    var json: String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return (try? encoder.encode(self)).map(jsonLine) ?? "{}"
    }
}

extension MessageState {
    /// The word for the state in the JSON.
    fileprivate var word: String {
        switch self {
        case .waiting: "waiting"
        case .sent: "sent"
        case .read: "read"
        case .failed: "failed"
        case .received: "received"
        }
    }
}

/// A message, described in `docs/schema/message.json`.
struct MessageLine: JSONLine {
    let chat: String
    let chatTitle: String
    let id: String?
    let queueId: String?
    let time: Int64
    let sender: String?
    let senderName: String
    let own: Bool
    /// Whether another person has sent the message, and it mentions this account or replies to one
    /// of this account's messages.
    let forMe: Bool
    let text: String
    let replyTo: String?
    let event: String?
    let attachments: [String]
    let reactions: [String: Int]
    let comments: Int?
    let edited: Bool
    let state: String

    enum CodingKeys: CodingKey, CaseIterable {
        case chat, chatTitle, id, queueId, time, sender, senderName, own, forMe, text, replyTo,
            event, attachments, reactions, comments, edited, state
    }

    /// - Parameter title: The title of the chat.
    init(_ row: HistoryRow, in chat: ChatID, _ title: String) {
        self.chat = "\(chat)"
        chatTitle = title
        id = row.message.map { "\($0)" }
        queueId = row.outgoing.map { "\($0)" }
        time = row.timeMs
        sender = row.sender.map { "\($0)" }
        senderName = row.senderName
        own = row.isOwn
        forMe = row.concernsMe
        text = row.text
        replyTo = row.quote.map { "\($0.message)" }
        event = row.event
        attachments = row.attachments
        reactions = Dictionary(row.reactions.map { ($0.emoji, $0.count) }) { $0 + $1 }
        comments = row.commentCount
        edited = row.isEdited
        state = row.state.word
    }
}

/// A chat of the list, described in `docs/schema/chat.json`.
struct ChatLine: JSONLine {
    let id: String
    let title: String
    let type: String
    let partner: String?
    let time: Int64
    let unread: Int
    let pinned: Bool
    let muted: Bool
    let hidden: Bool
    let left: Bool
    let online: Bool
    let notSent: Int
    let draft: String?
    let preview: Preview?

    struct Preview: Encodable {
        let sender: String?
        let own: Bool
        let text: String
        let state: String
    }

    enum CodingKeys: CodingKey, CaseIterable {
        case id, title, type, partner, time, unread, pinned, muted, hidden, left, online, notSent,
            draft, preview
    }

    init(_ chat: ChatSummary) {
        id = "\(chat.id)"
        title = chat.title
        var partner: UserID?
        switch chat.kind {
        case .dialog(let other):
            type = "dialog"
            partner = other
        case .savedMessages: type = "saved"
        case .group: type = "group"
        case .channel: type = "channel"
        }
        self.partner = partner.map { "\($0)" }
        time = chat.lastEventMs
        unread = chat.unread
        pinned = chat.isPinned
        muted = chat.isMuted
        hidden = chat.isHidden
        left = chat.isGone
        online = chat.isOnline
        notSent = chat.failedCount
        draft = chat.draft
        preview = chat.preview.map {
            Preview(sender: $0.sender, own: $0.isOwn, text: $0.text, state: $0.state.word)
        }
    }
}

/// A contact or a member of a group, described in `docs/schema/person.json`.
struct PersonLine: JSONLine {
    let id: String
    let name: String
    let phone: String?
    let about: String?
    let contact: Bool
    let online: Bool
    let seen: Int64?
    let role: String?

    enum CodingKeys: CodingKey, CaseIterable {
        case id, name, phone, about, contact, online, seen, role
    }

    /// - Parameter role: The person's role in the group whose members are listed; nil in a list of
    ///   contacts.
    init(_ person: Person, role: Client.Member.Role? = nil) {
        id = "\(person.id)"
        name = person.name
        phone = person.phone.map { "+\($0)" }
        about = person.about
        contact = person.isContact
        online = person.isOnline
        seen = person.seenMs
        self.role = role?.word
    }
}

extension Client.Member.Role {
    var word: String {
        switch self {
        case .owner: "owner"
        case .administrator: "administrator"
        case .member: "member"
        }
    }
}

/// A device that is signed in, described in `docs/schema/session.json`.
struct SessionLine: JSONLine {
    let id: String?
    let client: String
    let device: String
    let address: String
    let seen: Int64
    let current: Bool

    enum CodingKeys: CodingKey, CaseIterable {
        case id, client, device, address, seen, current
    }

    init(_ session: Client.SignedInDevice) {
        id = session.id.map { "\($0)" }
        client = session.client
        device = session.device
        address = session.address
        seen = session.seenMs
        current = session.isCurrent
    }
}

/// A queued or refused action, described in `docs/schema/action.json`.
struct ActionLine: JSONLine {
    let id: String
    let kind: String
    let text: String?
    let chat: String?
    let chatTitle: String?
    let time: Int64
    let state: String
    let reason: String?

    enum CodingKeys: CodingKey, CaseIterable {
        case id, kind, text, chat, chatTitle, time, state, reason
    }

    init(_ waiting: Client.Waiting) {
        id = "\(waiting.id)"
        var text: String?
        switch waiting.kind {
        case .message(let words):
            kind = "message"
            text = words
        case .scheduling(let words):
            kind = "scheduling"
            text = words
        case .rescheduling: kind = "rescheduling"
        case .comment(let words):
            kind = "comment"
            text = words
        case .forward: kind = "forward"
        case .edit(let words):
            kind = "edit"
            text = words
        case .deletion: kind = "deletion"
        case .readMark: kind = "read"
        case .reaction: kind = "reaction"
        case .vote: kind = "vote"
        case .draft: kind = "draft"
        case .newChat(let title):
            kind = "new-chat"
            text = title
        case .chat: kind = "chat"
        case .contact: kind = "contact"
        case .profile: kind = "profile"
        case .folder: kind = "folder"
        case .other(let name): kind = name
        }
        self.text = text
        chat = waiting.chat.map { "\($0)" }
        chatTitle = waiting.chatTitle
        time = waiting.sinceMs
        state = waiting.failure == nil ? "waiting" : "refused"
        reason = waiting.failure
    }
}
