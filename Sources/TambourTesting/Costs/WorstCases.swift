package import TambourProtocol
import TambourServer
import TambourStore

/// The dearest request of each opcode; an opcode without one fails a test.
package enum WorstCases {
    package typealias Maker = @Sendable (WorstCaseWorld) throws -> WorstCase

    package static let all: [Opcode: Maker] = [session, people, auth, chats, messages, groups, own]
        .reduce(into: [:]) { all, some in all.merge(some) { first, _ in first } }

    // MARK: - Session and profile

    private static let session: [Opcode: Maker] = [
        .ping: { WorstCase(PingRequest(interactive: false), by: $0.alice) },
        .log: { world in
            let events = (0..<1_000).map { _ in LogEvent(type: "NAV", event: "GO") }
            return WorstCase(LogRequest(events: events), by: world.alice)
        },
        .sessionInit: { world in
            let names = (0..<64).map { "capability-\($0)" }
            let agent = UserAgent(deviceType: "DESKTOP", appVersion: "1", deviceName: "Laptop")
            return WorstCase(
                SessionInitRequest(userAgent: agent, capabilities: names, features: names),
                by: try WireClient(address: world.server.address)
            )
        },
        .msgDelivery: { WorstCase(MsgDeliveryRequest(), by: $0.alice) },
        .notifMessage: { WorstCase(.notifMessage, NotifMessageRequest().encoded(), by: $0.alice) },
        .sessionsInfo: { WorstCase(SessionsInfoRequest(), by: $0.alice) },
        .sessionsClose: { world in
            let client = try world.withSessions(Limits.standard.maxSessions)
            try world.approveLinks(by: client)
            return WorstCase(SessionsCloseRequest(), by: client)
        },
        .logout: { world in
            let client = try world.server.signUp("Gone")
            try world.approveLinks(by: client)
            return WorstCase(LogoutRequest(), by: client)
        },
        .profile: { world in
            let name = String(repeating: "n", count: 50)
            return WorstCase(
                ProfileRequest(firstName: Text(name), description: Text(name)),
                by: try world.knownToAll("Known")
            )
        },
        .config: { world in
            let value = AnyValue(1 as Int64)
            let chats = world.dialogs.map { ($0, NameMap([(Text("favIndex"), value)])) }
            let circles = [world.crowd, world.circle].map {
                ($0, NameMap([(Text("favIndex"), value)]))
            }
            let change = SettingsChange(chats: IDMap(Array((chats + circles).prefix(100))))
            return WorstCase(ConfigRequest(settings: change), by: world.alice)
        },
        .profileDelete: { WorstCase(ProfileDeleteRequest(), by: try $0.server.signUp("Leaving")) },
        .profileDeleteTime: { WorstCase(ProfileDeleteTimeRequest(), by: $0.alice) },
    ]

    // MARK: - Contacts

    private static let people: [Opcode: Maker] = [
        .contactInfo: { WorstCase(ContactInfoRequest(contactIDs: $0.manyUsers), by: $0.alice) },
        .contactPresence: {
            WorstCase(ContactPresenceRequest(contactIDs: $0.manyUsers), by: $0.alice)
        },
        .contactInfoByPhone: {
            WorstCase(ContactInfoByPhoneRequest(phone: "+79000000001"), by: $0.alice)
        },
        .sync: { world in
            let book = (0..<1_000).map {
                (
                    Text("+\(79_000_000_000 + $0)"),
                    PhoneBookEntry(firstName: "First", lastName: "Last")
                )
            }
            return WorstCase(
                SyncRequest(contactList: NameMap(book)),
                by: try world.server.signUp("Sync")
            )
        },
        .contactUpdate: { world in
            WorstCase(
                ContactUpdateRequest(contactID: world.users[0], action: .block),
                by: world.alice
            )
        },
        .contactList: { world in
            for user in world.users.suffix(50) {
                try world.alice.call(ContactUpdateRequest(contactID: user, action: .block))
            }
            return WorstCase(ContactListRequest(status: "BLOCKED", count: 1_000), by: world.alice)
        },
        .contactPhotos: {
            WorstCase(ContactPhotosRequest(contactID: $0.bob.userID), by: $0.alice)
        },
        .contactCreate: {
            WorstCase(
                ContactCreateRequest(phone: "+79000000002", firstName: "Name"),
                by: $0.alice
            )
        },
        .removeContactPhoto: { WorstCase(RemoveContactPhotoRequest(photoID: 1), by: $0.alice) },
        .chatSearchCommonParticipants: {
            WorstCase(
                ChatSearchCommonParticipantsRequest(userIDs: $0.manyUsers),
                by: $0.alice
            )
        },
        .suspendBot: {
            WorstCase(SuspendBotRequest(chatID: $0.crowd, botID: $0.bob.userID), by: $0.alice)
        },
        .chatBotCommands: { WorstCase(ChatBotCommandsRequest(chatID: $0.crowd), by: $0.alice) },
        .botInfo: { WorstCase(BotInfoRequest(botID: $0.bob.userID), by: $0.alice) },
    ]

    // MARK: - Signing in

    private static let auth: [Opcode: Maker] = [
        .login: { world in
            let client = try world.server.connect(device: "phone", capabilities: ["objects"])
            return WorstCase(
                LoginRequest(token: world.alice.token, interactive: false, chatsCount: 200),
                by: client
            )
        },
        .login2: { WorstCase(Login2Request(needProfile: true, contactsSync: 0), by: $0.alice) },
        .syncMore: { world in
            WorstCase(
                SyncMoreRequest(kind: .chats, since: 1, upTo: 1_800_000_000_000, count: 200),
                by: world.alice
            )
        },
        .authRequest: { world in
            let phone = PhoneNumber.format(world.server.freshPhone())
            return WorstCase(AuthRequestRequest(phone: phone), by: try world.server.connect())
        },
        .auth: { world in
            let (client, token, code) = try world.askedForCode()
            return WorstCase(AuthCodeRequest(token: token, verifyCode: code), by: client)
        },
        .authConfirm: { world in
            let (client, token, code) = try world.askedForCode()
            let checked = try client.call(AuthCodeRequest(token: token, verifyCode: code))
            return WorstCase(
                AuthConfirmRequest(
                    firstName: "New",
                    token: checked.tokenAttrs.register?.token ?? ""
                ),
                by: client
            )
        },
        .phoneBindRequest: { world in
            let phone = PhoneNumber.format(world.server.freshPhone())
            return WorstCase(
                PhoneBindRequestRequest(phone: phone),
                by: try world.server.signUp("Moving")
            )
        },
        .phoneBindConfirm: { world in
            let client = try world.knownToAll("Moved")
            let phone = world.server.freshPhone()
            let asked = try client.call(
                PhoneBindRequestRequest(phone: PhoneNumber.format(phone))
            )
            let code = try world.server.receivedCode(of: phone)
            return WorstCase(
                PhoneBindConfirmRequest(token: asked.token, verifyCode: code),
                by: client
            )
        },
        .authCreateTrack: {
            WorstCase(AuthCreateTrackRequest(type: 0), by: try $0.server.signUp("Careful"))
        },
        .authValidatePassword: { world in
            let (client, track) = try world.track()
            return WorstCase(
                AuthValidatePasswordRequest(trackID: track, password: "secret-1"),
                by: client
            )
        },
        .authValidateHint: { world in
            let (client, track) = try world.track()
            return WorstCase(AuthValidateHintRequest(trackID: track, hint: "hint"), by: client)
        },
        .authVerifyEmail: { world in
            let (client, track) = try world.track()
            return WorstCase(
                AuthVerifyEmailRequest(trackID: track, email: "a@example.org"),
                by: client
            )
        },
        .authCheckEmail: { world in
            let (client, track) = try world.track()
            try client.call(AuthVerifyEmailRequest(trackID: track, email: "b@example.org"))
            let code = try world.server.receivedCode(of: "b@example.org")
            return WorstCase(AuthCheckEmailRequest(trackID: track, verifyCode: code), by: client)
        },
        .authCheckPassword: { world in
            let (client, track) = try world.protected()
            return WorstCase(
                AuthCheckPasswordRequest(trackID: track, password: "secret-1"),
                by: client
            )
        },
        .authSet2fa: { world in
            let (client, track) = try world.track()
            try client.call(AuthValidatePasswordRequest(trackID: track, password: "secret-1"))
            return WorstCase(
                AuthSet2faRequest(trackID: track, password: "secret-1", expectedCapabilities: [0]),
                by: client
            )
        },
        .auth2faDetails: { WorstCase(Auth2faDetailsRequest(), by: try $0.protected().client) },
        .authLoginCheckPassword: {
            WorstCase(
                AuthLoginCheckPasswordRequest(trackID: "x", password: "secret-1"),
                by: try $0.server.connect()
            )
        },
        .authLoginRestorePassword: {
            WorstCase(
                AuthLoginRestorePasswordRequest(trackID: "x", verifyCode: "1"),
                by: try $0.server.connect()
            )
        },
        .getQr: { WorstCase(GetQrRequest(), by: try $0.server.connect()) },
        .getQrStatus: { world in
            let client = try world.server.connect()
            let shown = try client.call(GetQrRequest())
            return WorstCase(GetQrStatusRequest(trackID: shown.trackID), by: client)
        },
        .authQrApprove: { world in
            let client = try world.server.signUp("Approving")
            try world.approveLinks(by: client, leaving: 1)
            let shown = try world.server.connect().call(GetQrRequest())
            return WorstCase(AuthQrApproveRequest(qrLink: shown.qrLink), by: client)
        },
        .loginByQr: { world in
            let client = try world.server.connect()
            let shown = try client.call(GetQrRequest())
            try world.alice.call(AuthQrApproveRequest(qrLink: shown.qrLink))
            return WorstCase(LoginByQrRequest(trackID: shown.trackID), by: client)
        },
    ]
}

// MARK: - Steps before a case

extension WorstCaseWorld {
    /// As many ids as a request may hold, most of them of users that exist.
    var manyUsers: [UserID] {
        let known = Array(users.prefix(1_000))
        return known + (known.count..<1_000).map { UserID(1_000_000 + Int64($0)) }
    }

    /// A user with so many sessions.
    func withSessions(_ count: Int) throws -> WireClient {
        let client = try server.signUp("Many")
        for index in 1..<count {
            try server.signIn(phoneOf: client, device: "device \(index)").close()
        }
        return client
    }

    /// Lets a user approve as many links as it may within an hour, but so many.
    func approveLinks(by client: WireClient, leaving rest: Int = 0) throws {
        let stranger = try server.connect()
        for _ in 0..<(Limits.standard.maxQRApprovalsPerHour - rest) {
            let shown = try stranger.call(GetQrRequest())
            try client.call(AuthQrApproveRequest(qrLink: shown.qrLink))
        }
    }

    /// A user whom as many as are told of a new name have as a contact.
    func knownToAll(_ name: String) throws -> WireClient {
        let client = try server.signUp(name)
        let (known, owners) = (client.userID, Array(users.prefix(200)))
        try run { tx in
            for owner in owners {
                guard let contact = try tx.reader.contact(known, of: owner) else { continue }
                try tx.change(contact, of: owner, by: ContactChange(isAdded: true))
            }
        }
        try bob.call(ContactUpdateRequest(contactID: known, action: .add))
        return client
    }

    /// A stranger who was sent a code.
    func askedForCode() throws -> (client: WireClient, token: String, code: String) {
        let client = try server.connect()
        let phone = server.freshPhone()
        let asked = try client.call(AuthRequestRequest(phone: PhoneNumber.format(phone)))
        return (client, asked.token, try server.receivedCode(of: phone))
    }

    /// A user who is about to set a password.
    func track() throws -> (client: WireClient, track: String) {
        let client = try server.signUp("Careful")
        return (client, try client.call(AuthCreateTrackRequest(type: 0)).trackID)
    }

    /// A user with a password, who is about to change it.
    func protected() throws -> (client: WireClient, track: String) {
        let (client, first) = try track()
        try client.call(AuthValidatePasswordRequest(trackID: first, password: "secret-1"))
        try client.call(
            AuthSet2faRequest(trackID: first, password: "secret-1", expectedCapabilities: [0])
        )
        return (client, try client.call(AuthCreateTrackRequest(type: 0)).trackID)
    }
}
