import TambourProtocol
import TambourStore

/// Family `reports`: what people want an administrator to look at.
/// Wire: protocol-spec/opcodes/reports.yaml
struct ReportsHandler: Sendable {
    let limits: Limits

    /// Answers `CHAT_COMPLAIN` (117): reports chats of the caller.
    ///
    /// - Throws: `chat.not.found` (also when not a member), `proto.payload` without a chat.
    /// - Note: A command.
    func chatComplain(
        _ request: ChatComplainRequest,
        from caller: Caller,
        in tx: WriteTransaction
    ) throws {
        let ids = request.ids + (request.chatID.map { [$0] } ?? [])
        guard !ids.isEmpty else { throw RequestError.protoPayload("/ids: missing") }
        let subjects = try ids.map { try chat($0, of: caller, in: tx) }
        try file(subjects, request.reason, request.reasonID, by: caller, in: tx)
    }

    /// Answers `COMPLAIN` (161): reports messages of a chat, users, or chats.
    ///
    /// - Throws: `chat.not.found`, `user.not.found`, `not.found` for a message the caller does not see.
    /// - Note: A command.
    func complain(
        _ request: ComplainRequest,
        from caller: Caller,
        in tx: WriteTransaction
    ) throws {
        var subjects: [Report.Subject] = []
        if let id = request.parentID {
            guard let chat = try tx.chat(id, visibleTo: caller.userID) else {
                throw RequestError.chatNotFound
            }
            for id in request.ids {
                guard
                    let record = try tx.message(
                        MessageID(id),
                        in: chat,
                        visibleTo: caller.userID
                    )
                else { throw RequestError.notFound }
                subjects.append(.message(record.id, in: chat.key))
            }
        } else {
            for id in request.ids {
                if id < 0 {
                    subjects.append(try chat(ChatID(id), of: caller, in: tx))
                } else {
                    guard try tx.isListed(UserID(id)) else { throw RequestError.userNotFound }
                    subjects.append(.user(UserID(id)))
                }
            }
        }
        try file(subjects, request.reason, request.reasonID, by: caller, in: tx)
    }

    private func chat(
        _ id: ChatID,
        of caller: Caller,
        in tx: WriteTransaction
    ) throws -> Report.Subject {
        guard let chat = try tx.chat(id, visibleTo: caller.userID) else {
            throw RequestError.chatNotFound
        }
        return .chat(chat.key)
    }

    private func file(
        _ subjects: [Report.Subject],
        _ reason: AnyValue?,
        _ reasonID: Int64?,
        by caller: Caller,
        in tx: WriteTransaction
    ) throws {
        let number = reason.flatMap { try? $0.int(limits: limits) }
        let words = reason.flatMap { try? $0.text(limits: limits) }
        for subject in subjects {
            try tx.report(
                subject,
                by: caller.userID,
                reason: reasonID ?? number ?? 0,
                words: words ?? .empty
            )
        }
    }

    /// Answers `COMPLAIN_REASONS_GET` (162): none is prescribed.
    ///
    /// - Note: A query.
    func complainReasonsGet(_ request: ComplainReasonsGetRequest) -> ComplainReasonsGetReply {
        ComplainReasonsGetReply(complainSync: request.complainSync)
    }
}

extension AnyValue {
    fileprivate func int(limits: Limits) throws(PayloadError) -> Int64 {
        try MessagePackReader.read(bytes, limits: limits) {
            (reader: inout MessagePackReader) throws(PayloadError) in try reader.readInt()
        }
    }

    fileprivate func text(limits: Limits) throws(PayloadError) -> Text {
        try MessagePackReader.read(bytes, limits: limits) {
            (reader: inout MessagePackReader) throws(PayloadError) in try reader.readText()
        }
    }
}
