import TambourProtocol
import TambourTesting

extension CommandFlow {
    /// Plays AUTH_CREATE_TRACK, AUTH_VERIFY_EMAIL, AUTH_CHECK_EMAIL, AUTH_SET_2FA,
    /// AUTH_CHECK_PASSWORD, AUTH_LOGIN_CHECK_PASSWORD, AUTH_LOGIN_RESTORE_PASSWORD,
    /// PHONE_BIND_REQUEST and PHONE_BIND_CONFIRM. Each round sets a password, changes it, signs in
    /// with it, forgets it, and moves to another phone.
    static func password(
        of user: CommandUser,
        at address: String,
        _ mark: CommandMark
    ) -> CommandFlow {
        CommandFlow(
            user,
            at: address,
            mark,
            settingPassword + changingPassword + signingIn + restoring + moving(mark)
        )
    }

    private func password(_ turn: Int) -> String { "password \(round) \(turn)" }
    private func hint(_ turn: Int) -> String { "\(mark(round)) \(turn)" }

    private static let openingTrack = Step("AUTH_CREATE_TRACK") { flow in
        flow.track = try flow.call(AuthCreateTrackRequest(), as: flow.own).trackID
    }

    /// AUTH_SET_2FA ends its track, so the server refuses a repetition if it stored the first
    /// attempt.
    private static func setting(_ turn: Int, _ capabilities: [Int64]) -> Step {
        Step("AUTH_SET_2FA") { flow in
            let request = AuthSet2faRequest(
                trackID: flow.track,
                password: flow.password(turn),
                hint: Text(flow.hint(turn)),
                expectedCapabilities: capabilities
            )
            _ = try flow.call(request, as: flow.own)
        } ifRefused: { flow in
            try flow.requirePassword(hint: flow.hint(turn))
            return .next
        }
    }

    private func requirePassword(hint: String?) throws {
        let found = try own?.call(Auth2faDetailsRequest()).password
        let holds =
            if let hint {
                found?.enabled == true && found?.hint == Text(hint) && found?.email != nil
            } else {
                found?.enabled == false
            }
        try require(holds, "the password is \(String(describing: found)), not \(hint ?? "none")")
    }

    private static let settingPassword = [
        openingTrack,
        Step("AUTH_VERIFY_EMAIL") { flow in
            let email = "crash\(flow.mark.play).\(flow.round)@example.org"
            let request = AuthVerifyEmailRequest(trackID: flow.track, email: email)
            _ = try flow.call(request, as: flow.own)
        },
        Step("AUTH_CHECK_EMAIL") { flow in
            let request = AuthCheckEmailRequest(
                trackID: flow.track,
                verifyCode: CommandWorld.code
            )
            _ = try flow.call(request, as: flow.own)
        } ifRefused: { _ in
            // The refusal shows that the code is used up, so the address is confirmed. The next
            // step depends on the confirmed address.
            .next
        },
        setting(1, [0, 3, 4]),
        Step("AUTH_2FA_DETAILS") { try $0.requirePassword(hint: $0.hint(1)) },
    ]

    private static let changingPassword = [
        openingTrack,
        Step("AUTH_CHECK_PASSWORD") { flow in
            let request = AuthCheckPasswordRequest(
                trackID: flow.track,
                password: flow.password(1)
            )
            _ = try flow.call(request, as: flow.own)
        },
        setting(2, [1, 3]),
        Step("AUTH_2FA_DETAILS") { try $0.requirePassword(hint: $0.hint(2)) },
    ]

    private static let asking = [
        Step("AUTH_REQUEST") { flow in
            let request = AuthRequestRequest(phone: "+\(flow.phone)")
            try flow.reconnectStranger()
            flow.token = try flow.call(request, as: flow.stranger).token
        },
        Step("AUTH") { flow in
            let request = AuthCodeRequest(token: flow.token, verifyCode: CommandWorld.code)
            let challenge = try flow.call(request, as: flow.stranger).passwordChallenge
            try flow.require(challenge?.hint == Text(flow.hint(2)), "the password is not asked for")
            flow.track = challenge?.trackID ?? ""
        } ifRefused: { _ in
            .back(1)
        },
    ]

    private static let signingIn =
        asking + [
            Step("AUTH_LOGIN_CHECK_PASSWORD") { flow in
                let request = AuthLoginCheckPasswordRequest(
                    trackID: flow.track,
                    password: flow.password(2)
                )
                let reply = try flow.call(request, as: flow.stranger)
                try flow.noteSession(reply.tokenAttrs)
            } ifRefused: { _ in
                .next
            }
        ]

    private func noteSession(_ attributes: TokenAttrs?) throws {
        guard let token = attributes?.login?.token else { return try require(false, "no token") }
        // The account's phone changes, but its id stays.
        open.append((token, "id: \(user?.id.rawValue ?? 0),"))
    }

    private static let restoring =
        asking + [
            Step("AUTH_LOGIN_RESTORE_PASSWORD without a code") { flow in
                let request = AuthLoginRestorePasswordRequest(trackID: flow.track)
                _ = try flow.call(request, as: flow.stranger)
            },
            Step("AUTH_LOGIN_RESTORE_PASSWORD") { flow in
                let request = AuthLoginRestorePasswordRequest(
                    trackID: flow.track,
                    verifyCode: CommandWorld.code
                )
                try flow.noteSession(flow.call(request, as: flow.stranger).tokenAttrs)
            } ifRefused: { flow in
                try flow.requirePassword(hint: nil)
                return .next
            },
            Step("AUTH_2FA_DETAILS") { try $0.requirePassword(hint: nil) },
        ]

    private static func moving(_ mark: CommandMark) -> [Step] {
        let next: @Sendable (CommandFlow) -> Int64 = { flow in
            79_200_000_000 + Int64(mark.play % 10) * 10_000_000 + Int64(flow.round)
        }
        return [
            Step("PHONE_BIND_REQUEST") { flow in
                let request = PhoneBindRequestRequest(phone: "+\(next(flow))")
                flow.token = try flow.call(request, as: flow.own).token
            },
            Step("PHONE_BIND_CONFIRM") { flow in
                let request = PhoneBindConfirmRequest(
                    token: flow.token,
                    verifyCode: CommandWorld.code
                )
                _ = try flow.call(request, as: flow.own)
            } ifRefused: { _ in
                // The next step checks which account has the phone.
                .next
            },
            Step("CONTACT_INFO") { flow in
                guard let own = flow.own else { return }
                let request = ContactInfoRequest(contactIDs: [own.userID])
                let found = try own.call(request).contacts.first?.phone
                try flow.require(found == next(flow), "the phone is \(found ?? 0)")
                flow.phone = next(flow)
            },
            Step("SESSIONS_CLOSE") { flow in
                _ = try flow.call(SessionsCloseRequest(), as: flow.own)
                flow.ended += flow.open.map(\.token)
                flow.open = []
            },
        ]
    }
}
