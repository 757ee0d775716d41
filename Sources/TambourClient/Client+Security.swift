import TambourProtocol

/// The account's password and phone, and signing in other devices. All calls wait for the server.
extension Client {
    /// Whether a sign-in needs a password in addition to the code, and the hint for it.
    public struct PasswordDetails: Hashable, Sendable {
        public let isSet: Bool
        /// An optional reminder. Everybody who has the code can see it.
        public let hint: String?
    }

    /// A request to move the account to another phone number.
    public struct PhoneChange: Sendable {
        let token: String
        let phone: String
        /// The number of digits in the code.
        public let digits: Int
    }

    public func passwordDetails() async throws(ClientError) -> PasswordDetails {
        let details = try await askLoggedIn(Auth2faDetailsRequest()).password
        return PasswordDetails(isSet: details.enabled, hint: details.hint.map { "\($0)" })
    }

    /// Sets, changes or removes the password.
    ///
    /// - Parameters:
    ///   - password: the new password; nil removes the password and its hint.
    ///   - current: the present password; nil if none is set.
    ///   - hint: a reminder that is shown to everybody who has the code; nil keeps the present
    ///     hint.
    public func setPassword(
        _ password: String?,
        current: String?,
        hint: String? = nil
    ) async throws(ClientError) {
        let track = try await askLoggedIn(AuthCreateTrackRequest()).trackID
        if let current {
            _ = try await askLoggedIn(AuthCheckPasswordRequest(trackID: track, password: current))
        }
        if let password {
            _ = try await askLoggedIn(
                AuthValidatePasswordRequest(trackID: track, password: password)
            )
        }
        if let hint {
            _ = try await askLoggedIn(AuthValidateHintRequest(trackID: track, hint: Text(hint)))
        }
        let request = AuthSet2faRequest(
            trackID: track,
            password: password,
            hint: hint.map { Text($0) },
            removes: password == nil
        )
        _ = try await askLoggedIn(request)
    }

    /// Lets the device that shows a QR code sign in to this account.
    ///
    /// - Parameter link: the text of the QR code.
    public func approveSignIn(_ link: String) async throws(ClientError) {
        _ = try await askLoggedIn(AuthQrApproveRequest(qrLink: link))
    }

    /// Requests a code that moves the account to another phone number.
    public func requestPhoneChange(to phone: String) async throws(ClientError) -> PhoneChange {
        let reply = try await askLoggedIn(PhoneBindRequestRequest(phone: phone))
        return PhoneChange(
            token: reply.token,
            phone: phone,
            digits: Int(clamping: reply.codeLength)
        )
    }

    /// Moves the account to the phone number that received the code.
    public func changePhone(
        _ change: PhoneChange,
        code: String
    ) async throws(ClientError) {
        let request = PhoneBindConfirmRequest(token: change.token, verifyCode: code)
        let reply = try await askLoggedIn(request)
        try await wish { core, tx in
            try tx.set(.phone, change.phone)
            try core.learn(.person(reply.profile.contact.id), tx) {
                try tx.put(reply.profile.contact)
                tx.changes.account = true
            }
        }
    }
}
