import Foundation
public import TambourProtocol

/// Actions that are not completed yet.
extension Client {
    /// A queued or refused action.
    public struct Waiting: Hashable, Sendable, Identifiable {
        /// The kind of action.
        public enum Kind: Hashable, Sendable {
            case message(String)
            /// A message to be scheduled.
            case scheduling(String)
            /// A change of a scheduled message.
            case rescheduling
            case comment(String)
            case forward
            case edit(String)
            case deletion
            case readMark
            case reaction
            case vote
            case draft
            case newChat(String)
            case chat
            case contact
            case profile
            case folder
            /// A kind that is unknown to this version.
            case other(String)
        }

        /// The id with which to cancel or retry the action.
        public let id: OutgoingID
        public let kind: Kind
        /// Nil for an action outside of any chat.
        public let chat: ChatID?
        /// The title of the chat; nil for an action outside of any chat.
        public let chatTitle: String?
        /// The time of queueing, in Unix milliseconds of this device.
        public let sinceMs: Int64
        /// The reason why the server refused the action, as text for the user; nil for a queued
        /// action.
        public let failure: String?
    }

    /// Returns the queued actions, and the refused actions that are not discarded yet, oldest
    /// first.
    public func waiting() throws(ClientError) -> [Waiting] {
        try store.read { try Reader($0).waiting() }
    }
}

extension Reader {
    func waiting() throws -> [Client.Waiting] {
        // Steps of sending a photo are omitted; the message itself shows their state.
        let steps = [KeepPhotoTask.kind, UploadPhotoTask.kind]
        let decoder = JSONDecoder()
        return try store.unfinishedTasks().filter { !steps.contains($0.kind) }.map { task in
            let payload = try? decoder.decode(WaitingPayload.self, from: Data(task.payload))
            let chat = payload?.chat.map(ChatID.init)
            let title = try chat.flatMap { try self.chat($0)?.title ?? partnerName(of: $0) }
            return Client.Waiting(
                id: OutgoingID(task.id.rawValue),
                kind: Self.kind(task.kind, payload),
                chat: chat,
                chatTitle: title,
                sinceMs: task.createdAtMs,
                failure: task.refusal
            )
        }
    }

    private func partnerName(of chat: ChatID) -> String? {
        guard !chat.isGroup else { return nil }
        return chat.partner(of: me).map(name)
    }

    private static func kind(_ kind: String, _ payload: WaitingPayload?) -> Client.Waiting.Kind {
        switch kind {
        case SendTask.commentKind: .comment(payload?.text ?? "")
        case EditTask.commentKind: .edit(payload?.text ?? "")
        case DeleteTask.commentKind: .deletion
        case ReactTask.commentKind, CancelReactionTask.commentKind: .reaction
        case SendTask.kind:
            payload?.forwardOf == nil ? .message(payload?.shownText ?? "") : .forward
        case SendPhotoTask.kind: .message(Message.line(ofPhoto: payload?.text ?? ""))
        case ScheduleTask.kind:
            payload?.isUnwanted == true ? .deletion : .scheduling(payload?.text ?? "")
        case EditScheduledTask.kind: .rescheduling
        case CancelScheduledTask.kind: .deletion
        case EditTask.kind: .edit(payload?.text ?? "")
        case DeleteTask.kind: .deletion
        case MarkTask.kind: .readMark
        case ReactTask.kind, CancelReactionTask.kind: .reaction
        case VoteTask.kind: .vote
        case SaveDraftTask.kind, DiscardDraftTask.kind: .draft
        case CreateChatTask.kind: .newChat(payload?.title ?? "")
        case UpdateChatTask.kind, UpdateMembersTask.kind, LeaveChatTask.kind, HideChatTask.kind,
            ConfigureChatTask.kind:
            .chat
        case UpdateContactTask.kind: .contact
        case UpdateProfileTask.kind: .profile
        case ChangeFolderTask.kind, DeleteFolderTask.kind, OrderFoldersTask.kind: .folder
        default: .other(kind)
        }
    }
}

extension TaskRecord {
    /// The reason why the server refused the task, as text for the user; nil if the task was not
    /// refused.
    var refusal: String? { state.isFailed ? lastError ?? "it was refused" : nil }
}

/// The fields of a task's payload that the list of waiting actions shows. They cover all kinds of
/// tasks.
private struct WaitingPayload: Decodable {
    let chat: Int64?
    let text: String?
    let title: String?
    let forwardOf: Int64?
    let isUnwanted: Bool?
    let poll: NewPoll?

    var shownText: String? { poll.map(\.text) ?? text }
}
