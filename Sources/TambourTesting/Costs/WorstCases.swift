import TambourMessenger
package import TambourProtocol
import TambourStore

/// The most expensive requests for each opcode. A test fails if an opcode has no case.
package enum WorstCases {
    package typealias Maker = @Sendable (WorstCaseWorld) throws -> WorstCase

    static let limits = Limits.standard

    /// Returns the cases of an opcode. An opcode may have several cases: for example, one reads the
    /// most rows and another stores the most bytes.
    package static func cases(of opcode: Opcode) -> [Maker] {
        (all[opcode].map { [$0] } ?? []) + (others[opcode] ?? [])
    }

    private static let all: [Opcode: Maker] = [session, people, auth, chats, messages, groups, own]
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
        .sessionsInfo: {
            WorstCase(SessionsInfoRequest(), by: try $0.withSessions(limits.maxSessions))
        },
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
            let name = Text.longest(units: limits.maxNameUnits)
            return WorstCase(
                ProfileRequest(
                    firstName: name,
                    lastName: name,
                    description: .longest(units: limits.maxDescriptionUnits)
                ),
                by: try world.knownToAll("Known")
            )
        },
        .config: { world in
            // Stores settings for the maximum number of chats. The total size of the settings is
            // just below `maxSettingsBytes`, so that a few other requests can still store settings.
            let chats = world.chats.prefix(limits.maxConfigChats)
            let room = (limits.maxSettingsBytes - 32_768) / chats.count
            let settings = stride(from: 0, to: room - 20, by: limits.maxSettingBytes).map { place in
                let bytes = min(limits.maxSettingBytes - 8, room - place - 20)
                return (Text("s\(place)"), AnyValue(Text(String(repeating: "s", count: bytes))))
            }
            let change = SettingsChange(chats: IDMap(chats.map { ($0, NameMap(settings)) }))
            return WorstCase(ConfigRequest(settings: change), by: world.alice)
        },
        .profileDelete: {
            WorstCase(ProfileDeleteRequest(delete: true), by: try $0.server.signUp("Leaving"))
        },
        .profileDeleteTime: { WorstCase(ProfileDeleteTimeRequest(), by: $0.alice) },
    ]

    // MARK: - Other forms

    private static let others: [Opcode: [Maker]] = [
        // Requests all chats as a delta.
        .login: [
            { world in
                WorstCase(
                    LoginRequest(token: world.alice.token, interactive: false, chatsSync: 1),
                    by: try world.server.connect(device: "phone", capabilities: ["objects"])
                )
            }
        ],
        // Names only strangers. The server therefore compares the maximum number of rows and
        // returns no user.
        .contactInfo: [
            {
                let ids = $0.filled($0.strangers)
                return WorstCase(ContactInfoRequest(contactIDs: ids), by: $0.wanderer)
            }
        ],
        .contactPresence: [
            {
                let ids = $0.filled($0.strangers)
                return WorstCase(ContactPresenceRequest(contactIDs: ids), by: $0.wanderer)
            }
        ],
        .chatSearchCommonParticipants: [
            { world in
                let users = Array(world.users.prefix(limits.maxIDsPerRequest))
                return WorstCase(
                    ChatSearchCommonParticipantsRequest(userIDs: users),
                    by: world.alice
                )
            }
        ],
        .chatMembers: [
            { WorstCase(ChatMembersRequest(chatID: $0.crowd, query: "nobody"), by: $0.alice) },
            { world in
                let (channel, me, users) = (world.channel, world.alice.userID, world.users)
                try world.run { tx in
                    guard let chat = try tx.chat(channel, visibleTo: me) else { return }
                    try tx.setBanned(true, users, from: chat)
                }
                let request = ChatMembersRequest(
                    chatID: channel,
                    type: .commentsBlacklist,
                    query: "nobody"
                )
                return WorstCase(request, by: world.alice)
            },
        ],
        .chatSubscribe: [
            {
                let request = ChatSubscribeRequest(chatID: $0.channel, postID: $0.posts[0])
                return WorstCase(request, by: $0.alice)
            }
        ],
        .msgDelete: [
            { world in
                let (chat, posts) = try world.commentedChannel(posts: limits.maxIDsPerRequest)
                let request = MsgDeleteRequest(chatID: chat, messageIDs: posts)
                return WorstCase(request, by: world.alice)
            }
        ],
        .msgDeleteRange: [
            { world in
                let count = min(world.size.messages, limits.maxDeletedRange)
                let (chat, posts) = try world.commentedChannel(posts: count)
                let request = MsgDeleteRangeRequest(
                    chatID: chat,
                    startTime: posts[0].timeMs,
                    endTime: posts[count - 1].timeMs
                )
                return WorstCase(request, by: world.alice)
            }
        ],
        .msgReaction: [
            { world in
                let (post, comment) = try world.freshComment()
                let request = MsgReactionRequest(
                    chatID: world.channel,
                    messageID: comment,
                    reaction: NewReaction(id: "🔥"),
                    postID: post
                )
                return WorstCase(request, by: world.alice)
            }
        ],
        .msgCancelReaction: [
            { world in
                let (post, comment) = try world.freshComment()
                try world.alice.call(
                    MsgReactionRequest(
                        chatID: world.channel,
                        messageID: comment,
                        reaction: NewReaction(id: "🔥"),
                        postID: post
                    )
                )
                let request = MsgCancelReactionRequest(
                    chatID: world.channel,
                    messageID: comment,
                    postID: post
                )
                return WorstCase(request, by: world.alice)
            }
        ],
        .msgSend: [largestForward, answerAboveFloors, contactCards, firstComment],
        .msgTyping: [
            { world in
                let request = MsgTypingRequest(
                    chatID: world.channel,
                    type: "TEXT",
                    postID: world.posts[0]
                )
                return WorstCase(request, by: world.alice)
            }
        ],
        .msgEdit: [
            { world in
                let text = Text.longest(units: limits.maxTextUnits)
                return WorstCase(
                    MsgEditRequest(
                        chatID: world.veiled.chat,
                        messageID: world.veiled.message,
                        text: text
                    ),
                    by: world.alice
                )
            }
        ],
        .chatMembersUpdate: [
            { world in
                WorstCase(
                    ChatMembersUpdateRequest(
                        chatID: try world.filledGroup(),
                        userIDs: Array(world.users.prefix(limits.maxIDsPerRequest)),
                        operation: .remove
                    ),
                    by: world.alice
                )
            },
            // Bans users from commenting, and deletes one user's comments on a post.
            { world in
                let post = try world.commentedPost(with: 2 * limits.purgedRowsPerStep)
                return WorstCase(
                    ChatMembersUpdateRequest(
                        chatID: world.channel,
                        userIDs: [world.bob.userID]
                            + world.users.prefix(limits.maxIDsPerRequest - 1),
                        operation: .add,
                        type: .commentsBlacklist,
                        cleanMsgPeriod: -1,
                        postID: post
                    ),
                    by: world.alice
                )
            },
        ],
        .objPush: [
            { world in
                WorstCase(
                    ObjPushRequest(clientNow: 1, ops: try world.largestCreations()),
                    by: world.alice
                )
            },
            { world in
                let deletions = try world.deletions()
                // Advance the clock until the stored replies to earlier operations have expired.
                world.advance(ms: Int64(limits.objectRepliesDays + 1) * 86_400_000)
                return WorstCase(ObjPushRequest(clientNow: 1, ops: deletions), by: world.alice)
            },
        ],
    ]

    // MARK: - Contacts

    private static let people: [Opcode: Maker] = [
        .contactInfo: {
            WorstCase(ContactInfoRequest(contactIDs: $0.members), by: try $0.newMember())
        },
        .contactPresence: {
            WorstCase(ContactPresenceRequest(contactIDs: $0.members), by: try $0.newMember())
        },
        .contactInfoByPhone: {
            WorstCase(ContactInfoByPhoneRequest(phone: "+79000000001"), by: $0.alice)
        },
        .sync: { world in
            let book = (0..<limits.maxIDsPerRequest).map {
                (
                    Text("+\(79_000_000_000 + $0)"),
                    PhoneBookEntry(
                        firstName: .longest(units: limits.maxNameUnits),
                        lastName: .longest(units: limits.maxNameUnits)
                    )
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
            let count = Int64(limits.maxIDsPerRequest)
            return WorstCase(ContactListRequest(status: .blocked, count: count), by: world.alice)
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
                ChatSearchCommonParticipantsRequest(userIDs: Array($0.users.prefix(30))),
                by: $0.alice
            )
        },
        .assetsGet: { WorstCase(AssetsGetRequest(), by: $0.alice) },
        .assetsUpdate: { WorstCase(AssetsUpdateRequest(), by: $0.alice) },
        .assetsGetByIds: {
            let ids = (0..<Limits.standard.maxIDsPerRequest).map { Int64($0) }
            return WorstCase(AssetsGetByIdsRequest(ids: ids), by: $0.alice)
        },
        .videoChatHistory: { WorstCase(VideoChatHistoryRequest(), by: $0.alice) },
        .storiesFeed: { WorstCase(StoriesFeedRequest(), by: $0.alice) },
        .bannersGet: { WorstCase(BannersGetRequest(), by: $0.alice) },
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
                LoginRequest(
                    token: world.alice.token,
                    interactive: false,
                    chatsCount: Int64(limits.maxChatsPage)
                ),
                by: client
            )
        },
        .login2: { WorstCase(Login2Request(needProfile: true, contactsSync: 0), by: $0.alice) },
        .syncMore: { world in
            WorstCase(
                SyncMoreRequest(
                    kind: .chats,
                    since: 1,
                    upTo: 1_800_000_000_000,
                    count: Int64(limits.maxChatsPage)
                ),
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
        .invitationCreate: { world in
            WorstCase(InvitationCreateRequest(), by: try world.server.signUp("Host"))
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
            // The measured request ends all open tracks.
            for _ in 1..<Limits.standard.maxTracksPerHour {
                try client.call(AuthCreateTrackRequest(type: 0))
            }
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
    /// As many ids as a request may contain: first the members of the crowd, then unknown ids.
    var members: [UserID] { filled(users) }

    /// Returns as many ids as a request may contain: first `users`, then unknown ids.
    func filled(_ users: [UserID]) -> [UserID] {
        let most = Limits.standard.maxIDsPerRequest
        let known = Array(users.prefix(most))
        return known + (known.count..<most).map { UserID(1_000_000 + Int64($0)) }
    }

    /// Creates a user with `count` sessions.
    func withSessions(_ count: Int) throws -> WireClient {
        let client = try server.signUp("Many")
        for index in 1..<count {
            try server.signIn(phoneOf: client, device: "device \(index)").close()
        }
        return client
    }

    /// Approves sign-in links until the hourly limit permits only `rest` more approvals.
    func approveLinks(by client: WireClient, leaving rest: Int = 0) throws {
        let stranger = try server.connect()
        for _ in 0..<(Limits.standard.maxQRApprovalsPerHour - rest) {
            let shown = try stranger.call(GetQrRequest())
            try client.call(AuthQrApproveRequest(qrLink: shown.qrLink))
        }
    }

    /// Creates a user who is a contact of `maxContactAudience` users. This is the maximum number of
    /// users who receive a push about a new name.
    func knownToAll(_ name: String) throws -> WireClient {
        let client = try server.signUp(name)
        let (known, owners) = (
            client.userID, Array(users.prefix(Limits.standard.maxContactAudience))
        )
        try run { tx in
            for owner in owners {
                guard let contact = try tx.reader.contact(known, of: owner) else { continue }
                _ = try tx.change(contact, of: owner, by: ContactChange(isAdded: true))
            }
        }
        try bob.call(ContactUpdateRequest(contactID: known, action: .add))
        return client
    }

    /// Connects a client without an account and requests a login code.
    func askedForCode() throws -> (client: WireClient, token: String, code: String) {
        let client = try server.connect()
        let phone = server.freshPhone()
        let asked = try client.call(AuthRequestRequest(phone: PhoneNumber.format(phone)))
        return (client, asked.token, try server.receivedCode(of: phone))
    }

    /// Creates a user with an open track for setting a password.
    func track() throws -> (client: WireClient, track: String) {
        let client = try server.signUp("Careful")
        return (client, try client.call(AuthCreateTrackRequest(type: 0)).trackID)
    }

    /// Creates a user with a password and an open track for changing it.
    func protected() throws -> (client: WireClient, track: String) {
        let (client, first) = try track()
        try client.call(AuthValidatePasswordRequest(trackID: first, password: "secret-1"))
        try client.call(
            AuthSet2faRequest(trackID: first, password: "secret-1", expectedCapabilities: [0])
        )
        return (client, try client.call(AuthCreateTrackRequest(type: 0)).trackID)
    }
}
