import TambourProtocol
import TambourTesting

extension CommandFlow {
    // MARK: - Steps of several flows

    /// Plays AUTH_REQUEST for a phone.
    private static func asking(_ phone: @escaping @Sendable (CommandFlow) -> Int64) -> Step {
        Step("AUTH_REQUEST") { flow in
            let request = AuthRequestRequest(
                phone: "+\(phone(flow))",
                invitation: flow.invitation.isEmpty ? nil : flow.invitation
            )
            try flow.reconnectStranger()
            flow.token = try flow.call(request, as: flow.stranger).token
        }
    }

    /// Plays AUTH. A code works once, so a lost reply makes the flow request another code.
    private static func entering(
        ifRefused lost: @escaping @Sendable (CommandFlow) -> Void = { _ in },
        _ learn: @escaping @Sendable (CommandFlow, AuthCodeReply) throws -> Void
    ) -> Step {
        Step("AUTH") { flow in
            let request = AuthCodeRequest(token: flow.token, verifyCode: CommandWorld.code)
            try learn(flow, flow.call(request, as: flow.stranger))
        } ifRefused: { flow in
            lost(flow)
            return .back(1)
        }
    }

    private static func closingSessions() -> Step {
        Step("SESSIONS_CLOSE") { flow in
            _ = try flow.call(SessionsCloseRequest(), as: flow.own)
            flow.ended += flow.open.map(\.token)
            flow.open = []
            flow.maybeOpen = 0
        }
    }

    /// Checks that every acknowledged session exists, and that the account has no session that the
    /// flow did not request.
    private static func countingSessions() -> Step {
        Step("SESSIONS_INFO") { flow in
            let count = try flow.own?.call(SessionsInfoRequest()).sessions.count ?? 0
            let known = 1 + flow.open.count
            try flow.require(
                (known...known + flow.maybeOpen).contains(count),
                "\(count) sessions, \(known) acknowledged and \(flow.maybeOpen) in flight"
            )
        }
    }

    // MARK: - Registration

    /// Plays AUTH_REQUEST, AUTH, AUTH_CONFIRM and INVITATION_CREATE. Each round creates an account
    /// with an invitation that an earlier account has made.
    ///
    /// - Parameter invitation: The invitation to use until an account has made one. It has more
    ///   uses than the flow needs.
    static func registration(
        with invitation: String,
        at address: String,
        _ mark: CommandMark
    ) -> CommandFlow {
        let phone: @Sendable (CommandFlow) -> Int64 = { flow in
            79_100_000_000 + Int64(mark.play % 10) * 10_000_000 + Int64(flow.round)
        }
        let flow = CommandFlow(
            nil,
            at: address,
            mark,
            [
                asking(phone),
                entering { flow, reply in
                    // No earlier round has registered this phone, even if its requests were in
                    // flight at a kill.
                    try flow.require(reply.tokenAttrs.login == nil, "\(phone(flow)) is taken")
                    flow.token = reply.tokenAttrs.register?.token ?? ""
                },
                Step("AUTH_CONFIRM") { flow in
                    let name = mark(flow.round)
                    let request = AuthConfirmRequest(firstName: Text(name), token: flow.token)
                    let reply = try flow.call(request, as: flow.stranger)
                    flow.open.append((reply.token, name))
                } ifRefused: { flow in
                    guard let client = flow.stranger else { return .next }
                    let asked = try client.call(AuthRequestRequest(phone: "+\(phone(flow))"))
                    let request = AuthCodeRequest(
                        token: asked.token,
                        verifyCode: CommandWorld.code
                    )
                    let reply = try client.call(request)
                    let names = String(describing: reply.profile)
                    try flow.require(names.contains(mark(flow.round)), "no account: \(names)")
                    return .next
                },
                Step("INVITATION_CREATE") { flow in
                    // If kills lost all replies that contained a token, the flow knows no token. It
                    // then keeps using the present invitation.
                    guard let token = flow.open.last?.token else { return }
                    let client = try WireClient(flow.address, token: token, device: "other")
                    defer { client.close() }
                    let made = try flow.call(InvitationCreateRequest(), as: client)
                    flow.invitation = made.invitation
                },
            ]
        )
        flow.invitation = invitation
        return flow
    }

    // MARK: - Sessions

    /// Plays AUTH_REQUEST, AUTH, LOGOUT, GET_QR, AUTH_QR_APPROVE, LOGIN_BY_QR and SESSIONS_CLOSE.
    static func sessions(
        of user: CommandUser,
        at address: String,
        _ mark: CommandMark
    ) -> CommandFlow {
        let name = "id: \(user.id.rawValue),"
        return CommandFlow(
            user,
            at: address,
            mark,
            [
                asking { $0.phone },
                entering(ifRefused: { $0.maybeOpen += 1 }) { flow, reply in
                    flow.open.append((reply.tokenAttrs.login?.token ?? "", name))
                },
                Step("AUTH with a code that was used") { flow in
                    let request = AuthCodeRequest(
                        token: flow.token,
                        verifyCode: CommandWorld.code
                    )
                    let refusal = try flow.stranger?.refusal(of: request)
                    try flow.require(refusal?.code == .errorCodeExpired, "\(refusal as Any)")
                },
                countingSessions(),
                Step("LOGOUT") { flow in
                    let token = flow.open[flow.open.count - 1].token
                    let client = try WireClient(address, token: token, device: "other")
                    defer { client.close() }
                    _ = try flow.call(LogoutRequest(), as: client)
                    flow.endLast()
                } ifRefused: { flow in
                    // The server refuses the token because its session has ended.
                    flow.endLast()
                    return .next
                },
                countingSessions(),
                Step("GET_QR") { flow in
                    try flow.reconnectStranger()
                    let shown = try flow.call(GetQrRequest(), as: flow.stranger)
                    (flow.link, flow.track) = (shown.qrLink, shown.trackID)
                },
                Step("AUTH_QR_APPROVE") { flow in
                    _ = try flow.call(AuthQrApproveRequest(qrLink: flow.link), as: flow.own)
                },
                Step("LOGIN_BY_QR") { flow in
                    let request = LoginByQrRequest(trackID: flow.track)
                    let reply = try flow.call(request, as: flow.stranger)
                    flow.open.append((reply.tokenAttrs.login?.token ?? "", name))
                } ifRefused: { flow in
                    flow.maybeOpen += 1
                    return .back(2)
                },
                countingSessions(),
                closingSessions(),
                countingSessions(),
            ]
        )
    }

    private func endLast() {
        if let last = open.popLast() { ended.append(last.token) }
    }
}
