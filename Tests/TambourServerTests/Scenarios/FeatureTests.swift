import Dispatch
import TambourFraming
import TambourMessenger
import TambourProtocol
import TambourServer
import TambourTesting
import Testing

/// Tests features as clients use them: the decisions in SESSION_INIT and LOGIN, requests that a
/// feature controls, and the effect of a reload.
@Suite("Features")
struct FeatureTests {
    private static let lookup = "phone-lookup"

    private func hello(_ names: [String]?, device: String = "device") -> SessionInitRequest {
        SessionInitRequest(
            userAgent: UserAgent(deviceType: "IOS", appVersion: "2.4", locale: "de-AT"),
            deviceID: device,
            features: names
        )
    }

    /// Returns the server's decisions about the named features for a new connection.
    private func answers(
        _ server: TestServer,
        _ names: [String]?,
        device: String = "device"
    ) throws -> [SessionFeature]? {
        try WireClient(address: server.address).call(hello(names, device: device)).features
    }

    private func isServed(_ client: WireClient) throws -> Bool {
        let code = try client.code(of: ContactInfoByPhoneRequest(phone: "1"))
        #expect(code == .userNotFound || code == .protoOpcode)
        return code == .userNotFound
    }

    private func off(_ name: String) -> FeaturePlan { FeaturePlan(name: name) }
    private func on(_ name: String) -> FeaturePlan {
        FeaturePlan(name: name, rules: [FeatureRule()])
    }
    private func killed(_ name: String) -> FeaturePlan {
        FeaturePlan(name: name, isKilled: true, rules: [FeatureRule()])
    }
    /// Returns a plan that turns a feature on for these users. The feature is off for other users
    /// and before login.
    private func only(_ users: WireClient..., named name: String) -> FeaturePlan {
        FeaturePlan(
            name: name,
            rules: [FeatureRule(userIDs: Set(users.map(\.userID.rawValue)))]
        )
    }

    // MARK: - The handshake

    @Test("SESSION_INIT answers what is known, by name and once; what nobody knows is ignored")
    func known() throws {
        try withServer { server in
            let first = try #require(try answers(server, ["zebra", Self.lookup, "apple"]))
            #expect(first == [SessionFeature(type: Self.lookup, enabled: true)])
            try server.reload([
                on("zebra"),
                FeaturePlan(
                    name: "apple",
                    variations: [.init(name: "red", weight: 1)],
                    rules: [FeatureRule(systems: ["IOS"], locales: ["de"])]
                ),
            ])
            let names = ["zebra", Self.lookup, "apple", "zebra", "BIG", "", "unknown"]
            let second = try #require(try answers(server, names))
            #expect(
                second == [
                    SessionFeature(type: "apple", enabled: true, variation: "red"),
                    SessionFeature(type: Self.lookup, enabled: true),
                    SessionFeature(type: "zebra", enabled: true),
                ]
            )
            #expect(try answers(server, ["unknown"]) == [])
            #expect(try answers(server, []) == [])
            #expect(try answers(server, nil) == nil)
        }
    }

    @Test("the same device gets the same answers on every connection and after a restart")
    func stable() throws {
        let plans = (0..<10).map {
            FeaturePlan(
                name: "f\($0)",
                variations: [.init(name: "a", weight: 1), .init(name: "b", weight: 1)],
                rules: [FeatureRule(percent: 50_00)]
            )
        }
        let names = plans.map(\.name)
        func told(_ device: String) throws -> [SessionFeature] {
            var told: [SessionFeature] = []
            try withServer { server in
                try server.reload(plans)
                told = try #require(try answers(server, names, device: device))
                #expect(try answers(server, names.reversed(), device: device) == told)
            }
            return told
        }
        #expect(try told("one") == told("one"))
        #expect(try told("one") != told("other"))
    }

    @Test("LOGIN decides for the user: its answers replace those of the device")
    func users() throws {
        try withPair { server, alice, bob, _ in
            try server.reload([only(alice, named: "apple")])
            let device = try answers(server, ["apple"], device: "phone")
            #expect(device == [SessionFeature(type: "apple", enabled: false)])
            let known = try server.reconnect(alice, features: ["apple"]).login
            #expect(known.config?.features == [SessionFeature(type: "apple", enabled: true)])
            let other = try server.reconnect(bob, features: ["apple"]).login
            #expect(other.config?.features == [SessionFeature(type: "apple", enabled: false)])
            let classic = try server.reconnect(alice).login
            #expect(classic.config?.features == nil)
            let hashes = [known, other, classic].compactMap(\.config?.hash)
            #expect(Set(hashes).count == 3)
        }
    }

    @Test(
        "who echoes the hash gets no settings, with either kind of login, until an answer differs"
    )
    func hash() throws {
        try withPair { server, alice, _, _ in
            try server.reload([on("apple")])
            let names = ["apple", Self.lookup]
            let config = try #require(
                try server.reconnect(alice, features: names).login.config
            )
            func login(_ names: [String]?) throws -> (LoginConfig?, LoginConfig?) {
                let client = try server.connect(features: names)
                let request = LoginRequest(token: alice.token, configHash: config.hash)
                let first = try client.call(request).config
                return (first, try client.call(Login2Request(configHash: config.hash)).config)
            }
            #expect(try login(names) == (nil, nil))
            #expect(try login(names.reversed()) == (nil, nil))
            let fewer = try login(["apple"])
            #expect(fewer.0?.features?.count == 1 && fewer.0 == fewer.1)
            let classic = try login(nil)
            #expect(classic.0 != nil && classic.0?.features == nil && classic.0 == classic.1)
            try server.reload([off("apple")])
            let changed = try login(names)
            #expect(changed.0?.features?.first == SessionFeature(type: "apple", enabled: false))
            #expect(changed.0?.server == config.server && changed.0 == changed.1)
            try server.reload([on("apple")])
            #expect(try login(names) == (nil, nil))
        }
    }

    @Test("SESSION_INIT again names other features, for the user who has logged in")
    func again() throws {
        try withPair { server, alice, _, _ in
            try server.reload([only(alice, named: "apple"), off(Self.lookup)])
            let client = try server.reconnect(alice, features: [Self.lookup]).client
            #expect(try !isServed(client))
            let reply = try client.call(hello(["apple"]))
            #expect(reply.features == [SessionFeature(type: "apple", enabled: true)])
            #expect(try isServed(client))
            #expect(try client.call(hello(nil)).features == nil)
            try server.reload([off("apple")])
            try client.expectSilence()
        }
    }

    // MARK: - Gates

    @Test("where a feature is off its opcode answers proto.opcode; who did not name it keeps it")
    func gate() throws {
        try withPair(limits: ["maxSoftErrors": 3]) { server, alice, bob, _ in
            try server.reload([only(alice, named: Self.lookup)])
            let known = try server.reconnect(alice, features: [Self.lookup]).client
            let other = try server.reconnect(bob, features: [Self.lookup]).client
            let classic = try server.reconnect(bob).client
            let unconcerned = try server.reconnect(bob, features: ["apple"]).client
            #expect(try isServed(known) && isServed(classic) && isServed(unconcerned))
            let refusal = try other.refusal(of: ContactInfoByPhoneRequest(phone: "1"))
            #expect(refusal == .protoOpcode)
            // The server must not disconnect an app that sends disabled requests.
            for _ in 0..<20 { #expect(try !isServed(other)) }
            #expect(try other.call(ContactInfoRequest(contactIDs: [])).contacts.isEmpty)
        }
    }

    @Test("a feature that is killed is off for everybody, at once")
    func kill() throws {
        try withPair { server, alice, bob, _ in
            let named = try server.reconnect(alice, features: [Self.lookup]).client
            let unconcerned = try server.reconnect(bob, features: ["apple"]).client
            #expect(try isServed(alice) && isServed(named) && isServed(unconcerned))
            try server.reload([killed(Self.lookup)])
            #expect(try !isServed(alice) && !isServed(named) && !isServed(unconcerned))
            try server.reload([])
            #expect(try isServed(alice) && isServed(named) && isServed(unconcerned))
        }
    }

    @Test("what is sent behind LOGIN in one write is judged by the user's answers")
    func pipelined() throws {
        try withPair { server, alice, bob, _ in
            // The first list of rules turns the feature off for devices but on for Alice. The
            // second list turns it on for devices but off for Bob.
            let rules = [
                FeatureRule(userIDs: [alice.userID.rawValue]),
                FeatureRule(isEnabled: false, userIDs: [bob.userID.rawValue]),
            ]
            let devices = FeatureRule(systems: ["IOS"])
            for (user, last, expected) in [(alice, [], true), (bob, [devices], false)] {
                try server.reload([FeaturePlan(name: Self.lookup, rules: rules + last)])
                let client = try WireClient(address: server.address)
                var bytes: [UInt8] = []
                func add(_ request: some WireRequest, _ sequence: UInt16) {
                    encodePacket(
                        command: .request,
                        sequence: sequence,
                        opcode: type(of: request).opcode.rawValue,
                        payload: request.encoded(),
                        into: &bytes
                    )
                }
                add(hello([Self.lookup]), 0)
                add(LoginRequest(token: user.token), 1)
                add(ContactInfoByPhoneRequest(phone: "1"), 2)
                try client.send(raw: bytes)
                let hello = try client.reply(to: 0, as: SessionInitReply.self)
                #expect(hello.features?.first?.enabled == !expected)
                _ = try client.reply(to: 1, as: LoginReply.self)
                let error = try ErrorReply.decode(client.reply(to: 2).payload, limits: .standard)
                #expect(error.error == (expected ? "user.not.found" : "proto.opcode"))
            }
        }
    }
}

@Suite("NOTIF_CONFIG (134)")
struct NotifConfigTests {
    private func plan(_ name: String, _ rule: FeatureRule?) -> FeaturePlan {
        FeaturePlan(name: name, rules: rule.map { [$0] } ?? [])
    }

    private func change(
        _ client: WireClient,
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws -> LoginConfig {
        let pushes = try client.only(
            .notifConfig,
            as: NotifConfig.self,
            sourceLocation: sourceLocation
        )
        try #require(pushes.count == 1, sourceLocation: sourceLocation)
        return pushes[0].config
    }

    @Test("goes to the logged-in sessions whose answers changed, with all answers and another hash")
    func addressees() throws {
        try withPair { server, alice, bob, _ in
            let rules = [plan("apple", FeatureRule(userIDs: [alice.userID.rawValue]))]
            let mango = plan("mango", FeatureRule())
            try server.reload(rules + [mango, plan("zebra", FeatureRule())])
            let names = ["zebra", "apple"]
            let (phone, login) = try server.reconnect(alice, features: names)
            let laptop = try server.reconnect(alice, device: "laptop", features: ["apple"]).client
            let other = try server.reconnect(bob, features: ["apple"]).client
            let half = try server.reconnect(bob, features: ["zebra"]).client
            let stranger = try server.connect(features: ["mango"])
            for client in [alice, bob, phone, laptop, other, half] { _ = try client.news() }

            let lines = try server.reload([plan("apple", nil), plan("zebra", FeatureRule())])
            #expect(lines.last == "sessions told: 2")
            let told = try change(phone)
            #expect(
                told.features == [
                    SessionFeature(type: "apple", enabled: false),
                    SessionFeature(type: "zebra", enabled: true),
                ]
            )
            #expect(told.hash != login.config?.hash)
            #expect(told.server == nil && told.user == nil)
            #expect(try change(laptop).features?.map(\.type) == ["apple"])
            for client in [alice, bob, other, half] { try client.expectSilence() }
            // The stranger has not logged in, so the server sends no push. The reply to LOGIN
            // reports the change.
            try stranger.expectSilence()
            let late = try stranger.call(LoginRequest(token: bob.token)).config
            #expect(late?.features == [])

            // The client sends the hash of the push at its next login, so the reply contains no
            // configuration.
            let next = try server.connect(features: names)
            let again = LoginRequest(token: alice.token, configHash: told.hash)
            #expect(try next.call(again).config == nil)
        }
    }

    @Test("is not sent by a reload that changes nothing for anybody")
    func nothing() throws {
        try withPair { server, alice, _, _ in
            let client = try server.reconnect(alice, features: ["phone-lookup", "apple"]).client
            _ = try client.news()
            // The first plan turns its feature on for everybody. Without a plan, the feature was
            // also on. No client has named the second feature.
            let rules = [plan("phone-lookup", FeatureRule()), plan("zebra", nil)]
            #expect(try server.reload(rules).last == "sessions told: 0")
            try client.expectSilence()
        }
    }

    @Test("tells of features that come to be known, and of those that are forgotten")
    func comeAndGo() throws {
        try withPair { server, alice, _, _ in
            let client = try server.reconnect(alice, features: ["apple"]).client
            _ = try client.news()
            try server.reload([plan("apple", nil)])
            #expect(try change(client).features == [SessionFeature(type: "apple", enabled: false)])
            try server.reload([])
            #expect(try change(client).features == [])
        }
    }

    @Test("leaves before the administrator is answered, and gates close before anything later is")
    func order() throws {
        try withPair { server, alice, _, _ in
            let client = try server.reconnect(alice, features: ["phone-lookup"]).client
            _ = try client.news()
            for round in 0..<20 {
                let isOn = round % 2 == 1
                try server.reload([plan("phone-lookup", isOn ? FeatureRule() : nil)])
                let code = try client.code(of: ContactInfoByPhoneRequest(phone: "1"))
                #expect(code == (isOn ? .userNotFound : .protoOpcode))
                #expect(try change(client).features?.first?.enabled == isOn)
            }
        }
    }

    @Test("whoever logs in while rules change is told last what holds")
    func whileLoggingIn() throws {
        try withPair { server, alice, _, _ in
            let user = alice.userID.rawValue
            let (done, begun) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
            let isOn = FeatureRule(userIDs: [user])
            for round in 0..<60 {
                let rules = [plan("apple", round % 2 == 0 ? isOn : nil)]
                DispatchQueue.global().async {
                    begun.signal()
                    do { try server.reload(rules) } catch { Issue.record(error) }
                    done.signal()
                }
                begun.wait()
                let (client, login) = try server.reconnect(alice, features: ["apple"])
                done.wait()
                var told = login.config?.features
                for push in try client.takePushes() where push.opcode == .notifConfig {
                    told = try push.decode(as: NotifConfig.self).config.features
                }
                let expected = SessionFeature(type: "apple", enabled: round % 2 == 0)
                #expect(told == [expected], "round \(round)")
                client.close()
            }
        }
    }

    @Test("a rise of the percentage adds users, takes from nobody, and tells those it adds")
    func rise() throws {
        try withServer { server in
            var users: [WireClient] = []
            for number in 0..<30 {
                users.append(try server.signUp("User \(number)", features: ["apple"]))
            }
            var before: Set<UserID> = []
            for percent in [10_00, 30_00, 30_50, 80_00, 100_00] {
                for user in users { _ = try user.news() }
                let lines = try server.reload([plan("apple", FeatureRule(percent: percent))])
                var after = before
                var told = 0
                for user in users {
                    guard let push = try user.news().first else { continue }
                    told += 1
                    let answer = try push.decode(as: NotifConfig.self).config.features?.first
                    // The first reload makes the feature known, so every session gets a push, even
                    // if the feature is off for its user.
                    if percent == 10_00, answer?.enabled == false { continue }
                    #expect(answer?.enabled == true)
                    after.insert(user.userID)
                }
                #expect(lines.last == "sessions told: \(told)")
                let added = percent == 10_00 ? users.count : after.count - before.count
                #expect(told == added && after.isSuperset(of: before))
                before = after
            }
            #expect(before.count == users.count)
        }
    }

    @Test("rules that make no sense change nothing, and the administrator is told why")
    func mistake() throws {
        try withPair { server, alice, _, _ in
            let client = try server.reconnect(alice, features: ["phone-lookup"]).client
            _ = try client.news()
            let broken = FeaturePlan(
                name: "phone-lookup",
                rules: [FeatureRule(), FeatureRule(isEnabled: false, percent: 1)]
            )
            let failure = #expect(throws: AdminService.Failure.self) {
                try server.reload([broken])
            }
            #expect("\(failure as Any)".contains("phone-lookup, rule 2"))
            try client.expectSilence()
            #expect(
                try client.code(of: ContactInfoByPhoneRequest(phone: "1")) == .userNotFound
            )
        }
    }

    @Test("the metrics say how many connections have which answer")
    func metrics() throws {
        try withPair { server, alice, bob, _ in
            try server.reload([plan("apple", FeatureRule(userIDs: [alice.userID.rawValue]))])
            let clients = try (0..<3).map { _ in
                try server.reconnect(alice, features: ["apple"]).client
            }
            let other = try server.reconnect(bob, features: ["apple", "phone-lookup"]).client
            func samples() throws -> [String] {
                var lines: [String] = []
                _ = try AdminClient(dataDirectory: server.dataDirectory).run(.metrics) {
                    if $0.hasPrefix("tambour_feature_connections{") { lines.append($0) }
                }
                return lines.map { String($0.dropFirst("tambour_feature_connections".count)) }
            }
            #expect(
                try samples() == [
                    "{feature=\"apple\",answer=\"on\"} 3", "{feature=\"apple\",answer=\"off\"} 1",
                    "{feature=\"phone-lookup\",answer=\"on\"} 1",
                    "{feature=\"phone-lookup\",answer=\"off\"} 0",
                ]
            )
            _ = try other.call(SessionInitRequest())
            for client in clients { client.close() }
            let deadline = ContinuousClock.now + .seconds(120)
            while try !samples().isEmpty, ContinuousClock.now < deadline {}
            #expect(try samples().isEmpty)
        }
    }
}
