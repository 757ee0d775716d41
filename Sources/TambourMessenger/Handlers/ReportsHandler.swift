import TambourProtocol
import TambourStore

/// Family `reports`: reports to the administrators.
/// Wire: protocol-spec/opcodes/reports.yaml
struct ReportsHandler: Sendable {
    let limits: Limits

    /// Answers `CHAT_COMPLAIN` (117): reports chats of which the caller is a member.
    ///
    /// - Throws: `chat.not.found`, also for non-members. Throws `proto.payload` if the request
    ///   names no chat, if a text is too long, or for too many open reports.
    /// - Note: A command.
    func chatComplain(
        _ request: ChatComplainRequest,
        from caller: Caller,
        in tx: WriteTransaction
    ) throws -> ChatComplainReply {
        let ids = request.ids + (request.chatID.map { [$0] } ?? [])
        guard !ids.isEmpty else { throw RequestError.protoPayload("/ids: missing") }
        let subjects = try ids.map {
            Report.Subject.chat(try tx.knownChat($0, to: caller.userID).key)
        }
        try file(subjects, request.reason, request.reasonID, by: caller, in: tx)
        return ChatComplainReply()
    }

    /// Answers `COMPLAIN` (161): reports messages of a chat, comments on a post, users, or chats.
    ///
    /// - Throws: `chat.not.found`, `user.not.found`, `not.found` for a post or message that the
    ///   caller does not see. Throws `proto.payload` if a text is too long, or for too many open
    ///   reports.
    /// - Note: A command.
    func complain(
        _ request: ComplainRequest,
        from caller: Caller,
        in tx: WriteTransaction
    ) throws -> ComplainReply {
        var subjects: [Report.Subject] = []
        if let id = request.parentID {
            let chat = try tx.known(id, request.postID, to: caller.userID)
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
                    subjects.append(.chat(try tx.knownChat(ChatID(id), to: caller.userID).key))
                } else {
                    guard try tx.isListed(UserID(id)) else { throw RequestError.userNotFound }
                    subjects.append(.user(UserID(id)))
                }
            }
        }
        try file(subjects, request.reason, request.reasonID, by: caller, in: tx)
        return ComplainReply()
    }

    private func file(
        _ subjects: [Report.Subject],
        _ reason: AnyValue?,
        _ reasonID: Int64?,
        by caller: Caller,
        in tx: WriteTransaction
    ) throws {
        let words = reason?.text ?? .empty
        let subjects = Set(subjects)
        let new = try subjects.count { try !tx.reader.hasReported($0, by: caller.userID) }
        if new > 0 {
            let count = try tx.reader.reportCount(of: caller.userID)
            guard count + new <= limits.maxReports else {
                throw RequestError.protoPayload("/ids: limit \(limits.maxReports) open reports")
            }
        }
        for subject in subjects {
            try tx.report(
                subject,
                by: caller.userID,
                reason: reasonID ?? reason?.int ?? 0,
                words: words
            )
        }
    }

    /// Answers `COMPLAIN_REASONS_GET` (162): returns the same reasons for every kind of subject.
    ///
    /// - Note: A query.
    func complainReasonsGet(
        _ request: ComplainReasonsGetRequest,
        from requester: Requester,
        in _: ReadTransaction
    ) throws -> Answer {
        let language = requester.language ?? .en
        // The version number is different for each language.
        let version = language == .en ? ReportReason.version : ReportReason.version + 1
        guard request.complainSync != version else {
            return .reply(ComplainReasonsGetReply(complainSync: version))
        }
        let reasons = ReportReason.allCases.map {
            ComplainReason(reasonID: $0.rawValue, reasonTitle: Text($0.title(in: language)))
        }
        return .reply(
            ComplainReasonsGetReply(
                complains: ReportReason.kinds.map { ComplainType(typeID: $0, reasons: reasons) },
                complainSync: version
            )
        )
    }
}
