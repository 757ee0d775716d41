import Dispatch
import Glibc
import Logging
import Synchronization
import TambourEvents
import TambourGateway
package import TambourMessenger
package import TambourNet
package import TambourProtocol
package import TambourServer
package import TambourStore
package import TambourTLS

/// A whole server in this process, with its own data directory and a free port. It keeps the login
/// codes in memory, so that tests can read them.
package final class TestServer: Sendable {
    package let server: Server
    /// The addresses of the listeners, in the order of `listen`.
    package let addresses: [String]
    package var address: String { addresses[0] }
    package let dataDirectory: String
    private let codes: Codes
    private let features: FeatureFile
    private let nextPhone = Atomic<Int64>(79_990_000_000)
    private let known = Mutex<[UserID]>([])
    private let ownsDirectory: Bool

    /// The login codes that the server has sent to phones and e-mail addresses.
    private final class Codes: Sendable {
        private let known = Mutex<[CodeRecipient: String]>([:])
        private let arrived = DispatchSemaphore(value: 0)

        func deliver(_ recipient: CodeRecipient, _ code: String) {
            known.withLock { $0[recipient] = code }
            arrived.signal()
        }

        func has(_ recipient: CodeRecipient) -> Bool { known.withLock { $0[recipient] != nil } }

        func wait(for recipient: CodeRecipient) throws -> String {
            let deadline = DispatchTime.now() + 120
            while true {
                if let code = known.withLock({ $0.removeValue(forKey: recipient) }) { return code }
                guard arrived.wait(timeout: deadline) == .success else {
                    throw WireClient.Failure.timedOut("a login code")
                }
            }
        }
    }

    /// The feature rules, which replace the file of a real server.
    private final class FeatureFile: Sendable {
        let plans = Mutex<[FeaturePlan]>([])

        func read() throws -> FeatureRules { try FeatureRules(plans.withLock { $0 }) }
    }

    /// - Parameters:
    ///   - overrides: limits by name. A rate limit is off unless `overrides` contains it.
    ///   - lanes: the number of lanes, by default `TAMBOUR_TEST_LANES` or 2. Two lanes reveal
    ///     errors that one lane hides.
    ///   - environment: the clocks, the disk and the randomness. The parameter `userIDs` replaces
    ///     its source of user ids.
    ///   - userIDs: the source of user ids. By default the ids are large and ascending, because
    ///     tests depend on the order in which users sign up.
    ///   - registration: who may create an account.
    ///   - userInvitations: how many people each user may invite.
    ///   - dataDirectory: the data directory of a stopped server; nil creates a new directory.
    ///   - listen: the listeners, as on the command line. `addresses` has the same order.
    ///   - tls: the certificates of the TLS listeners.
    ///   - logs: whether the server's errors are printed.
    package init(
        overrides: [String: Int] = [:],
        lanes: Int? = nil,
        environment: Environment = .live,
        userIDs: UserIDSource = .rising(),
        linkPreviews: LinkPreviewSource? = nil,
        registration: RegistrationPolicy = .open,
        userInvitations: Int = 0,
        dataDirectory: String? = nil,
        listen: [String] = ["127.0.0.1:0"],
        tls: TLSFiles? = nil,
        logs: Bool = true
    ) throws {
        var environment = environment
        environment.userIDs = userIDs
        let codes = Codes()
        self.codes = codes
        let features = FeatureFile()
        self.features = features
        self.dataDirectory = try dataDirectory ?? Self.temporaryDirectory()
        ownsDirectory = dataDirectory == nil
        var limits = Unhurried.limits
        // Password hashing is slow on purpose. Few rounds make the tests fast.
        limits["passwordHashLogRounds"] = 4
        limits.merge(overrides) { $1 }
        var logger = Logger(label: "test") { StreamLogHandler.standardError(label: $0) }
        logger.logLevel = logs ? .error : .critical
        let lanesOfRun = getenv("TAMBOUR_TEST_LANES").flatMap { Int(String(cString: $0)) }
        server = try Server(
            ServerConfiguration(
                listen: listen.map { try ListenEndpoint($0) },
                tls: tls,
                dataDirectory: self.dataDirectory,
                loginCodes: LoginCodeSource { codes.deliver($0, $1) },
                linkPreviews: linkPreviews,
                lanes: lanes ?? lanesOfRun ?? 2,
                registration: registration,
                userInvitations: userInvitations,
                limits: Limits(overrides: limits),
                features: FeatureSource(rules: .none, reload: { try features.read() }),
                environment: environment,
                logger: logger,
                poisonsBuffers: true
            )
        )
        addresses = try server.start()
    }

    /// Stops the server gracefully and waits until it has stopped.
    package func stop() {
        let done = DispatchSemaphore(value: 0)
        server.stop { done.signal() }
        done.wait()
    }

    /// Stops the server. Then removes the data directory if this object created it.
    package func remove() {
        stop()
        if ownsDirectory { Self.removeDirectory(dataDirectory) }
    }

    /// Replaces the feature rules and reloads them through the admin socket.
    ///
    /// - Returns: the output of the command.
    /// - Throws: `AdminService.Failure` if the rules are invalid. In this case the old rules stay
    ///   in use.
    @discardableResult
    package func reload(_ plans: [FeaturePlan]) throws -> [String] {
        features.plans.withLock { $0 = plans }
        var lines: [String] = []
        let admin = AdminClient(dataDirectory: dataDirectory)
        guard try admin.run(.reload, output: { lines.append($0) }) else {
            throw WireClient.Failure.unexpected("no server listens")
        }
        return lines
    }

    // MARK: - Clients

    /// Connects a client that has sent SESSION_INIT.
    ///
    /// - Parameters:
    ///   - source: the local address of the connection; nil for any.
    ///   - layer: the client's side of a layer such as TLS; nil for plain TCP.
    ///   - listener: the index of the listener.
    package func connect(
        device: String = "test",
        capabilities: [String]? = nil,
        features: [String]? = nil,
        source: String? = nil,
        layer: (any ConnectionLayer)? = nil,
        listener: Int = 0
    ) throws -> WireClient {
        let client = try WireClient(address: addresses[listener], source: source, layer: layer)
        _ = try client.call(
            SessionInitRequest(
                userAgent: UserAgent(deviceType: "DESKTOP", appVersion: "1", deviceName: device),
                deviceID: device,
                capabilities: capabilities,
                features: features
            )
        )
        return client
    }

    /// Registers a new user and logs the user in.
    ///
    /// - Parameter isStranger: if false, the function also calls `introduce`. Without it, the new
    ///   user and the earlier users have no access to each other.
    package func signUp(
        _ name: String,
        device: String = "phone",
        capabilities: [String]? = nil,
        features: [String]? = nil,
        isStranger: Bool = false
    ) throws -> WireClient {
        let phone = freshPhone()
        let client = try connect(device: device, capabilities: capabilities, features: features)
        let attributes = try code(for: phone, on: client)
        guard let registration = attributes.register?.token else {
            throw WireClient.Failure.unexpected("\(phone) is registered already")
        }
        let confirmed = try client.call(
            AuthConfirmRequest(firstName: Text(name), token: registration, tokenType: "REGISTER")
        )
        client.token = confirmed.token
        _ = try login(client)
        if !isStranger { introduce(client.userID) }
        return client
    }

    /// Makes the user and all earlier users known to each other, as if each had looked up the
    /// other's phone number.
    package func introduce(_ user: UserID) {
        let others = known.withLock { known in
            defer { known.append(user) }
            return known
        }
        server.messenger.foundPeople.note(others, by: user)
        for other in others { server.messenger.foundPeople.note([user], by: other) }
    }

    /// Logs an existing user in on another device.
    package func signIn(
        phoneOf other: WireClient,
        device: String,
        capabilities: [String]? = nil
    ) throws -> WireClient {
        let profile = try other.call(ContactInfoRequest(contactIDs: [other.userID]))
        guard let phone = profile.contacts.first?.phone else {
            throw WireClient.Failure.unexpected("no phone in the own contact")
        }
        let client = try connect(device: device, capabilities: capabilities)
        guard let token = try code(for: phone, on: client).login?.token else {
            throw WireClient.Failure.unexpected("\(phone) is not registered")
        }
        client.token = token
        _ = try login(client)
        return client
    }

    /// Connects again with the token of another client.
    package func reconnect(
        _ other: WireClient,
        device: String = "phone",
        capabilities: [String]? = nil,
        features: [String]? = nil,
        since mark: Int64 = -1
    ) throws -> (client: WireClient, login: LoginReply) {
        let client = try connect(
            device: device,
            capabilities: capabilities,
            features: features
        )
        client.token = other.token
        return (client, try login(client, since: mark))
    }

    package func login(_ client: WireClient, since mark: Int64 = -1) throws -> LoginReply {
        let reply = try client.call(
            LoginRequest(
                token: client.token,
                interactive: true,
                chatsSync: mark,
                contactsSync: mark,
                draftsSync: mark,
                presenceSync: mark
            )
        )
        client.userID = reply.profile.contact.id
        return reply
    }

    /// Waits for a code that was sent to `phone` and has not been read yet. Returns the code.
    package func receivedCode(of phone: Int64) throws -> String {
        try codes.wait(for: .phone(phone))
    }

    /// Whether a code was sent to `phone` and has not been read yet.
    package func hasCode(of phone: Int64) -> Bool { codes.has(.phone(phone)) }

    /// Waits for a code that was sent to an e-mail address and has not been read yet. Returns the
    /// code.
    package func receivedCode(of email: String) throws -> String {
        try codes.wait(for: .email(email))
    }

    /// Returns a phone number that no user of this server has.
    package func freshPhone() -> Int64 {
        nextPhone.add(1, ordering: .relaxed).newValue
    }

    private func code(for phone: Int64, on client: WireClient) throws -> TokenAttrs {
        let asked = try client.call(
            AuthRequestRequest(phone: PhoneNumber.format(phone), type: "START_AUTH")
        )
        let code = try codes.wait(for: .phone(phone))
        return try client.call(
            AuthCodeRequest(token: asked.token, verifyCode: code, authTokenType: "CHECK_CODE")
        ).tokenAttrs
    }

    // MARK: - Directories

    package static func temporaryDirectory() throws -> String {
        var template = Array("/tmp/tambour-test-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else {
            throw WireClient.Failure.unexpected("no temporary directory")
        }
        return String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    package static func removeDirectory(_ path: String) {
        guard let directory = opendir(path) else { return }
        while let entry = readdir(directory) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if name != ".", name != ".." { unlink("\(path)/\(name)") }
        }
        closedir(directory)
        rmdir(path)
    }
}

extension WireClient {
    /// Returns the id of the dialog with another user.
    package func dialog(with other: WireClient) -> ChatID {
        .dialog(userID, other.userID)
    }

    /// Finds users by phone number. Only then may this client add them to a group; knowing their
    /// ids is not enough.
    package func meet(_ phones: some Sequence<String>) throws {
        for phone in phones { try call(ContactInfoByPhoneRequest(phone: phone)) }
    }

    /// Sends a text.
    @discardableResult
    package func send(_ text: String, to chat: ChatID, cid: Int64) throws -> MsgSendReply {
        try call(
            MsgSendRequest(chatID: chat, message: NewMessage(cid: cid, text: Text(text)))
        )
    }

    /// Creates a group, or a chat of another type, with other users.
    package func createGroup(
        _ title: String,
        with others: [WireClient],
        type: Text = "CHAT",
        cid: Int64
    ) throws -> ChatID {
        let control = NewAttach(
            type: .control,
            title: Text(title),
            event: "new",
            chatType: type,
            userIDs: others.map(\.userID)
        )
        return try call(
            MsgSendRequest(message: NewMessage(cid: cid, attaches: [control]))
        ).chatID
    }
}
