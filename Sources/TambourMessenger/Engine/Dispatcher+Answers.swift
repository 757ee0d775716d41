import TambourProtocol
import TambourStore

/// Converts handler results to answers. There is one overload for each type that handlers return.
/// The generated switch calls every overload with `try`, so all overloads are marked `throws`.
extension Dispatcher {
    // MARK: - Commands

    func answer(_ answer: Answer, to call: CommandCall) throws -> Answer { answer }

    func answer(_ reply: some WirePayload, to call: CommandCall) throws -> Answer {
        .reply(reply)
    }

    func answer(
        _ progress: Progress<WriteTransaction, some WirePayload>,
        to call: CommandCall
    ) throws -> Answer {
        .stepped(progress) { [requester = call.requester] in try requireOpen(requester, in: $0) }
    }

    /// Converts a refusal that the handler returns. The handler's writes are kept. If a handler
    /// throws a refusal, its writes are rolled back.
    func answer(
        _ result: Result<some WirePayload, RequestError>,
        to call: CommandCall
    ) throws -> Answer {
        switch result {
        case .success(let reply): .reply(reply)
        case .failure(let error): .refusal(error)
        }
    }

    func answer(
        _ result: Result<some LoginTokenReply, RequestError>,
        to call: CommandCall
    ) throws -> Answer {
        switch result {
        case .success(let reply): try answer(reply, to: call)
        case .failure(let error): .refusal(error)
        }
    }

    func answer(_ reply: some LoginTokenReply, to call: CommandCall) throws -> Answer {
        var answer = Answer.reply(reply)
        answer.opened = try reply.loginToken.flatMap { try signedIn(by: $0, in: call.tx) }
        return answer
    }

    /// Returns the session that belongs to a login token. The request has just created the token.
    private func signedIn(by token: String, in tx: WriteTransaction) throws -> Answer.Opened? {
        guard let session = try tx.reader.session(tokenHash: Tokens.hash(token)),
            let account = try tx.reader.account(session.userID)
        else { return nil }
        return Answer.Opened(
            session: OpenSession(session),
            token: token,
            settingsVersion: account.settingsVersion,
            isHidden: account.privacy.isHidden
        )
    }

    func answer(_ reply: MsgSendReply, to call: CommandCall) throws -> Answer {
        // A retry of a send succeeds even if one partner has blocked the other since the first
        // attempt. In this case, the connection must not watch the dialog.
        let isOpen = try call.tx.chat(reply.chatID, visibleTo: call.caller.userID)?.isShut == false
        return Answer(
            .reply(reply),
            interest: isOpen ? .dialog(reply.chatID) : nil
        )
    }

    // MARK: - Queries

    func answer(_ answer: Answer, to call: QueryCall) throws -> Answer { answer }

    func answer(_ reply: some WirePayload, to call: QueryCall) throws -> Answer {
        .page(reply, for: call.requester)
    }

    func answer(
        _ progress: Progress<ReadTransaction, some WirePayload>,
        to call: QueryCall
    ) throws -> Answer {
        .read(progress) { [requester = call.requester] in
            try requireOpen(requester, in: $0)
        } finish: { [requester = call.requester] in
            .page($0, for: requester)
        }
    }
}

/// A reply that may contain a login token. Such a token also logs in the connection that receives
/// it.
protocol LoginTokenReply: WirePayload {
    /// The token; nil while the login is incomplete, for example without the second factor.
    var loginToken: String? { get }
}

extension AuthCodeReply: LoginTokenReply {
    var loginToken: String? { tokenAttrs.login?.token }
}

extension AuthConfirmReply: LoginTokenReply {
    var loginToken: String? { token }
}

extension AuthLoginCheckPasswordReply: LoginTokenReply {
    var loginToken: String? { tokenAttrs.login?.token }
}

extension AuthLoginRestorePasswordReply: LoginTokenReply {
    var loginToken: String? { tokenAttrs?.login?.token }
}

extension LoginByQrReply: LoginTokenReply {
    var loginToken: String? { tokenAttrs.login?.token }
}
