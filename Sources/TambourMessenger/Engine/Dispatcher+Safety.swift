import TambourProtocol
import TambourStore

/// Passwords, QR logins, and the phone and the end of an account.
extension Dispatcher {
    func safety(
        _ request: CommandRequest,
        from requester: Requester,
        password: HashedPassword?,
        in tx: WriteTransaction
    ) throws -> Answer {
        switch request {
        case .phoneBindRequest(let request):
            return .reply(try auth.phoneBindRequest(request, from: requester, in: tx))
        case .phoneBindConfirm(let request):
            let caller = requester.requireCaller()
            return answer(try auth.phoneBindConfirm(request, from: caller, in: tx))
        case .authCreateTrack:
            return .reply(try auth.authCreateTrack(from: requester.requireCaller(), in: tx))
        case .authVerifyEmail(let request):
            let caller = requester.requireCaller()
            return .reply(try auth.authVerifyEmail(request, from: caller, in: tx))
        case .authCheckEmail(let request):
            let caller = requester.requireCaller()
            return answer(try auth.authCheckEmail(request, from: caller, in: tx))
        case .authCheckPassword(let request):
            let caller = requester.requireCaller()
            return answer(try auth.authCheckPassword(request, password, from: caller, in: tx))
        case .authSet2fa(let request):
            let caller = requester.requireCaller()
            return .reply(try auth.authSet2fa(request, password, from: caller, in: tx))
        case .authLoginCheckPassword(let request):
            switch try auth.authLoginCheckPassword(request, password, from: requester, in: tx) {
            case .success(let reply):
                return try signedIn(by: reply.tokenAttrs.login?.token, reply, in: tx)
            case .failure(let error): return .refusal(error)
            }
        case .authLoginRestorePassword(let request):
            switch try auth.authLoginRestorePassword(request, from: requester, in: tx) {
            case .success(let reply):
                return try signedIn(by: reply.tokenAttrs?.login?.token, reply, in: tx)
            case .failure(let error): return .refusal(error)
            }
        case .getQr:
            return .reply(try auth.getQr(in: tx))
        case .authQrApprove(let request):
            let caller = requester.requireCaller()
            return .reply(try auth.authQrApprove(request, from: caller, in: tx))
        case .loginByQr(let request):
            let reply = try auth.loginByQr(request, from: requester, in: tx)
            return try signedIn(by: reply.tokenAttrs.login?.token, reply, in: tx)
        case .profileDelete(let request):
            let caller = requester.requireCaller()
            return .reply(try auth.profileDelete(request, from: caller, in: tx))
        default: preconditionFailure("the dispatcher hands over nothing else")
        }
    }

    private func answer(_ result: Result<some WirePayload, RequestError>) -> Answer {
        switch result {
        case .success(let reply): .reply(reply)
        case .failure(let error): .refusal(error)
        }
    }
}
