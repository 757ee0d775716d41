import Synchronization
import TambourEvents
import TambourMessenger
import TambourProtocol
import TambourStore
import TambourTesting

/// One random run that depends only on its seed. Five users with two clients each run batches of
/// commands. Between the batches, clients log in.
///
/// `@unchecked Sendable`: commands capture the sequence, and they run on the thread that owns the
/// sequence.
final class SyncSequence: @unchecked Sendable {
    /// How often the server accepted each mutating opcode, and how often other events occurred.
    struct Counts {
        var accepted: [Opcode: Int] = [:]
        var refused = 0
        var logins = 0
        var steps = 0
        var chats = 0
        var bigChats = 0
        /// The number of groups that grew over the fan-out threshold after their creation.
        var grown = 0
        var restarts = 0
        var rollbacks = 0
        /// The number of scheduled messages that were sent.
        var fired = 0
        /// The number of SYNC_MORE pages, and the number of logins that broke off before the client
        /// had read all pages.
        var morePages = 0
        var brokenOff = 0

        mutating func add(_ other: Counts) {
            accepted.merge(other.accepted, uniquingKeysWith: +)
            refused += other.refused
            logins += other.logins
            steps += other.steps
            chats += other.chats
            bigChats += other.bigChats
            grown += other.grown
            restarts += other.restarts
            rollbacks += other.rollbacks
            fired += other.fired
            morePages += other.morePages
            brokenOff += other.brokenOff
        }
    }

    /// The opcodes that change the store.
    static let mutating: [Opcode] = [
        .authRequest, .auth, .logout, .authConfirm, .chatMark, .msgSend, .msgDelete, .msgEdit,
        .sessionsClose, .chatMembersUpdate, .chatLeave, .chatUpdate,
        .chatClear, .chatDelete, .chatJoin, .sync, .contactUpdate, .contactCreate, .profile,
        .config, .msgReaction, .msgCancelReaction, .chatReactionsSettingsSet, .draftSave,
        .draftDiscard, .foldersUpdate, .foldersReorder, .foldersDelete, .phoneBindConfirm,
        .profileDelete, .sendVote, .chatHide, .chatPinSetVisibility, .msgDeleteRange,
        .msgDeleteUserComments,
    ]

    struct Step {
        let command: Command
        /// Handles the answer after the commit.
        let settle: (Answer) throws -> Void
    }

    private struct Poison: Error {}

    private(set) var counts = Counts()
    let machine: SyncMachine
    var random: SeededGenerator
    /// Decides which connections break. A separate generator, so the breaks do not change what the
    /// users do.
    private var network: SeededGenerator
    var oracle: SyncOracle
    var comments = CommentOracle()
    private var users: [UserID] = []
    private(set) var clients: [SyncClient] = []
    private var blocked: Set<UserID> = []
    /// The user who is erased. The sequence erases at most one user, so that other users remain.
    private var erased: UserID?
    private var phones: [Int64] = []
    private var codes: [(client: Int, token: String)] = []
    private var sends: [(request: MsgSendRequest, client: Int)] = []
    private var nextCID: Int64 = 0
    /// All scheduled messages by cid, including messages that the server has already sent.
    private var scheduled: [Int64: (by: Caller, chat: ChatID, id: MessageID)] = [:]
    /// The events of the last batch. They contain facts that the answers omit.
    private var events: [Event] = []
    /// Invitation links and public names. Some are still valid, others were replaced.
    private var links: [Text] = []
    private var failure: (any Error)?

    static let users = 5
    static let clientsPerUser = 2
    static let groups = 5
    static let fanOutMembers = 3

    init(seed: UInt64) throws {
        random = SeededGenerator(seed: seed)
        network = SeededGenerator(seed: ~seed)
        var overrides = [
            "fanOutMembers": Self.fanOutMembers,
            "maxReactionKinds": 3,
            "pollVotesShown": Self.pollVotesShown,
            "pollVotersShown": Self.pollVotersShown,
            "maxCodesPerPhonePerHour": 1_000_000, "maxCodesPerPhoneFromAllPerHour": 1_000_000,
            "maxCodesPerAddressPerHour": 1_000_000,
            "maxNewDialogsPerHour": 1_000_000,
            "erasedChatsPerStep": 2,
            "erasedRowsPerStep": 7,
        ]
        // With a small reply limit, some logins get full lists instead of deltas, and some get
        // several pages.
        if random.chance(20) { overrides["maxReplyBytes"] = 3_000 + random.below(6_000) }
        // With a small step, some reads take several steps.
        if seed % 7 == 0 { overrides.merge(["rowsPerReadStep": 9, "itemsPerReadStep": 2]) { $1 } }
        machine = try SyncMachine(
            seed: seed,
            limits: Limits(overrides: overrides),
            wall: 1_700_000_000_000
        )
        oracle = SyncOracle(fanOutMembers: Self.fanOutMembers)
    }

    /// Runs the whole sequence.
    ///
    /// - Throws: `Divergence` if a client's state differs from the state of a fresh client.
    func run() throws {
        defer { machine.remove() }
        try begin()
        for _ in 0..<(60 + random.below(20)) {
            counts.steps += 1
            moveWall()
            switch random.below(100) {
            case ..<6: try restart()
            case ..<8: try erase()
            case ..<16: try sendDue()
            case ..<38: try login(random.below(clients.count))
            default: try runBatch()
            }
        }
        try end()
        counts.chats = oracle.all.count
        counts.bigChats = oracle.all.count { $0.wasBig }
    }

    // MARK: - Start and end

    private func begin() throws {
        for index in 0..<Self.users {
            let phone = 79_990_000_001 + Int64(index)
            phones.append(phone)
            let origin = SessionOrigin(
                installation: "user \(index), device 0",
                client: "model",
                info: "",
                address: "::1"
            )
            let stranger = Requester(origin: origin)
            let asked: AuthRequestReply = try answer(
                .authRequest(AuthRequestRequest(phone: "+\(phone)")),
                stranger
            )
            let checked: AuthCodeReply = try answer(
                .auth(AuthCodeRequest(token: asked.token, verifyCode: SyncMachine.code)),
                stranger
            )
            guard let token = checked.tokenAttrs.register?.token else {
                throw Divergence("a new phone got no registration token")
            }
            let confirmed: AuthConfirmReply = try answer(
                .authConfirm(AuthConfirmRequest(firstName: Text("User \(index)"), token: token)),
                stranger
            )
            let user = UserID(confirmed.userToken)
            users.append(user)
            for device in 0..<Self.clientsPerUser {
                clients.append(
                    SyncClient(
                        user: user,
                        installation: "user \(index), device \(device)",
                        morePage: network.chance(50) ? Int64(1 + network.below(4)) : nil
                    )
                )
            }
            try signedIn(clients.count - Self.clientsPerUser, token: confirmed.token)
            moveWall()
        }
        for user in users { machine.dispatcher.found.note(users, by: user) }
        try beginChats()
    }

    /// Begins ten to twenty chats. The other dialogs may begin later.
    private func beginChats() throws {
        var steps: [Step] = []
        for (index, user) in users.enumerated() {
            for partner in users[index...] {
                steps.append(send(from: client(of: user), to: partner, message(text())))
            }
        }
        for _ in 0..<Self.groups { steps.append(createGroup(client(of: random.any(of: users)!))) }
        // Some users write drafts for dialogs that do not exist yet.
        for _ in 0..<5 { steps.append(saveDraft(client(of: random.any(of: users)!))) }
        steps.shuffle(using: &random)
        steps.removeLast(random.below(11))
        while !steps.isEmpty {
            let batch = Array(steps.prefix(1 + random.below(6)))
            steps.removeFirst(batch.count)
            try run(batch)
            moveWall()
            if random.chance(30) { try login(random.below(clients.count)) }
        }
    }

    /// Unblocks all users and completes the erasure. Then each remaining client logs in once more
    /// and is checked.
    private func end() throws {
        for user in blocked.sorted() { try run([block(user, false)]) }
        try eraseToTheEnd()
        if let erased { comments.forget(erased) }
        for index in clients.indices where clients[index].user != erased {
            if clients[index].session == nil { try signIn(index) }
            try login(index)
            try checkComments(for: clients[index])
        }
    }

    private func signIn(_ index: Int) throws {
        try run([askCode(index)])
        guard let (client, token) = codes.popLast() else { return }
        try run([enterCode(client, token, SyncMachine.code)])
    }

    private func signedIn(_ index: Int, token: String) throws {
        do {
            let session = try machine.session(of: token)
            clients[index].session = (
                token,
                Caller(
                    userID: session.userID,
                    sessionID: session.id,
                    deviceID: session.deviceID,
                    connectionID: ConnectionID(UInt64(index)),
                    replyBudget: machine.limits.maxReplyBytes
                )
            )
        } catch is RequestError {
            // Another command of the batch has already closed the session.
            clients[index].session = nil
        }
    }

    // MARK: - Time

    /// Moves the wall clock. Often it stays, so that many commits share one millisecond. Otherwise,
    /// it advances a little, leaps forward or runs back.
    private func moveWall() {
        switch random.below(100) {
        case ..<45: break
        case ..<75: machine.world.wallMs += Int64(1 + random.below(5))
        case ..<88: machine.world.wallMs += Int64(random.below(1_000))
        case ..<90: machine.world.wallMs += 3_600_000
        case ..<98: machine.world.wallMs -= Int64(random.below(600))
        default: machine.world.wallMs -= 3_600_000
        }
    }

    /// Restarts the server. In half of the cases, the clock advances before the restart, and runs
    /// back after it.
    private func restart() throws {
        counts.restarts += 1
        let isIdle = random.chance(50)
        if isIdle {
            machine.world.wallMs += Int64(random.below(1_000))
            try login(random.below(clients.count))
        }
        try machine.restart()
        if isIdle { machine.world.wallMs -= Int64(random.below(2_000)) }
    }

    // MARK: - Logins

    private func login(_ index: Int) throws {
        let client = clients[index]
        guard client.session != nil else { return }
        let pagesBefore = client.morePages
        let pages = network.chance(20) ? network.below(3) : .max
        try client.login(machine, count: random.any(of: [1, 3, 5, 50, 200])!, pages: pages)
        counts.logins += 1
        counts.morePages += client.morePages - pagesBefore
        guard client.isComplete else {
            counts.brokenOff += 1
            return
        }
        try client.check(machine, against: oracle)
        if let chat = random.any(of: oracle.chats(of: client.user)) {
            try client.checkHistory(of: chat, machine, oracle)
        }
    }

    /// Returns a step that logs in while the batch is being written. The login's snapshot opens
    /// before the batch commits.
    private func loginInFlight(_ index: Int) -> Step {
        let ticks = Int64(random.below(3))
        let command = Command { _ in
            self.machine.world.wallMs += ticks
            let client = self.clients[index]
            do {
                try client.login(self.machine, count: 200)
                self.counts.logins += 1
                // After a `resync` in SYNC_MORE, the client starts over with a full login.
                guard client.isComplete else { return .done }
                try client.check(self.machine, against: nil)
            } catch is RequestError {
                // An earlier command closed the session, and the engine ran the batch one by one.
            } catch {
                self.failure = error
            }
            return .done
        }
        return Step(command: command) { _ in }
    }

    // MARK: - Commands

    private func runBatch() throws {
        let live = clients.indices.filter { clients[$0].session != nil }
        var batch: [Step] = []
        for _ in 0..<(1 + random.below(5)) {
            guard let index = random.any(of: live), !random.chance(8) else {
                batch.append(signInStep())
                continue
            }
            batch.append(step(by: index))
        }
        try run(batch)
    }

    private func step(by index: Int) -> Step {
        if random.chance(10) { return vote(index) }
        if random.chance(15), let step = comment(index) { return step }
        return switch random.below(213) {
        case ..<36: anySend(index)
        case ..<38: createGroup(index)
        case ..<50: edit(index)
        case ..<66: delete(index)
        case ..<84: mark(index)
        case ..<87: call(.logout(LogoutRequest()), clients[index].requester())
        case ..<91: call(.sessionsClose(SessionsCloseRequest()), clients[index].requester())
        case ..<94: blockOrNot()
        case ..<96: poisoned(index)
        case ..<100: loginInFlight(index)
        case ..<110: changeMembers(index)
        case ..<114: leave(index)
        case ..<122: changeGroup(index)
        case ..<126: clear(index)
        case ..<127: endGroup(index)
        case ..<132: join(index)
        case ..<146: react(index)
        case ..<149: cancelReaction(index)
        case ..<151: setReactions(index)
        case ..<161: saveDraft(index)
        case ..<165: discardDraft(index)
        case ..<172: changeFolders(index)
        case ..<182: changeContact(index)
        case ..<184: changeProfile(index)
        case ..<186: changePrivacy(index)
        case ..<194: schedule(index)
        case ..<196: changeDelayed(index)
        case ..<201: hide(index)
        case ..<203: hidePinned(index)
        case ..<206: deleteRange(index)
        case ..<210: changeReadMarks(index)
        default: random.chance(55) ? moveToAnotherPhone(index) : deleteProfile(index)
        }
    }

    private func run(_ batch: [Step]) throws {
        let result = machine.run(batch.map(\.command))
        if let failure { throw failure }
        events = result.events
        for (step, answer) in zip(batch, result.answers) {
            if case .refusal = answer.outcome { counts.refused += 1 }
            try step.settle(answer)
        }
        for event in result.events {
            guard case .sessionsClosed(let ids, _) = event else { continue }
            for client in clients {
                guard let session = client.session, ids.contains(session.caller.sessionID) else {
                    continue
                }
                client.session = nil
            }
        }
    }

    /// Runs a single command whose reply the caller needs.
    private func answer<Reply: WirePayload>(
        _ request: CommandRequest,
        _ requester: Requester
    ) throws -> Reply {
        var reply: Reply?
        try run([
            call(request, requester) { reply = try self.machine.reply($0) }
        ])
        guard let reply else { throw Divergence("\(request.opcode) was refused") }
        return reply
    }

    func call(
        _ request: CommandRequest,
        _ requester: Requester,
        accepted: @escaping (Answer) throws -> Void = { _ in }
    ) -> Step {
        let dispatcher = machine.dispatcher
        let command = Command { tx in try dispatcher.command(request, from: requester, in: tx) }
        return Step(command: command) { answer in
            guard case .reply = answer.outcome else { return }
            self.counts.accepted[request.opcode, default: 0] += 1
            try accepted(answer)
        }
    }

    /// Returns a command that writes and then fails. The engine rolls back its batch and runs the
    /// commands one by one.
    private func poisoned(_ index: Int) -> Step {
        counts.rollbacks += 1
        let good =
            switch random.below(9) {
            case 0: anySend(index).command
            case 7: changeContact(index).command
            case 4: clear(index).command
            case 5: join(index).command
            case 6: random.chance(50) ? react(index).command : vote(index).command
            case 1: mark(index).command
            case 2: leave(index).command
            case 3: changeGroup(index).command
            default: changeMembers(index).command
            }
        let isRefusal = random.chance(50)
        let command = Command { tx in
            _ = try good.body(tx)
            if isRefusal { throw RequestError.internalError }
            throw Poison()
        }
        return Step(command: command) { answer in
            guard case .refusal = answer.outcome else {
                // The command must end with a refusal. The engine must never accept it.
                throw Divergence("a command that throws was accepted")
            }
        }
    }

    private func blockOrNot() -> Step {
        if let user = blocked.sorted().first { return block(user, false) }
        return block(random.any(of: users.filter { $0 != erased })!, true)
    }

    private func block(_ user: UserID, _ isBlocked: Bool) -> Step {
        let machine = machine
        let command = Command { tx in
            try AdminService(InlineBackend(tx: tx, machine: machine)).run(
                .block(user: "\(user.rawValue)", isBlocked: isBlocked),
                output: { _ in }
            )
            return .done
        }
        return Step(command: command) { answer in
            guard case .done = answer.outcome else { return }
            if isBlocked { self.blocked.insert(user) } else { self.blocked.remove(user) }
        }
    }

    // MARK: - Ends

    private func moveToAnotherPhone(_ index: Int) -> Step {
        let client = clients[index]
        let place = index / Self.clientsPerUser
        let phone = phones[place] + 1_000
        let ask = CommandRequest.phoneBindRequest(PhoneBindRequestRequest(phone: "+\(phone)"))
        let dispatcher = machine.dispatcher
        let machine = machine
        let requester = client.requester()
        let command = Command { tx in
            // Run both requests in one command, so that no other request uses this code.
            let asked = try dispatcher.command(ask, from: requester, in: tx)
            let reply: PhoneBindRequestReply = try machine.reply(asked)
            let confirm = PhoneBindConfirmRequest(
                token: reply.token,
                verifyCode: SyncMachine.code
            )
            return try dispatcher.command(.phoneBindConfirm(confirm), from: requester, in: tx)
        }
        return Step(command: command) { answer in
            guard case .reply = answer.outcome else { return }
            self.counts.accepted[.phoneBindConfirm, default: 0] += 1
            self.phones[place] = phone
        }
    }

    private func deleteProfile(_ index: Int) -> Step {
        call(
            .profileDelete(ProfileDeleteRequest(cancel: random.chance(30))),
            clients[index].requester()
        )
    }

    /// Starts the erasure of one account at some point, or runs another step of it.
    private func erase() throws {
        if erased == nil, random.chance(40) {
            let user = random.any(of: users.filter { !blocked.contains($0) })!
            erased = user
            let command = Command { tx in
                try tx.setDeletion(at: 1, of: user)
                return .done
            }
            try run([Step(command: command) { _ in }])
        }
        for _ in 0..<(1 + random.below(3)) { _ = try eraseStep() }
    }

    private func eraseToTheEnd() throws {
        while try eraseStep() {}
    }

    /// - Returns: Whether a step was done.
    private func eraseStep() throws -> Bool {
        guard let erased else { return false }
        let eraser = AccountEraser(limits: machine.limits)
        let groups = try machine.groupsToErase(erased)
        let isMore = Mutex(false)
        let step = Command { tx in
            let more = try eraser.step(in: tx)
            isMore.withLock { $0 = more }
            return .done
        }
        try run([Step(command: step) { _ in }])
        for chat in oracle.all { oracle.change(chat.name) { $0.requests.remove(erased) } }
        for link in oracle.contacts.keys where link.user == erased || link.owner == erased {
            oracle.contacts[link] = nil
        }
        oracle.names[erased] = nil
        for event in events {
            switch event {
            case .push(.notifMsgDelete(let push), let users, _) where push.postID == nil:
                let viewer = users.first { $0 != erased } ?? erased
                oracle.change(SyncOracle.Name(push.chatID, for: viewer)) { chat in
                    for id in push.messageIDs { chat.change(id) { $0.isRemoved = true } }
                }
            default: break
            }
        }
        for chat in groups.map(SyncOracle.Name.group) + oracle.chats(of: erased).map(\.name) {
            let left = try machine.messagesAnswered(by: erased, in: chat.wireID(for: erased))
            oracle.change(chat) { $0.forgetReactions(of: erased, butTo: left) }
        }
        for chat in oracle.chats(of: erased) {
            let isLeft = try machine.isMember(erased, of: chat.name.wireID(for: erased))
            guard !isLeft else { continue }
            try oracle.change(chat.name) { chat in
                if chat.owner != nil, chat.members.count > 1, !chat.isChannel {
                    chat.append(try self.event(in: chat, by: erased))
                }
                // The server sends no pushes for messages that only the erased user could see. So
                // update the oracle here.
                for index in chat.messages.indices
                where chat.messages[index].sender == erased && !chat.messages[index].isEvent {
                    chat.messages[index].isRemoved = true
                }
                chat.forgetReactions(of: erased, butTo: [])
                if chat.owner == erased { chat.owner = self.heir(of: chat, after: erased) }
                if let owner = chat.owner { chat.permissions[owner] = nil }
                chat.remove([erased])
            }
        }
        return isMore.withLock { $0 }
    }

    /// Returns the new owner of a chat. The server names the owner in its pushes.
    private func heir(of chat: SyncOracle.Chat, after user: UserID) -> UserID? {
        for case .push(.notifChat(let push), _, _) in events
        where push.chat.id == chat.name.wireID(for: user) {
            return push.chat.owner
        }
        return chat.owner
    }

    // MARK: - Signing in

    private func signInStep() -> Step {
        guard !codes.isEmpty, random.chance(60) else {
            return askCode(random.below(clients.count))
        }
        let (client, token) = codes.remove(at: random.below(codes.count))
        return enterCode(client, token, random.chance(90) ? SyncMachine.code : "000000")
    }

    private func askCode(_ index: Int) -> Step {
        let index = clients[index].user == erased ? 0 : index
        let phone = phones[index / Self.clientsPerUser]
        return call(
            .authRequest(AuthRequestRequest(phone: "+\(phone)")),
            Requester(origin: clients[index].origin)
        ) { answer in
            let reply: AuthRequestReply = try self.machine.reply(answer)
            self.codes.append((index, reply.token))
        }
    }

    private func enterCode(_ index: Int, _ token: String, _ code: String) -> Step {
        call(
            .auth(AuthCodeRequest(token: token, verifyCode: code)),
            Requester(origin: clients[index].origin)
        ) { answer in
            let reply: AuthCodeReply = try self.machine.reply(answer)
            guard let token = reply.tokenAttrs.login?.token else {
                // The phone may have no account here: the account moved to another phone, or was
                // erased.
                if self.erased != nil || self.counts.accepted[.phoneBindConfirm] != nil { return }
                throw Divergence("a known phone got no login token")
            }
            try self.signedIn(index, token: token)
        }
    }

    // MARK: - Messages

    private func client(of user: UserID) -> Int {
        users.firstIndex(of: user)! * Self.clientsPerUser
    }

    private func text() -> Text {
        let length = random.chance(10) ? 40 + random.below(400) : 1
        return Text("text \(random.below(1_000)) " + String(repeating: "y", count: length))
    }

    func message(_ text: Text?) -> NewMessage {
        nextCID += 1
        return NewMessage(cid: nextCID, text: text)
    }

    private func anyChat(of user: UserID) -> SyncOracle.Chat? {
        random.any(of: oracle.chats(of: user))
    }

    private func send(from index: Int, to partner: UserID, _ message: NewMessage) -> Step {
        let user = clients[index].user
        if partner != user, random.chance(50) {
            return send(index, MsgSendRequest(userID: partner, message: message))
        }
        let wireID = ChatID.dialog(partner, user)
        return send(index, MsgSendRequest(chatID: wireID, message: message))
    }

    private func send(
        _ index: Int,
        _ request: MsgSendRequest,
        newGroup: (title: String, members: [UserID])? = nil
    ) -> Step {
        let requester = clients[index].requester()
        guard let caller = requester.caller else { return askCode(index) }
        return call(.msgSend(request), requester) { answer in
            let reply: MsgSendReply = try self.machine.reply(answer)
            let isCreation = request.chatID == nil && request.userID == nil
            let key = SyncOracle.SendKey(
                sender: caller.userID,
                device: caller.deviceID,
                cid: request.message.cid,
                chat: isCreation ? nil : SyncOracle.Name(reply.chatID, for: caller.userID)
            )
            try self.oracle.sent(reply, as: key, by: caller.userID, newGroup: newGroup)
            self.sends.append((request, index))
        }
    }

    private func createGroup(_ index: Int) -> Step {
        let others = users.shuffled(using: &random).filter { $0 != clients[index].user }
        let invited = Array(others.prefix(1 + random.below(Self.users - 1)))
        let title = "group \(nextCID)"
        var message = message(nil)
        message.attaches = [
            NewAttach(
                type: .control,
                title: Text(title),
                event: "new",
                chatType: random.chance(35) ? "CHANNEL" : nil,
                userIDs: invited
            )
        ]
        return send(
            index,
            MsgSendRequest(message: message),
            newGroup: (title, invited + [clients[index].user])
        )
    }

    func anySend(_ index: Int) -> Step {
        let user = clients[index].user
        guard let chat = anyChat(of: user), !random.chance(15) else {
            return send(from: index, to: random.any(of: users)!, message(text()))
        }
        var message = message(text())
        switch random.below(100) {
        case ..<45: break
        case ..<60: message.link = link(.reply, to: chat, in: chat, for: user)
        case ..<72:
            if let source = anyChat(of: user) {
                message.link = link(.forward, to: source, in: chat, for: user)
                if random.chance(50) { message.text = nil }
            }
        case ..<86:
            message.attaches = [attach()]
            if random.chance(50) { message.text = nil }
        case ..<96:
            if let sent = random.any(of: sends.suffix(20).map { $0 }) {
                // An outbox got no reply and sends the message again. The repeated message may have
                // other content.
                var again = sent.request
                if again.message.attaches.isEmpty, again.message.link == nil {
                    again.message.text = text()
                }
                return send(sent.client, again, newGroup: nil)
            }
        default: message.text = nil
        }
        if random.chance(20), let text = message.text {
            message.elements = [Element(type: "STRONG", from: 0, length: Int64(text.utf16Count))]
        }
        return send(index, MsgSendRequest(chatID: chat.name.wireID(for: user), message: message))
    }

    private func link(
        _ type: LinkType,
        to source: SyncOracle.Chat,
        in target: SyncOracle.Chat,
        for user: UserID
    ) -> NewLink? {
        guard let original = random.any(of: source.messages) else { return nil }
        return NewLink(
            type: type,
            messageID: original.id,
            chatID: source.name == target.name ? nil : source.name.wireID(for: user)
        )
    }

    private func attach() -> NewAttach {
        switch random.below(5) {
        case 3...: poll()
        case 0: NewAttach(type: .contact, contactID: random.any(of: users)!)
        case 1: NewAttach(type: .location, latitude: 55.75, longitude: 37.62)
        default: NewAttach(type: .share, url: "https://example.org/a")
        }
    }

    /// Returns a message of the chat. Usually it is one of the newest, because a chat list shows
    /// those.
    private func anyMessage(in chat: SyncOracle.Chat) -> SyncOracle.Message? {
        random.any(of: random.chance(60) ? chat.messages.suffix(2) : chat.messages)
    }

    private func edit(_ index: Int) -> Step {
        let user = clients[index].user
        guard let chat = anyChat(of: user) else { return anySend(index) }
        let own = chat.messages.filter { $0.sender == user && !$0.isRemoved }
        guard
            let target = random.chance(85)
                ? random.any(of: random.chance(60) ? own.suffix(1) : own) : anyMessage(in: chat)
        else { return anySend(index) }
        var request = MsgEditRequest(
            chatID: chat.name.wireID(for: user),
            messageID: target.id
        )
        let isText = random.chance(80)
        if isText {
            request.text = text()
        } else {
            request.attaches = [random.chance(40) ? closing(target) ?? attach() : attach()]
        }
        return call(.msgEdit(request), clients[index].requester()) { answer in
            let reply: MsgEditReply = try self.machine.reply(answer)
            self.oracle.change(chat.name) { chat in
                chat.change(target.id) { message in
                    if let text = request.text { message.text = "\(text)" }
                    var poll = SyncOracle.Poll(reply.message.attaches)
                    if poll?.id == message.poll?.id { poll?.votes = message.poll?.votes ?? [:] }
                    message.poll = poll
                }
            }
        }
    }

    private func delete(_ index: Int) -> Step {
        let user = clients[index].user
        guard let chat = anyChat(of: user), let first = anyMessage(in: chat) else {
            return anySend(index)
        }
        var ids = [first.id]
        if random.chance(30), let second = anyMessage(in: chat) { ids.append(second.id) }
        let forMe = random.chance(45)
        let request = MsgDeleteRequest(
            chatID: chat.name.wireID(for: user),
            messageIDs: ids,
            forMe: forMe
        )
        return call(.msgDelete(request), clients[index].requester()) { answer in
            let reply: MsgDeleteReply = try self.machine.reply(answer)
            self.oracle.change(chat.name) { chat in
                for id in reply.messageIDs {
                    chat.change(id) { message in
                        if forMe {
                            message.hiddenFor.insert(user)
                        } else {
                            message.isRemoved = true
                        }
                    }
                }
            }
        }
    }

    // MARK: - Contacts

    private func changeContact(_ index: Int) -> Step {
        let owner = clients[index].user
        let user = random.any(of: users)!
        let link = SyncOracle.Link(owner: owner, user: user)
        let name = "Friend \(random.below(5))"
        let requester = clients[index].requester()
        func settle(_ change: @escaping (inout SyncOracle.Contact) -> Void) -> (Answer) -> Void {
            { _ in
                guard owner != user else { return }
                var contact = self.oracle.contacts[link] ?? SyncOracle.Contact()
                change(&contact)
                let isPartner = self.oracle.chats(of: owner).contains {
                    $0.name == .pair(low: min(owner, user), high: max(owner, user))
                }
                if !contact.isAdded, !contact.isBlocked, !isPartner { contact.name = nil }
                self.oracle.contacts[link] = contact
            }
        }
        func added(_ contact: inout SyncOracle.Contact) {
            contact.isAdded = true
            contact.name = name
        }
        let phone = phones[users.firstIndex(of: user)!]
        switch random.below(6) {
        case 0:
            let request = SyncRequest(
                contactList: NameMap([(Text("+\(phone)"), PhoneBookEntry(firstName: Text(name)))])
            )
            return call(.sync(request), requester) { [self] answer in
                let reply: SyncReply = try machine.reply(answer)
                if !reply.contacts.isEmpty { settle(added)(answer) }
            }
        case 1:
            let request = ContactCreateRequest(phone: "+\(phone)", firstName: Text(name))
            return call(.contactCreate(request), requester, accepted: settle(added))
        default:
            let action = random.any(of: [
                ContactAction.add, .remove, .update, .block, .unblock, .unblock,
            ])!
            let request = ContactUpdateRequest(
                contactID: user,
                action: action,
                firstName: Text(random.chance(80) ? name : "")
            )
            let given = request.firstName == "" ? nil : name
            return call(
                .contactUpdate(request),
                requester,
                accepted: settle { contact in
                    switch action {
                    case .add:
                        contact.isAdded = true
                        contact.name = given
                    case .update: contact.name = given
                    case .remove:
                        contact.isAdded = false
                        contact.name = nil
                    case .block: contact.isBlocked = true
                    case .unblock: contact.isBlocked = false
                    }
                }
            )
        }
    }

    private func changeProfile(_ index: Int) -> Step {
        let user = clients[index].user
        let request = ProfileRequest(
            firstName: Text("Name \(random.below(4))"),
            description: random.chance(30) ? Text(random.chance(50) ? "" : "about") : nil
        )
        return call(.profile(request), clients[index].requester()) { _ in
            self.oracle.names[user] = "\(request.firstName ?? "")"
        }
    }

    private func changePrivacy(_ index: Int) -> Step {
        let user = clients[index].user
        let audience = random.any(of: ["ALL", "ALL", "CONTACTS", "NONE"])!
        let settings = SettingsChange(
            user: NameMap([("PHONE_NUMBER_PRIVACY", AnyValue(Text(audience)))])
        )
        return call(.config(ConfigRequest(settings: settings)), clients[index].requester()) { _ in
            self.oracle.phoneAudience[user] = audience
        }
    }

    private func changeReadMarks(_ index: Int) -> Step {
        let user = clients[index].user
        // The value null resets the setting to its default.
        let value = random.any(of: [AnyValue(false), AnyValue(false), AnyValue(true), nil])!
        let settings = SettingsChange(
            user: NameMap([
                ("SHOW_READ_MARK", value ?? AnyValue(unchecked: Bytes([0xC0])))
            ])
        )
        return call(.config(ConfigRequest(settings: settings)), clients[index].requester()) { _ in
            if value == AnyValue(false) {
                self.oracle.hidesMarks.insert(user)
            } else {
                self.oracle.hidesMarks.remove(user)
            }
        }
    }

    // MARK: - Groups

    /// Returns a group. Usually returns a client of its owner, too; otherwise the client with this
    /// index.
    private func actor(_ index: Int) -> (client: Int, chat: SyncOracle.Chat)? {
        guard let chat = random.any(of: oracle.all.filter { $0.owner != nil }) else { return nil }
        guard random.chance(65) else { return (index, chat) }
        let owners = clients.indices.filter {
            clients[$0].user == chat.owner && clients[$0].session != nil
        }
        return (random.any(of: owners) ?? index, chat)
    }

    /// Returns the event that a command created. Finds it in the pushes to other users.
    private func event(in chat: SyncOracle.Chat, by user: UserID) throws -> SyncOracle.Message {
        let last = chat.messages.last?.id ?? MessageID(0)
        for case .push(.notifMessage(let push), _, _) in events {
            let message = push.message
            guard push.chatID == chat.name.wireID(for: user), message.cid == nil,
                message.sender == (chat.isChannel ? nil : user), message.id > last
            else { continue }
            return SyncOracle.Message(id: message.id, sender: user, text: "", isEvent: true)
        }
        throw Divergence("nobody was told what happened to \(chat.name)")
    }

    private func changeMembers(_ index: Int) -> Step {
        guard let (index, chat) = actor(index) else { return anySend(index) }
        let user = clients[index].user
        var request = ChatMembersUpdateRequest(
            chatID: chat.name.wireID(for: user),
            userIDs: Array(users.shuffled(using: &random).prefix(1 + random.below(3))),
            operation: random.chance(60) ? .add : .remove,
            showHistory: random.chance(50),
            cleanMsgPeriod: random.chance(20) ? -1 : 0
        )
        if random.chance(20) {
            request.type = .admin
            request.permissions = random.any(of: [2, 4, 6, 30, 1_024, 768])
        } else if !chat.requests.isEmpty, random.chance(50) {
            request.type = .joinRequest
        } else if request.operation == .remove {
            request.userIDs = [random.any(of: users)!]
        }
        return call(.chatMembersUpdate(request), clients[index].requester()) { _ in
            try self.oracle.change(chat.name) { chat in
                try self.membersChanged(request, in: &chat, by: user)
            }
        }
    }

    private func membersChanged(
        _ request: ChatMembersUpdateRequest,
        in chat: inout SyncOracle.Chat,
        by user: UserID
    ) throws {
        if request.type == .joinRequest {
            return try requestsDecided(request, in: &chat, by: user)
        }
        let members = chat.members.filter { request.userIDs.contains($0) }
        switch (request.type == .admin, request.operation) {
        case (true, .add):
            for member in members { chat.permissions[member] = request.permissions }
        case (true, .remove):
            for member in members { chat.permissions[member] = nil }
        case (_, .admin), (_, .revokeAdmin): preconditionFailure("sequences name the type")
        case (false, .add):
            let added = Set(request.userIDs).subtracting(chat.members).sorted()
            guard !added.isEmpty else { return }
            if !chat.wasBig, chat.members.count + added.count > Self.fanOutMembers {
                counts.grown += 1
            }
            chat.add(added, showingHistory: request.showHistory)
            if !chat.isChannel { chat.append(try event(in: chat, by: user)) }
        case (false, .remove):
            guard !members.isEmpty else { return }
            chat.remove(members)
            if !chat.isChannel { chat.append(try event(in: chat, by: user)) }
            guard request.cleanMsgPeriod == -1 else { return }
            for index in chat.messages.indices {
                let message = chat.messages[index]
                if members.contains(message.sender), !message.isEvent {
                    chat.messages[index].isRemoved = true
                }
            }
        }
    }

    private func requestsDecided(
        _ request: ChatMembersUpdateRequest,
        in chat: inout SyncOracle.Chat,
        by user: UserID
    ) throws {
        let asking = chat.requests.intersection(request.userIDs)
        guard request.operation == .add else {
            chat.requests.subtract(asking)
            return
        }
        let added = asking.filter { !blocked.contains($0) && $0 != erased }.sorted()
        guard !added.isEmpty else { return }
        chat.add(added, showingHistory: request.showHistory)
        if !chat.isChannel { chat.append(try event(in: chat, by: user)) }
    }

    private func leave(_ index: Int) -> Step {
        let user = clients[index].user
        guard let chat = random.any(of: oracle.chats(of: user).filter { $0.owner != nil }) else {
            return anySend(index)
        }
        let request = ChatLeaveRequest(chatID: chat.name.wireID(for: user))
        return call(.chatLeave(request), clients[index].requester()) { _ in
            try self.oracle.change(chat.name) { chat in
                if !chat.isChannel { chat.append(try self.event(in: chat, by: user)) }
                chat.remove([user])
            }
        }
    }

    private func changeGroup(_ index: Int) -> Step {
        guard let (index, chat) = actor(index) else { return anySend(index) }
        let user = clients[index].user
        var request = ChatUpdateRequest(chatID: chat.name.wireID(for: user))
        let options = RoleTable.Options.named.map(\.name)
        switch random.below(7) {
        case 6:
            if random.chance(30) {
                request.access = .private
            } else {
                request.access = .public
                request.link = Text("name_\(random.below(3))")
            }
        case 5: request.revokePrivateLink = true
        case 0: request.theme = Text("title \(random.below(3))")
        case 1: request.description = Text(random.chance(30) ? "" : "about \(random.below(3))")
        case 2: request.options = NameMap([(Text(random.any(of: options)!), random.chance(60))])
        case 3:
            request.pinMessageID =
                random.chance(25) ? MessageID(0) : anyMessage(in: chat)?.id ?? MessageID(0)
            request.notifyPin = random.chance(50)
        default: request.changeOwnerID = random.any(of: users)!
        }
        return call(.chatUpdate(request), clients[index].requester()) { answer in
            let reply: ChatUpdateReply = try self.machine.reply(answer)
            if request.revokePrivateLink {
                guard let link = reply.chat.link else { throw Divergence("no link was made") }
                self.links.append(link)
            }
            if let link = request.link { self.links.append(link) }
            try self.oracle.change(chat.name) { chat in
                try self.groupChanged(request, in: &chat, by: user)
            }
        }
    }

    private func groupChanged(
        _ request: ChatUpdateRequest,
        in chat: inout SyncOracle.Chat,
        by user: UserID
    ) throws {
        if let title = request.theme.map({ "\($0)" }), title != chat.title {
            chat.title = title
            chat.append(try event(in: chat, by: user))
        }
        if let description = request.description {
            chat.description = description.isEmpty ? nil : "\(description)"
        }
        if let access = request.access {
            chat.publicName = access == .public ? request.link.map { "\($0)" } : nil
        }
        for (name, isSet) in request.options?.pairs ?? [] {
            if isSet {
                chat.options.insert("\(name)")
            } else {
                chat.options.remove("\(name)")
            }
        }
        if let pin = request.pinMessageID {
            let pinned = pin == MessageID(0) ? nil : pin
            if pinned != chat.pinned {
                chat.pinned = pinned
                if request.notifyPin { chat.append(try event(in: chat, by: user)) }
            }
        }
        if let owner = request.changeOwnerID, owner != chat.owner {
            chat.owner.map { chat.permissions[$0] = 2_047 }
            chat.permissions[owner] = nil
            chat.owner = owner
        }
    }

    private func clear(_ index: Int) -> Step {
        let user = clients[index].user
        guard let chat = anyChat(of: user) else { return anySend(index) }
        let request = ChatClearRequest(
            chatID: chat.name.wireID(for: user),
            lastEventTime: random.chance(40) ? nil : anyMessage(in: chat)?.id.timeMs,
            forAll: random.chance(25)
        )
        return call(.chatClear(request), clients[index].requester()) { _ in
            let isShown = self.oracle.showsMark(of: user, in: chat.name.wireID(for: user))
            self.oracle.change(chat.name) { chat in
                guard let head = chat.messages.last?.id else { return }
                let asked = request.lastEventTime.map { MessageID($0 << 16 | 0xFFFF) } ?? head
                let last = min(asked, head)
                if request.forAll {
                    for index in chat.messages.indices where chat.messages[index].id <= last {
                        chat.messages[index].isRemoved = true
                    }
                } else if last > chat.floors[user] ?? MessageID(0) {
                    chat.floors[user] = last
                    chat.read(by: user, upTo: last.timeMs, isShown: isShown)
                }
            }
        }
    }

    /// Returns a step that deletes the messages between two messages. Users who may clear the
    /// history delete all these messages. Other users delete only their own.
    private func deleteRange(_ index: Int) -> Step {
        let user = clients[index].user
        guard let chat = anyChat(of: user), let one = anyMessage(in: chat),
            let other = anyMessage(in: chat)
        else { return anySend(index) }
        let request = MsgDeleteRangeRequest(
            chatID: chat.name.wireID(for: user),
            startTime: min(one.id, other.id).timeMs,
            endTime: max(one.id, other.id).timeMs
        )
        return call(.msgDeleteRange(request), clients[index].requester()) { _ in
            self.oracle.change(chat.name) { chat in
                let mayDelete: Int64 = 1024
                let isAll =
                    chat.members == [user] && chat.owner == nil || chat.owner == user
                    || chat.permissions[user, default: 0] & mayDelete != 0
                let floor = chat.floors[user] ?? MessageID(0)
                let range = request.startTime...request.endTime
                for (index, message) in chat.messages.enumerated()
                where range.contains(message.id.timeMs) && message.id > floor
                    && (isAll || message.sender == user && !message.isEvent)
                {
                    chat.messages[index].isRemoved = true
                }
            }
        }
    }

    /// Returns a step that deletes a group for everybody.
    private func endGroup(_ index: Int) -> Step {
        guard let (index, chat) = actor(index) else { return anySend(index) }
        let request = ChatDeleteRequest(
            chatID: chat.name.wireID(for: clients[index].user),
            forAll: true
        )
        return call(.chatDelete(request), clients[index].requester()) { _ in
            self.oracle.change(chat.name) { chat in
                chat.remove(chat.members)
                chat.requests = []
            }
        }
    }

    private func join(_ index: Int) -> Step {
        let user = clients[index].user
        guard let link = random.any(of: links) else { return changeGroup(index) }
        let request = ChatJoinRequest(link: link)
        return call(.chatJoin(request), clients[index].requester()) { answer in
            let reply: ChatJoinReply = try self.machine.reply(answer)
            try self.oracle.change(SyncOracle.Name(reply.chat.id, for: user)) { chat in
                guard !chat.members.contains(user) else { return }
                guard !chat.options.contains("JOIN_REQUEST") else {
                    chat.requests.insert(user)
                    return
                }
                chat.add([user], showingHistory: true)
                if !chat.isChannel { chat.append(try self.event(in: chat, by: user)) }
            }
        }
    }

    private func hide(_ index: Int) -> Step {
        let user = clients[index].user
        guard let chat = anyChat(of: user) else { return anySend(index) }
        let request = ChatHideRequest(chatID: chat.name.wireID(for: user))
        return call(.chatHide(request), clients[index].requester()) { _ in
            self.oracle.change(chat.name) { $0.hidden[user] = $0.messages.last?.id }
        }
    }

    private func hidePinned(_ index: Int) -> Step {
        let user = clients[index].user
        guard let chat = anyChat(of: user) else { return anySend(index) }
        let request = ChatPinSetVisibilityRequest(
            chatID: chat.name.wireID(for: user),
            show: random.chance(40)
        )
        return call(.chatPinSetVisibility(request), clients[index].requester())
    }

    private func mark(_ index: Int) -> Step {
        let user = clients[index].user
        guard let chat = anyChat(of: user) else { return anySend(index) }
        var request = ChatMarkRequest(type: .readMessage, chatID: chat.name.wireID(for: user))
        switch random.below(10) {
        case ..<3: request.messageID = anyMessage(in: chat)?.id
        case ..<5: request.mark = machine.world.wallMs + Int64(random.below(2_000)) - 1_000
        case ..<6: break
        case ..<9:
            request.type = .setAsUnread
            request.messageID = anyMessage(in: chat)?.id
        default: request.type = .readReaction
        }
        return call(.chatMark(request), clients[index].requester()) { answer in
            let reply: ChatMarkReply = try self.machine.reply(answer)
            let isShown = self.oracle.showsMark(of: user, in: chat.name.wireID(for: user))
            try self.oracle.change(chat.name) { chat in
                chat.mark(request, by: user, isShown: isShown)
                guard reply.mark == chat.marks[user] else {
                    throw Divergence("the mark is \(reply.mark), not \(chat.marks[user] ?? 0)")
                }
            }
        }
    }
}

// MARK: - Reactions, drafts, folders

extension SyncSequence {
    private static let emojis: [Text] = ["👍", "🥁", "🔥", "❤️", "😮"]

    private func react(_ index: Int) -> Step {
        let user = clients[index].user
        guard let chat = anyChat(of: user), let target = anyMessage(in: chat) else {
            return anySend(index)
        }
        let emoji = random.any(of: Self.emojis)!
        let request = MsgReactionRequest(
            chatID: chat.name.wireID(for: user),
            messageID: target.id,
            reaction: NewReaction(id: emoji)
        )
        return call(.msgReaction(request), clients[index].requester()) { answer in
            let reply: MsgReactionReply = try self.machine.reply(answer)
            try self.reacted(user, "\(emoji)", to: target.id, in: chat.name, reply.reactionInfo)
        }
    }

    private func cancelReaction(_ index: Int) -> Step {
        let user = clients[index].user
        guard let chat = anyChat(of: user) else { return anySend(index) }
        let own = chat.messages.filter { $0.reactions[user] != nil }
        guard let target = random.any(of: own) ?? anyMessage(in: chat) else {
            return anySend(index)
        }
        let request = MsgCancelReactionRequest(
            chatID: chat.name.wireID(for: user),
            messageID: target.id
        )
        return call(.msgCancelReaction(request), clients[index].requester()) { answer in
            let reply: MsgCancelReactionReply = try self.machine.reply(answer)
            try self.reacted(user, nil, to: target.id, in: chat.name, reply.reactionInfo)
        }
    }

    private func reacted(
        _ user: UserID,
        _ emoji: String?,
        to id: MessageID,
        in name: SyncOracle.Name,
        _ info: ReactionInfo
    ) throws {
        oracle.change(name) { chat in chat.change(id) { $0.reactions[user] = emoji } }
        guard let message = oracle.chats[name]?.messages.first(where: { $0.id == id }),
            try SyncOracle.Reactions(Packed(info))
                == SyncOracle.Reactions(message.reactions, for: user)
        else { throw Divergence("the reply to a reaction is \(info)") }
    }

    private func setReactions(_ index: Int) -> Step {
        guard let (index, chat) = actor(index) else { return anySend(index) }
        var request = ChatReactionsSettingsSetRequest(
            chatID: chat.name.wireID(for: clients[index].user)
        )
        switch random.below(3) {
        case 0: request.isActive = random.chance(50)
        case 1: request.count = Int64(1 + random.below(3))
        default:
            request.reactionIDs = Array(Self.emojis.prefix(random.below(4)))
            request.included = random.chance(50)
        }
        return call(.chatReactionsSettingsSet(request), clients[index].requester())
    }

    /// Returns a chat of the user, or a dialog that may not exist yet.
    private func draftPlace(_ index: Int) -> (name: SyncOracle.Name, chat: ChatID?, user: UserID?) {
        let user = clients[index].user
        if random.chance(50), let chat = anyChat(of: user) {
            return (chat.name, chat.name.wireID(for: user), nil)
        }
        let partner = random.any(of: users)!
        let name = SyncOracle.Name.pair(low: min(user, partner), high: max(user, partner))
        return random.chance(50)
            ? (name, nil, partner) : (name, name.wireID(for: user), nil)
    }

    private func saveDraft(_ index: Int) -> Step {
        let user = clients[index].user
        let place = draftPlace(index)
        var draft = NewDraft(text: random.chance(90) ? text() : "")
        if random.chance(20) { draft.replyTo = MessageID(Int64(1 + random.below(5))) }
        let request = DraftSaveRequest(chatID: place.chat, userID: place.user, draft: draft)
        let kept =
            draft.text?.isEmpty == true && draft.replyTo == nil
            ? nil : SyncOracle.Draft(text: "\(draft.text ?? "")", replyTo: draft.replyTo)
        return call(.draftSave(request), clients[index].requester()) { _ in
            self.oracle.drafts[user, default: [:]][place.name] = kept
        }
    }

    private func discardDraft(_ index: Int) -> Step {
        let user = clients[index].user
        var place = draftPlace(index)
        let names = (oracle.drafts[user] ?? [:]).keys.sorted {
            $0.wireID(for: user) < $1.wireID(for: user)
        }
        if random.chance(80), let name = random.any(of: names) {
            place = (name, name.wireID(for: user), nil)
        }
        let request = DraftDiscardRequest(chatID: place.chat, userID: place.user)
        return call(.draftDiscard(request), clients[index].requester()) { _ in
            self.oracle.drafts[user]?[place.name] = nil
        }
    }

    // MARK: Scheduled messages

    private func schedule(_ index: Int) -> Step {
        let client = clients[index]
        guard let caller = client.requester().caller else { return askCode(index) }
        let partner = random.any(of: users)!
        let chat =
            random.chance(60) ? anyChat(of: client.user)?.name.wireID(for: client.user) : nil
        var message = message(text())
        message.delayedAttributes = DelayedAttributes(
            timeToFire: machine.world.wallMs + Int64(random.below(6_000)) - 1_000
        )
        let request = MsgSendRequest(
            chatID: chat,
            userID: chat == nil ? partner : nil,
            message: message
        )
        return call(.msgSend(request), client.requester()) { answer in
            let reply: MsgSendReply = try self.machine.reply(answer)
            guard reply.message.delayedAttributes != nil else {
                return try self.sent(reply, by: caller, cid: message.cid)
            }
            self.scheduled[message.cid] = (caller, reply.chatID, reply.message.id)
        }
    }

    private func sent(_ reply: MsgSendReply, by caller: Caller, cid: Int64) throws {
        let key = SyncOracle.SendKey(
            sender: caller.userID,
            device: caller.deviceID,
            cid: cid,
            chat: SyncOracle.Name(reply.chatID, for: caller.userID)
        )
        try oracle.sent(reply, as: key, by: caller.userID, newGroup: nil)
    }

    private func changeDelayed(_ index: Int) -> Step {
        let client = clients[index]
        let own = scheduled.values.filter { $0.by.userID == client.user }
            .sorted { $0.id < $1.id }
        guard let target = random.any(of: own) else { return schedule(index) }
        if random.chance(40) {
            let request = MsgDeleteRequest(
                chatID: target.chat,
                messageIDs: [target.id],
                itemType: .delayed
            )
            return call(.msgDelete(request), client.requester())
        }
        let request = MsgEditRequest(
            chatID: target.chat,
            messageID: target.id,
            text: text(),
            delayedAttributes: DelayedAttributes(
                timeToFire: machine.world.wallMs + Int64(random.below(3_000))
            )
        )
        return call(.msgEdit(request), client.requester())
    }

    /// Advances the clock and sends due messages. Only the events report these messages.
    private func sendDue() throws {
        machine.world.wallMs += Int64(random.below(3_000))
        let dispatcher = machine.dispatcher
        try run([
            Step(
                command: Command { tx in
                    _ = try dispatcher.sendDue(in: tx)
                    return .done
                },
                settle: { _ in }
            )
        ])
        for case .push(.notifMessage(let push), to: _, except: _) in events {
            // In a channel, only the author of the post gets the `cid`.
            if push.message.cid == nil, push.chatID.isChannel { continue }
            guard let cid = push.message.cid, let origin = scheduled[cid] else {
                throw Divergence("a message was sent that nobody had scheduled")
            }
            counts.fired += 1
            let reply = MsgSendReply(
                chatID: push.chatID,
                message: push.message,
                unread: 0,
                mark: push.message.time,
                prevMessageID: push.prevMessageID
            )
            try sent(reply, by: origin.by, cid: cid)
        }
    }

    private func changeFolders(_ index: Int) -> Step {
        let user = clients[index].user
        let requester = clients[index].requester()
        let ids = ["a", "b", "c", "d"].shuffled(using: &random)
        switch random.below(10) {
        case ..<5:
            let include = oracle.chats(of: user).map { $0.name.wireID(for: user) }
            let folder = SyncOracle.Folder(
                id: ids[0],
                title: "folder \(random.below(3))",
                include: Array(include.prefix(random.below(3)))
            )
            let request = FoldersUpdateRequest(
                id: Text(folder.id),
                title: Text(folder.title),
                include: folder.include
            )
            return call(.foldersUpdate(request), requester) { _ in
                var folders = self.oracle.folders[user] ?? [.all]
                if let place = folders.firstIndex(where: { $0.id == folder.id }) {
                    folders[place] = folder
                } else {
                    folders.append(folder)
                }
                self.oracle.folders[user] = folders
            }
        case ..<8:
            let all = (oracle.folders[user] ?? [.all]).map(\.id).shuffled(using: &random)
            let order = Array(all.prefix(1 + random.below(all.count)))
            return call(
                .foldersReorder(FoldersReorderRequest(foldersOrder: order.map { Text($0) })),
                requester
            ) { _ in
                let folders = self.oracle.folders[user] ?? [.all]
                self.oracle.folders[user] =
                    order.compactMap { id in folders.first { $0.id == id } }
                    + folders.filter { !order.contains($0.id) }
            }
        default:
            let gone = Array(ids.prefix(1 + random.below(2)))
            return call(
                .foldersDelete(FoldersDeleteRequest(folderIDs: gone.map { Text($0) })),
                requester
            ) { _ in
                self.oracle.folders[user]?.removeAll { gone.contains($0.id) }
            }
        }
    }
}

/// Runs admin commands inside the current batch.
///
/// `@unchecked Sendable`: the backend exists only while its command runs.
final class InlineBackend: AdminBackend, @unchecked Sendable {
    private let tx: WriteTransaction
    let machine: SyncMachine

    init(tx: WriteTransaction, machine: SyncMachine) {
        self.tx = tx
        self.machine = machine
    }

    func write(_ body: @escaping @Sendable (WriteTransaction) throws -> Void) throws {
        try body(tx)
    }

    func read(_ body: @escaping @Sendable (StoreConnection) throws -> Void) throws {
        preconditionFailure("blocking a user asks nothing of a reader")
    }

    func readApart<Result>(_ body: (StoreConnection) throws -> Result) throws -> Result {
        preconditionFailure("blocking a user asks nothing of a reader")
    }

    func vacuum() throws -> (before: Int64, after: Int64) {
        preconditionFailure("not in a transaction")
    }

    var environment: TambourMessenger.Environment { machine.world.environment }
    var limits: Limits { machine.limits }
    var metricsText: String? { nil }
    func reload() throws -> [String]? { nil }
}
