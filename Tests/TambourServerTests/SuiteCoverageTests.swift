import TambourFraming
import TambourMessenger
import TambourProtocol
import TambourServer
import TambourStore
import TambourTesting
import Testing

/// Sends everything that the specification declares to one server. Finds declared results that
/// never occur, and results that occur without being declared.
@Suite("The tour of the specification")
struct SuiteCoverageTests {
    /// The result of a request: its opcode and its error. The error is nil if the request succeeds.
    struct Sight: Hashable, CustomStringConvertible {
        let opcode: Opcode
        let code: RequestError.Code?

        var description: String {
            "\(opcode.name ?? "\(opcode.rawValue)") \(code?.rawValue ?? "answered")"
        }
    }

    /// Declared results that the tour cannot produce. Each value is the reason.
    private static let knownGaps: [Sight: String] = [
        Sight(opcode: .chatJoin, code: .notAllowed):
            "needs a group that is full; its own suite has one",
        Sight(opcode: .suspendBot, code: nil): "nobody is a bot",
        Sight(opcode: .botInfo, code: nil): "nobody is a bot",
        Sight(opcode: .login, code: .loginFlood): "nobody hurries here; RateTests does",
        Sight(opcode: .login2, code: .loginToken):
            "an account that ends takes its sessions with it",
        Sight(opcode: .removeContactPhoto, code: nil): "there are no photos before uploads",
        Sight(opcode: .auth, code: .authBlocked): "wrong codes use up the request, not the phone",
        Sight(opcode: .auth, code: .loginBlocked):
            "blocking voids the codes that were sent; AuthTests asks for one later",
        Sight(opcode: .login, code: .loginBlocked): "blocking ends the sessions with their tokens",
    ]

    /// Errors that the tour cannot produce for any opcode. Each value is the reason.
    private static let commonGaps: [RequestError.Code: String] = [
        .internalError: "needs a store that fails; the engine's own tests have one",
        .overloaded: "needs passwords in a queue; TwoFactorTests has one",
        .tooManyRequests: "nobody hurries here; RateTests does",
    ]

    /// Errors that any opcode may return without declaring them.
    private static let common: Set<RequestError.Code> = [
        .protoVer, .protoFrame, .protoState, .protoOpcode, .protoPayload, .tooManyRequests,
        .internalError, .overloaded,
    ]

    /// Records the result of each request.
    final class Tour {
        var seen: Set<Sight> = []
        var pushes: Set<Opcode> = []

        @discardableResult
        func play<Request: WireRequest>(
            _ client: WireClient,
            _ request: Request
        ) throws -> Request.Reply? {
            let packet = try play(client, Request.opcode, request.encoded())
            guard packet.header.command == PacketCommand.ok.rawValue else { return nil }
            return try Request.Reply.decode(packet.payload, limits: .standard)
        }

        @discardableResult
        func play(_ client: WireClient, _ opcode: Opcode, _ payload: [UInt8]) throws -> Packet {
            let packet = try client.reply(to: client.send(opcode, payload: payload))
            var code: RequestError.Code?
            if packet.header.command != PacketCommand.ok.rawValue {
                let error = try ErrorReply.decode(packet.payload, limits: .standard).error
                code = RequestError.Code(rawValue: "\(error)")
                #expect(code != nil, "\(error)")
            }
            seen.insert(Sight(opcode: opcode, code: code))
            return packet
        }

        func collect(_ clients: WireClient...) throws {
            for client in clients {
                for push in try client.takePushes() { pushes.insert(push.opcode) }
            }
        }
    }

    private static var served: [OpInfo] {
        (0...UInt16(2_000)).compactMap { Opcode(rawValue: $0).info }
            .filter { $0.isServed && $0.kind != nil }
    }

    @Test("sees every opcode answered and every declared error, and none that is not declared")
    func everything() throws {
        let limits = [
            "maxCodesPerPhonePerHour": 3, "maxSoftErrors": 1_000, "maxReactionKinds": 1,
            "maxPasswordTriesPerHour": 2,
            "maxEmailCodesPerTrack": 1, "maxTracksPerHour": 4, "maxQRApprovalsPerHour": 2,
        ]
        try withServer(limits: limits) { server in
            let tour = Tour()
            try signingIn(tour, server)
            try registeringWithoutInvitation(tour)
            let alice = try server.signUp("Alice")
            let bob = try server.signUp("Bob")
            try chatting(tour, server, alice, bob)
            try groups(tour, server, alice, bob)
            try channels(tour, server, alice, bob)
            try comments(tour, server, alice, bob)
            try people(tour, server, alice, bob)
            try reactions(tour, server, alice, bob)
            try polls(tour, alice, bob)
            try draftsAndFolders(tour, server, alice)
            try searching(tour, alice, bob)
            try passwords(tour, server)
            try restoring(tour, server)
            try quickResponses(tour, server)
            try ends(tour, server)
            try sessions(tour, server, alice, bob)
            try breaking(tour, server)

            var missing: Set<Sight> = []
            for info in Self.served {
                let wanted = [nil] + info.errors.map { Optional($0) }
                missing.formUnion(wanted.map { Sight(opcode: info.opcode, code: $0) })
            }
            missing.subtract(tour.seen)
            #expect(missing.subtracting(Self.knownGaps.keys).isEmpty, "never seen: \(missing)")
            let closed = Set(Self.knownGaps.keys).intersection(tour.seen)
            #expect(closed.isEmpty, "no gaps any more: \(closed)")

            let codes = Set(tour.seen.compactMap(\.code))
            let unseen = Self.common.subtracting(codes).subtracting(Self.commonGaps.keys)
            #expect(unseen.isEmpty, "never seen: \(unseen)")
            for sight in tour.seen {
                guard let code = sight.code, !Self.common.contains(code) else { continue }
                let declared = sight.opcode.info?.errors ?? []
                #expect(declared.contains(code), "\(sight) is not declared")
            }
            let pushed = (0...UInt16(2_000)).compactMap { Opcode(rawValue: $0).info }
                .filter { $0.isServed && $0.direction != .clientToServer }.map(\.opcode)
            #expect(Set(pushed).subtracting(tour.pushes).isEmpty, "pushes: \(tour.pushes)")
            #expect(server.server.metrics.refusalCounts["internal"] == nil)
        }
    }

    private func signingIn(_ tour: Tour, _ server: TestServer) throws {
        let client = try WireClient(address: server.address)
        try tour.play(client, LoginRequest(token: "x"))
        try tour.play(client, PingRequest())
        try tour.play(client, SessionInitRequest())
        try tour.play(client, LogRequest())
        try tour.play(client, AuthRequestRequest(phone: "x"))
        let phone = server.freshPhone()
        let ask = AuthRequestRequest(phone: PhoneNumber.format(phone))
        var registrations: [String] = []
        for _ in 0..<2 {
            let asked = try #require(try tour.play(client, ask))
            try tour.play(client, AuthCodeRequest(token: asked.token, verifyCode: "x"))
            let code = try server.receivedCode(of: phone)
            let checked = try #require(
                try tour.play(client, AuthCodeRequest(token: asked.token, verifyCode: code))
            )
            registrations.append(try #require(checked.tokenAttrs.register?.token))
        }
        let asked = try #require(try tour.play(client, ask))
        let code = try server.receivedCode(of: phone)
        try tour.play(client, ask)
        try tour.play(client, AuthCodeRequest(token: "x", verifyCode: code))
        let made = try #require(
            try tour.play(client, AuthConfirmRequest(firstName: "A", token: registrations[0]))
        )
        try tour.play(client, AuthConfirmRequest(firstName: "A", token: registrations[0]))
        try tour.play(client, LoginRequest(token: made.token))
        try server.block(made.profile.contact.id)
        let other = try server.connect()
        try tour.play(other, AuthConfirmRequest(firstName: "A", token: registrations[1]))
        try tour.play(other, AuthCodeRequest(token: asked.token, verifyCode: code))
        try tour.play(other, LoginRequest(token: "dead"))
        try tour.play(other, LoginRequest(token: made.token))
    }

    private func chatting(
        _ tour: Tour,
        _ server: TestServer,
        _ alice: WireClient,
        _ bob: WireClient
    ) throws {
        let dialog = alice.dialog(with: bob)
        let nowhere = ChatID(-1)
        var cid: Int64 = 0
        func message(_ text: Text?, _ link: NewLink? = nil, _ attach: NewAttach? = nil)
            -> NewMessage
        {
            cid += 1
            return NewMessage(cid: cid, text: text, attaches: attach.map { [$0] } ?? [], link: link)
        }
        let stranger = NewAttach(type: .contact, contactID: UserID(999))
        let nothing = NewLink(type: .reply, messageID: MessageID(1))
        let sent = try #require(
            try tour.play(alice, MsgSendRequest(chatID: dialog, message: message("a")))
        ).message.id
        try tour.play(alice, MsgSendRequest(chatID: nowhere, message: message("a")))
        try tour.play(alice, MsgSendRequest(chatID: dialog, message: message(nil)))
        try tour.play(alice, MsgSendRequest(chatID: dialog, message: message("a", nothing)))
        try tour.play(alice, MsgSendRequest(chatID: dialog, message: message("a", nil, stranger)))
        try tour.play(alice, MsgTypingRequest(chatID: dialog))
        try tour.play(alice, MsgTypingRequest(chatID: nowhere))
        func edit(_ chat: ChatID, _ id: MessageID, _ text: Text, _ attach: NewAttach? = nil)
            -> MsgEditRequest
        {
            MsgEditRequest(
                chatID: chat,
                messageID: id,
                text: text,
                attaches: attach.map { [$0] }
            )
        }
        try tour.play(alice, edit(dialog, sent, "b"))
        try tour.play(alice, edit(nowhere, sent, "b"))
        try tour.play(alice, edit(dialog, MessageID(1), "b"))
        try tour.play(alice, edit(dialog, sent, "b", stranger))
        try tour.play(alice, edit(dialog, sent, ""))
        try tour.play(bob, edit(dialog, sent, "b"))
        for chat in [dialog, nowhere] {
            try tour.play(bob, ChatMarkRequest(type: .readMessage, chatID: chat))
            try tour.play(bob, ChatHistoryRequest(chatID: chat, backward: 1))
            try tour.play(bob, ChatChangesRequest(chatID: chat, since: 0))
            try tour.play(bob, ChatSubscribeRequest(chatID: chat))
            try tour.play(bob, MsgGetRequest(chatID: chat, messageIDs: [sent]))
        }
        for chat in [dialog, nowhere] {
            try tour.play(alice, MsgDeleteRequest(chatID: chat, messageIDs: [sent]))
        }
        try tour.play(bob, ChatInfoRequest(chatIDs: [dialog]))
        try tour.play(bob, ChatsListRequest())
        try tour.play(bob, ContactInfoRequest(contactIDs: [alice.userID]))
        try tour.play(bob, Login2Request())
        let own = try #require(
            try tour.play(bob, ContactInfoRequest(contactIDs: [bob.userID]))?.contacts.first?.phone
        )
        try tour.play(alice, ContactInfoByPhoneRequest(phone: "\(own)"))
        try tour.play(alice, ContactInfoByPhoneRequest(phone: "1"))
        try tour.play(alice, .notifMessage, NotifMessageRequest().encoded())
        try tour.play(alice, MsgDeliveryRequest())
        // Alice watches Carol's presence because of their dialog. So she gets this push when the
        // presence changes.
        let carol = try server.signUp("Carol")
        try carol.send("hi", to: carol.dialog(with: alice), cid: 1)
        try carol.call(PingRequest(interactive: false))
        _ = try alice.next(.notifPresence, as: NotifPresence.self)
        tour.pushes.insert(.notifPresence)
        try tour.collect(alice, bob)
    }

    private func groups(
        _ tour: Tour,
        _ server: TestServer,
        _ alice: WireClient,
        _ bob: WireClient
    ) throws {
        let carol = try server.signUp("Carol")
        let nowhere = ChatID(-1)
        let group = try alice.createGroup("Tour", with: [bob], cid: 1_000)
        func members(_ chat: ChatID, _ user: UserID, _ operation: MemberOperation)
            -> ChatMembersUpdateRequest
        {
            ChatMembersUpdateRequest(chatID: chat, userIDs: [user], operation: operation)
        }
        try tour.play(alice, members(group, carol.userID, .add))
        try tour.play(alice, members(group, UserID(999), .add))
        try tour.play(alice, members(nowhere, carol.userID, .add))
        try tour.play(bob, members(group, carol.userID, .remove))
        for chat in [group, nowhere] {
            try tour.play(bob, ChatMembersRequest(chatID: chat))
            try tour.play(carol, ChatLeaveRequest(chatID: chat))
            try tour.play(alice, ChatUpdateRequest(chatID: chat, theme: "On tour"))
        }
        try tour.play(alice, ChatLeaveRequest(chatID: group))
        try tour.play(bob, ChatUpdateRequest(chatID: group, description: "mine"))
        try tour.play(alice, ChatUpdateRequest(chatID: group, pinMessageID: MessageID(1)))
        try tour.play(alice, ChatUpdateRequest(chatID: group, changeOwnerID: carol.userID))
        let invited = try #require(
            try tour.play(alice, ChatUpdateRequest(chatID: group, revokePrivateLink: true))
        )
        let link = try #require(invited.chat.link)
        for link in [link, "join/nowhere"] {
            try tour.play(carol, ChatCheckLinkRequest(link: link))
            try tour.play(carol, LinkInfoRequest(link: link))
            try tour.play(carol, ChatJoinRequest(link: link))
        }
        try tour.play(bob, ChatClearRequest(chatID: group, forAll: true))
        try tour.play(bob, ChatDeleteRequest(chatID: group, forAll: true))
        for chat in [group, nowhere] {
            try tour.play(bob, ChatClearRequest(chatID: chat))
            try tour.play(alice, ChatDeleteRequest(chatID: chat, forAll: true))
        }
        try tour.collect(alice, bob, carol)
    }

    private func channels(
        _ tour: Tour,
        _ server: TestServer,
        _ alice: WireClient,
        _ bob: WireClient
    ) throws {
        let tablet = try server.reconnect(alice, device: "tablet").client
        let nowhere = ChatID(-1)
        let channel = try alice.createGroup("News", with: [bob], type: "CHANNEL", cid: 3_000)
        let other = try alice.createGroup("Old news", with: [], type: "CHANNEL", cid: 3_001)
        let post = try alice.send("read", to: channel, cid: 3_002).message.id
        for chat in [channel, other] {
            try tour.play(alice, ChatUpdateRequest(chatID: chat, access: .public, link: "the_news"))
        }
        try tour.play(bob, ChatMembersRequest(chatID: channel))
        try tour.play(bob, MsgDeleteRangeRequest(chatID: channel, startTime: 1, endTime: 2))
        try tour.play(bob, MsgGetDetailedReactionsRequest(chatID: channel, messageID: post))
        try tour.play(bob, ChatSuggestRequest())
        for chat in [channel, nowhere] {
            try tour.play(alice, ChatPersonalConfigRequest(chatID: chat))
            try tour.play(alice, ChatPinSetVisibilityRequest(chatID: chat, show: false))
            try tour.play(alice, ChatHideRequest(chatID: chat))
        }
        try tour.collect(alice, bob, tablet)
    }

    private func people(
        _ tour: Tour,
        _ server: TestServer,
        _ alice: WireClient,
        _ bob: WireClient
    ) throws {
        let phone = try server.login(bob).profile.contact.phone ?? 0
        let own = try server.login(alice).profile.contact.phone ?? 0
        let laptop = try server.reconnect(alice).client
        let book = NameMap([(Text("\(phone)"), PhoneBookEntry(firstName: "Bobby"))])
        try tour.play(alice, SyncRequest(contactList: book))
        for (phone, name) in [("+\(phone)", "Bob"), ("+\(own)", "Me"), ("+70000000000", "Nobody")] {
            try tour.play(alice, ContactCreateRequest(phone: phone, firstName: Text(name)))
        }
        for user in [bob.userID, alice.userID, UserID(999)] {
            try tour.play(alice, ContactUpdateRequest(contactID: user, action: .add))
            try tour.play(alice, ContactPhotosRequest(contactID: user))
        }
        try tour.play(alice, ContactUpdateRequest(contactID: bob.userID, action: .block))
        try tour.play(alice, ContactListRequest(status: .blocked))
        let toBlocked = MsgSendRequest(
            userID: bob.userID,
            message: NewMessage(cid: 9_001, text: "hi")
        )
        try tour.play(alice, toBlocked)
        try tour.play(alice, ContactUpdateRequest(contactID: bob.userID, action: .unblock))
        try tour.play(alice, ContactPresenceRequest(contactIDs: [bob.userID]))
        try tour.play(alice, RemoveContactPhotoRequest(photoID: 1))
        try tour.play(alice, ChatSearchCommonParticipantsRequest(userIDs: [bob.userID]))
        try tour.play(alice, ProfileRequest(description: "Plays drums"))
        try tour.play(alice, ProfileRequest(photoID: 1))
        try tour.play(
            alice,
            ConfigRequest(settings: SettingsChange(user: NameMap([("LED", AnyValue(Int64(1)))])))
        )
        let foreign = IDMap([(ChatID(-1), NameMap([("led" as Text, AnyValue(Int64(1)))]))])
        try tour.play(alice, ConfigRequest(settings: SettingsChange(chats: foreign)))
        try tour.collect(alice, bob, laptop)
    }

    private func reactions(
        _ tour: Tour,
        _ server: TestServer,
        _ alice: WireClient,
        _ bob: WireClient
    ) throws {
        let tablet = try server.signIn(phoneOf: alice, device: "tablet")
        let group = try alice.createGroup("Reactions", with: [bob], cid: 2_000)
        let said = try alice.send("boom", to: group, cid: 2_001).message.id
        func react(_ emoji: Text, _ chat: ChatID, _ id: MessageID) -> MsgReactionRequest {
            MsgReactionRequest(chatID: chat, messageID: id, reaction: NewReaction(id: emoji))
        }
        let hello = try alice.send("hello", to: alice.dialog(with: bob), cid: 2_002).message.id
        try alice.call(ContactUpdateRequest(contactID: bob.userID, action: .block))
        try tour.play(alice, react("👍", alice.dialog(with: bob), hello))
        try alice.call(ContactUpdateRequest(contactID: bob.userID, action: .unblock))
        try tour.play(alice, react("x", group, said))
        try tour.play(alice, react("👍", group, said))
        try tour.play(bob, react("🥁", group, said))
        for (chat, id) in [(group, said), (group, MessageID(1)), (ChatID(-1), said)] {
            try tour.play(bob, react("👍", chat, id))
            try tour.play(bob, MsgGetReactionsRequest(chatID: chat, messageIDs: [id]))
            try tour.play(bob, MsgGetDetailedReactionsRequest(chatID: chat, messageID: id))
            try tour.play(bob, MsgCancelReactionRequest(chatID: chat, messageID: id))
            for ids in [[], ["x"]] as [[Text]] {
                try tour.play(
                    alice,
                    ChatReactionsSettingsSetRequest(
                        chatID: chat,
                        isActive: false,
                        reactionIDs: ids
                    )
                )
            }
        }
        try tour.play(bob, ChatReactionsSettingsSetRequest(chatID: group))
        try tour.play(bob, ChatReactionsSettingsGetByChatIdRequest(chatIDs: [group]))
        try tour.play(bob, react("👍", group, said))
        try tour.collect(alice, bob, tablet)
    }

    private func polls(_ tour: Tour, _ alice: WireClient, _ bob: WireClient) throws {
        let group = try alice.createGroup("Polls", with: [bob], cid: 2_100)
        func ask(_ cid: Int64, _ settings: PollSettings) throws -> (MessageID, Int64) {
            let message = NewMessage(cid: cid, attaches: [.poll(settings: settings)])
            let sent = try alice.call(MsgSendRequest(chatID: group, message: message)).message
            let poll = try #require(sent.attaches.stored?.first?.pollID)
            return (sent.id, poll)
        }
        let asked = [try ask(2_101, []), try ask(2_102, .anonymous)]
        for (message, poll) in asked + [(MessageID(1), 1)] {
            for chat in [group, ChatID(-1)] {
                for answers in [[1], [2]] as [[Int64]] {
                    let vote = SendVoteRequest(
                        chatID: chat,
                        messageID: message,
                        pollID: poll,
                        answersIDs: answers
                    )
                    try tour.play(bob, vote)
                }
                let voters = VotersListByAnswerRequest(
                    chatID: chat,
                    messageID: message,
                    pollID: poll,
                    answerID: 1
                )
                try tour.play(bob, voters)
                let reference = PollReference(messageID: message, pollID: poll)
                try tour.play(bob, GetPollUpdatesRequest(chatID: chat, polls: [reference]))
            }
        }
    }

    private func draftsAndFolders(
        _ tour: Tour,
        _ server: TestServer,
        _ alice: WireClient
    ) throws {
        let tablet = try server.signIn(
            phoneOf: alice,
            device: "tablet",
            capabilities: ["objects"]
        )
        try entities(tour, alice)
        for chat in [ChatID(0), ChatID(-1)] {
            try tour.play(alice, DraftSaveRequest(chatID: chat, text: "well"))
            try tour.play(alice, DraftDiscardRequest(chatID: chat))
        }
        try tour.play(alice, DraftSaveRequest(userID: UserID(999), text: "well"))
        try tour.play(alice, DraftDiscardRequest(userID: UserID(999)))
        for id in ["a", "all.chat.folder"] as [Text] {
            try tour.play(alice, FoldersUpdateRequest(id: id))
            try tour.play(alice, FoldersDeleteRequest(folderIDs: [id]))
        }
        for id in ["all.chat.folder", "x"] as [Text] {
            try tour.play(alice, FoldersReorderRequest(foldersOrder: [id]))
        }
        try tour.play(alice, SyncMoreRequest(kind: .drafts, since: 0, upTo: 1))
        try tour.play(alice, FoldersGetRequest())
        try tour.play(alice, FoldersGetByIdRequest(folderIDs: ["a"]))
        try tour.collect(alice, tablet)
    }

    private func entities(_ tour: Tour, _ alice: WireClient) throws {
        let operation = ObjectOperation(
            opID: 1,
            op: .create,
            id: AnyValue("#l1"),
            type: "account",
            modified: 1
        )
        try tour.play(alice, ObjPushRequest(clientNow: 1, ops: [operation]))
        try tour.play(alice, ObjPullRequest())
    }

    private func searching(_ tour: Tour, _ alice: WireClient, _ bob: WireClient) throws {
        let (dialog, nowhere) = (alice.dialog(with: bob), ChatID(-1))
        for chat in [dialog, nowhere] {
            try tour.play(alice, ChatMediaRequest(chatID: chat))
            try tour.play(alice, MsgSearchRequest(chatID: chat, query: "a"))
            try tour.play(alice, MsgGetStatRequest(chatID: chat, messageIDs: [MessageID(1)]))
            try tour.play(alice, ChatComplainRequest(ids: [chat]))
            try tour.play(alice, ComplainRequest(ids: [], parentID: chat))
            try tour.play(alice, ChatBotCommandsRequest(chatID: chat))
            try tour.play(alice, MsgGetCommentsInfoRequest(chatID: chat, postIDs: []))
            try tour.play(
                alice,
                MsgDeleteRangeRequest(chatID: chat, startTime: 1, endTime: 2)
            )
        }
        try tour.play(alice, ChatSearchRequest(query: "a"))
        try tour.play(alice, MsgSearchTouchRequest())
        try tour.play(alice, MsgSharePreviewRequest(text: "https://example.org/"))
        try tour.play(alice, PublicSearchRequest(query: "bob"))
        try tour.play(alice, ComplainRequest(ids: [1], parentID: dialog))
        try tour.play(alice, ComplainRequest(ids: [999]))
        try tour.play(alice, ComplainReasonsGetRequest())
        try tour.play(alice, AssetsGetRequest())
        try tour.play(alice, AssetsUpdateRequest())
        try tour.play(alice, AssetsGetByIdsRequest())
        try tour.play(alice, VideoChatHistoryRequest())
        try tour.play(alice, StoriesFeedRequest())
        try tour.play(alice, BannersGetRequest())
        try tour.play(alice, SuspendBotRequest(botID: bob.userID))
        try tour.play(alice, BotInfoRequest(botID: bob.userID))
    }

    private func sessions(
        _ tour: Tour,
        _ server: TestServer,
        _ alice: WireClient,
        _ bob: WireClient
    ) throws {
        let own = try tour.play(alice, SessionsInfoRequest())?.sessions.first?.id
        try tour.play(alice, SessionsCloseRequest(id: own))
        let modern = try server.reconnect(bob, features: ["phone-lookup"]).client
        try server.reload([FeaturePlan(name: "phone-lookup")])
        try tour.collect(modern)
        try tour.play(alice, SessionsCloseRequest())
        try tour.play(alice, LogoutRequest())
    }

    private func passwords(_ tour: Tour, _ server: TestServer) throws {
        let nina = try server.signUp("Nina")
        func track() throws -> String {
            try #require(try tour.play(nina, AuthCreateTrackRequest())).trackID
        }
        let first = try track()
        for track in [first, "x"] {
            try tour.play(nina, AuthValidateHintRequest(trackID: track, hint: "a"))
            try tour.play(nina, AuthValidatePasswordRequest(trackID: track, password: "secret"))
            try tour.play(nina, AuthCheckPasswordRequest(trackID: track, password: "secret"))
            try tour.play(nina, AuthVerifyEmailRequest(trackID: track, email: "n@example.org"))
            try tour.play(nina, AuthCheckEmailRequest(trackID: track, verifyCode: "x"))
        }
        try tour.play(nina, AuthVerifyEmailRequest(trackID: first, email: "n@example.org"))
        let code = try server.receivedCode(of: "n@example.org")
        for _ in 0..<2 {
            try tour.play(nina, AuthCheckEmailRequest(trackID: first, verifyCode: code))
        }
        for _ in 0..<2 {
            try tour.play(nina, AuthSet2faRequest(trackID: first, password: "secret"))
        }
        let second = try track()
        try tour.play(nina, AuthSet2faRequest(trackID: second, removes: true))
        try tour.play(nina, AuthValidatePasswordRequest(trackID: second, password: "secret"))
        try tour.play(nina, AuthVerifyEmailRequest(trackID: second, email: "n@example.org"))
        for password in ["secret", "wrong", "wrong", "wrong"] {
            try tour.play(nina, AuthCheckPasswordRequest(trackID: second, password: password))
        }
        try tour.play(nina, Auth2faDetailsRequest())
        for _ in 0..<3 { try tour.play(nina, AuthCreateTrackRequest()) }
        try tour.collect(nina)
    }

    private func restoring(_ tour: Tour, _ server: TestServer) throws {
        let otto = try server.signUp("Otto")
        let address = "o@example.org"
        let track = try otto.call(AuthCreateTrackRequest()).trackID
        try otto.call(AuthVerifyEmailRequest(trackID: track, email: address))
        let code = try server.receivedCode(of: address)
        try otto.call(AuthCheckEmailRequest(trackID: track, verifyCode: code))
        let phone = try otto.phone
        let client = try server.connect(device: "new")
        func challenge() throws -> String {
            try #require(try server.enterCode(phone: phone, on: client).passwordChallenge).trackID
        }
        func answer(_ track: String, _ password: String) throws {
            try tour.play(
                client,
                AuthLoginCheckPasswordRequest(trackID: track, password: password)
            )
        }
        func restore(_ track: String, _ code: String?) throws {
            try tour.play(
                client,
                AuthLoginRestorePasswordRequest(trackID: track, verifyCode: code)
            )
        }
        try otto.call(AuthSet2faRequest(trackID: track, password: "secret"))
        try answer(try challenge(), "secret")
        let second = try challenge()
        try answer("x", "secret")
        for _ in 0..<3 { try answer(second, "wrong") }
        try restore("x", nil)
        try restore(second, "x")
        try restore(second, nil)
        let sent = try server.receivedCode(of: address)
        try restore(second, nil)
        try restore(second, "x")
        try restore(second, sent)

        let pia = try server.signUp("Pia")
        try pia.setPassword("secret")
        let reply = try server.enterCode(phone: pia.phone, on: client)
        let third = try #require(reply.passwordChallenge).trackID
        try restore(third, nil)
        // If an administrator blocked the account, the challenge would become invalid. So set the
        // block in the store.
        try server.run { [user = pia.userID] in try $0.setBlocked(true, user) }
        try restore(third, nil)
        try answer(third, "secret")
    }

    private func quickResponses(_ tour: Tour, _ server: TestServer) throws {
        let quinn = try server.signUp("Quinn")
        for isBlocked in [false, true] {
            let web = try server.connect(device: "web")
            let shown = try #require(try tour.play(web, GetQrRequest()))
            try tour.play(web, LoginByQrRequest(trackID: shown.trackID))
            for link in ["x", shown.qrLink] {
                try tour.play(quinn, AuthQrApproveRequest(qrLink: link))
            }
            for track in ["x", shown.trackID] {
                try tour.play(web, GetQrStatusRequest(trackID: track))
            }
            if isBlocked {
                let another = try #require(try tour.play(web, GetQrRequest()))
                try tour.play(quinn, AuthQrApproveRequest(qrLink: another.qrLink))
                try server.run { [user = quinn.userID] in try $0.setBlocked(true, user) }
            }
            for track in ["x", shown.trackID] {
                try tour.play(web, LoginByQrRequest(trackID: track))
            }
        }
    }

    private func ends(_ tour: Tour, _ server: TestServer) throws {
        let rosa = try server.signUp("Rosa")
        let taken = try server.signUp("Sam").phone
        let free = server.freshPhone()
        try tour.play(rosa, PhoneBindRequestRequest(phone: "x"))
        for phone in [taken, free, free, free, free] {
            let ask = PhoneBindRequestRequest(phone: PhoneNumber.format(phone))
            guard let asked = try tour.play(rosa, ask) else { continue }
            let code = try server.receivedCode(of: phone)
            for code in ["x", code, code] {
                try tour.play(
                    rosa,
                    PhoneBindConfirmRequest(token: asked.token, verifyCode: code)
                )
            }
        }
        try tour.play(rosa, ProfileDeleteTimeRequest())
        try tour.play(rosa, ProfileDeleteRequest(delete: true))
    }

    private func breaking(_ tour: Tour, _ server: TestServer) throws {
        let client = try server.connect()
        try tour.play(client, Opcode(rawValue: 999), [0x80])
        try tour.play(client, .login, [0xC1])
        for header in [[9, 0, 0, 0, 0, 1, 0, 0, 0, 0], [10, 7, 0, 0, 0, 1, 0, 0, 0, 0]] {
            let broken = try WireClient(address: server.address)
            try broken.send(raw: header.map { UInt8($0) })
            let packet = try broken.reply(to: 0)
            let error = try ErrorReply.decode(packet.payload, limits: .standard).error
            let code = try #require(RequestError.Code(rawValue: "\(error)"))
            tour.seen.insert(Sight(opcode: .ping, code: code))
        }
    }
}
