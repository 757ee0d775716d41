import Foundation
import TambourMessenger
import TambourServer
import TambourTesting
import Testing

@testable import tambour_spec

/// One run of the request fuzzer. It sends requests on several connections at once. Some values in
/// the requests are edges: values that often break servers. The run checks the properties that must
/// always hold.
///
/// `TAMBOUR_SEED` repeats a run, `TAMBOUR_SOAK=1` makes it long, `TAMBOUR_FUZZ_REQUESTS` sets the
/// number of requests. `TAMBOUR_FUZZ_SKIP` leaves out known defects; it lists opcode names or sites
/// such as `CHAT_SEARCH/marker`.
struct RequestFuzz {
    let seed: UInt64
    private let count: Int
    private let skipped: Set<String>
    private let specification: Specification
    private let reader: PeerReader
    private var generator: RequestGenerator
    private var plan: EdgePlan
    private var world: FuzzWorld
    private var tally = FuzzTally()
    private var extra: [FuzzPeer] = []

    /// The most memory that the server may use under any requests, in bytes.
    private static let maxResidentBytes = 640 << 20
    private static let requestsPerCheck = 1_000

    init(_ server: FuzzServer, short: Int, soak: Int) throws {
        let environment = ProcessInfo.processInfo.environment
        seed = environment["TAMBOUR_SEED"].flatMap { UInt64($0) } ?? .random(in: 0 ... .max)
        let isSoak = environment["TAMBOUR_SOAK"] == "1"
        count =
            environment["TAMBOUR_FUZZ_REQUESTS"].flatMap { Int($0) } ?? (isSoak ? soak : short)
        skipped = Set(
            (environment["TAMBOUR_FUZZ_SKIP"] ?? "").split(separator: ",").map(String.init)
        )
        print("request fuzzer: \(count) requests, TAMBOUR_SEED=\(seed)")
        specification = try Self.specification()
        reader = PeerReader(specification)
        generator = RequestGenerator(specification, seed: seed)
        plan = EdgePlan(specification, skipped: skipped, random: &generator.random)
        var size = FuzzWorld.Size()
        if isSoak {
            size.accounts = 200
            size.messages = 1_000
            size.largest = 4
        }
        world = try FuzzWorld(on: server, size: size, generator: &generator)
        let refused = world.refused.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }
        print("request fuzzer: refused while filling: \(refused.joined(separator: ", "))")
        for account in world.lockedOut {
            tally.add(
                FuzzFinding(kind: "no login after filling the store: \(account)", request: nil)
            )
        }
    }

    private static func specification() throws -> Specification {
        let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent()
        var loader = SpecificationLoader(root: root.appending(path: "protocol-spec"))
        let specification = loader.load()
        try #require(loader.problems.isEmpty, "\(loader.problems)")
        return specification
    }

    /// Returns whether a request of this opcode ends its session or other sessions of the account.
    static func isFinal(_ opcode: OpcodeEntry) -> Bool {
        ["LOGOUT", "SESSIONS_CLOSE", "PROFILE_DELETE", "AUTH_SET_2FA", "PHONE_BIND_CONFIRM"]
            .contains(opcode.name)
    }

    // MARK: - Running

    /// Plays the run to its end.
    ///
    /// - Returns: The findings; empty when no property was violated.
    mutating func run() throws -> [FuzzFinding] {
        let started = ContinuousClock.now
        var nextCheck = Self.requestsPerCheck
        while tally.sent < count {
            try playRound()
            if let death = death() {
                tally.add(death)
                break
            }
            guard tally.sent >= nextCheck else { continue }
            nextCheck += Self.requestsPerCheck
            try check()
        }
        if !world.server.isGone {
            try check()
            for line in try world.server.admin(.check) where line != "ok" && !line.hasSuffix(" ok")
            {
                tally.add(FuzzFinding(kind: "admin check", request: nil, detail: line))
            }
        }
        let slowed = tally.refusals["too.many.requests", default: 0]
        if slowed > tally.sent / 10 {
            // With more refusals by rate limits, the run would test the limits rather than the
            // handlers.
            tally.add(FuzzFinding(kind: "\(slowed) requests were too many", request: nil))
        }
        let seconds = (ContinuousClock.now - started).seconds
        print(tally.report(of: plan, peakBytes: world.server.peakResidentBytes, seconds: seconds))
        return tally.findings
    }

    /// Sends a few requests on each of several connections, and only then reads the replies.
    private mutating func playRound() throws {
        try renewPeers()
        let speaking = world.peers + extra
        var chosen: [FuzzPeer] = []
        for _ in 0...generator.random.below(4) {
            let peer = generator.random.pick(speaking)
            if peer.isOpen, !chosen.contains(where: { $0 === peer }) { chosen.append(peer) }
        }
        for peer in chosen {
            for _ in 0...generator.random.below(12) { send(on: peer) }
            switch generator.random.below(200) {
            case 0: peer.reset()
            case 1:
                generator.account = peer.account ?? 0
                if let request = plan.request(for: peer, &generator) {
                    peer.send(request, isCut: true)
                    peer.reset()
                }
            default: break
            }
        }
        var received: [(FuzzPeer, FuzzPeer.Received)] = []
        // Read idle connections too, because their pushes must be readable.
        let isDone = try FuzzPeer.exchange(chosen) { received.append(($0, $1)) }
        for (peer, reply) in received { take(reply, from: peer) }
        if !isDone {
            for peer in chosen {
                for request in peer.unanswered {
                    tally.add(FuzzFinding(kind: "no reply in 60 s", request: request))
                }
                peer.reset()
            }
        }
    }

    private mutating func send(on peer: FuzzPeer) {
        generator.account = peer.account ?? 0
        guard let request = plan.request(for: peer, &generator) else { return }
        tally.count(request)
        peer.send(request, compressed: generator.random.oneIn(4) || request.payload.count > 20_000)
    }

    /// Reopens closed connections. Each speaker has two, strangers have two, and one more
    /// connection may send requests that end the sessions of its account.
    private mutating func renewPeers() throws {
        for index in world.peers.indices where !world.peers[index].isOpen {
            let account = world.peers[index].account ?? 0
            if let peer = try world.connect(account: account, &generator) {
                world.replacePeer(at: index, with: peer)
            } else if !world.server.isGone {
                tally.add(
                    FuzzFinding(
                        kind: "login of account \(account) refused",
                        request: nil,
                        detail: world.lastRefusal
                    )
                )
            }
        }
        extra.removeAll { !$0.isOpen }
        while extra.count < 3, !world.server.isGone {
            let isLeaver = !extra.contains { $0.account != nil }
            let last = generator.known.accounts.count - 1
            let leaver = last - generator.random.below(last - FuzzWorld.speakers)
            let peer =
                isLeaver
                ? try world.connect(account: leaver, &generator)
                : try world.stranger(&generator)
            guard let peer = try peer ?? world.stranger(&generator) else { return }
            extra.append(peer)
        }
    }

    // MARK: - Checks

    private mutating func take(_ reply: FuzzPeer.Received, from peer: FuzzPeer) {
        if let problem = reply.failure ?? reader.problem(of: reply.payload) {
            let name = specification.name(of: reply.opcode)
            let kind = reply.sent == nil ? "push \(name)" : "reply to \(name)"
            tally.add(
                FuzzFinding(
                    kind: "\(kind) that a client cannot read: \(problem)",
                    request: reply.sent?.request
                )
            )
            return
        }
        guard let sent = reply.sent else { return }
        tally.slowest = max(tally.slowest, (ContinuousClock.now - sent.sentAt).seconds)
        guard reply.isError else {
            tally.ok[sent.request.opcode.name, default: 0] += 1
            if reply.payload.count < 8_192, generator.random.oneIn(4),
                let node = try? WireDecoder.decode(reply.payload)
            {
                generator.known.learn(
                    from: node,
                    account: peer.account ?? 0,
                    chat: sent.request.chat
                )
            }
            return
        }
        guard let node = try? WireDecoder.decode(reply.payload),
            case .string(let code)? = node["error"]
        else {
            tally.add(FuzzFinding(kind: "an error without a code", request: sent.request))
            return
        }
        tally.refusals[code, default: 0] += 1
        let isCommon = specification.errors.first { $0.code == code }?.isCommon ?? false
        if code == "internal" {
            tally.add(
                FuzzFinding(
                    kind: "internal at \(sent.request.opcode.name)",
                    request: sent.request,
                    detail: world.server.lastErrorLine
                )
            )
        } else if !isCommon, !sent.request.opcode.errors.contains(code) {
            tally.add(
                FuzzFinding(
                    kind: "\(code), which \(sent.request.opcode.name) does not declare",
                    request: sent.request
                )
            )
        }
    }

    /// Returns a finding with the unanswered requests if the server's process has ended; otherwise
    /// nil.
    private func death() -> FuzzFinding? {
        guard world.server.isGone else { return nil }
        let suspects = (world.peers + extra).flatMap(\.unanswered)
        let list = suspects.map { "\($0.description)\n      \(Hex.text($0.payload.prefix(400)))" }
        return FuzzFinding(
            kind: "the server died",
            request: suspects.count == 1 ? suspects[0] : nil,
            detail: "unanswered:\n    " + list.joined(separator: "\n    ") + "\n"
                + world.server.lastWords
        )
    }

    private mutating func check() throws {
        guard let metrics = try? world.server.metrics() else {
            // The server has died or does not answer. If it has died, the next round reports the
            // death.
            if !world.server.isGone { tally.add(FuzzFinding(kind: "no metrics", request: nil)) }
            return
        }
        for name in ["failed_batches", "rerun_batches", "replies_over_limit"] {
            let value = metrics["tambour_\(name)_total"] ?? 0
            if value > tally.counters[name, default: 0] {
                tally.add(
                    FuzzFinding(kind: "\(name) is \(value)", request: nil, merges: name)
                )
            }
            tally.counters[name] = value
        }
        let peak = world.server.peakResidentBytes
        if peak > Self.maxResidentBytes, !Self.runsUnderSanitizer {
            tally.add(
                FuzzFinding(
                    kind: "memory",
                    request: nil,
                    detail: "\(peak >> 20) MiB, permitted \(Self.maxResidentBytes >> 20)",
                    merges: "memory"
                )
            )
        }
        try witness()
    }

    /// Checks that each account can still log in and read its data, whatever the store contains.
    private mutating func witness() throws {
        for account in 0...FuzzWorld.speakers {
            guard let peer = FuzzPeer(address: world.server.address, account: account) else {
                return
            }
            generator.account = account
            let token = generator.known.accounts[account].token
            var requests = [
                try plain("SESSION_INIT", [:]),
                try plain("LOGIN", ["token": .string(token), "interactive": .bool(true)]),
            ]
            requests += try [
                "CHATS_LIST", "FOLDERS_GET", "SESSIONS_INFO", "OBJ_PULL", "CONTACT_LIST",
            ]
            .map { try plain($0, [:]) }
            for _ in 0..<3 {
                let chats = generator.known.accounts[account].chats
                guard !chats.isEmpty else { break }
                let chat = WireNode.int(generator.random.pick(chats).id)
                requests.append(try plain("CHAT_INFO", ["chatIds": .array([chat])]))
                requests.append(
                    try plain(
                        "CHAT_HISTORY",
                        [
                            "chatId": chat, "from": .int(4_000_000_000_000), "backward": .int(100),
                            "getChat": .bool(true), "getMessages": .bool(true),
                        ]
                    )
                )
            }
            // Send one at a time: LOGIN must precede the requests that need it.
            for request in requests where peer.isOpen {
                peer.send(request)
                var received: [FuzzPeer.Received] = []
                let isDone = try FuzzPeer.exchange([peer]) { received.append($1) }
                for reply in received { take(reply, from: peer) }
                if !isDone { tally.add(FuzzFinding(kind: "no reply in 60 s", request: request)) }
            }
            peer.reset()
        }
    }

    private func plain(
        _ name: String,
        _ payload: KeyValuePairs<String, WireNode>
    ) throws -> FuzzRequest {
        FuzzRequest(
            opcode: try #require(specification.opcode(named: name)),
            payload: WireEncoder.encode(.object(payload)),
            edges: [],
            chat: nil
        )
    }

    /// Whether the tests run under a sanitizer. Sanitizers delay the release of freed memory, so
    /// the memory limit then means nothing.
    private static let runsUnderSanitizer =
        dlsym(nil, "__asan_init") != nil || dlsym(nil, "__tsan_init") != nil
}

extension Specification {
    func name(of number: UInt16) -> String {
        families.lazy.flatMap(\.opcodes).first { $0.number == Int(number) }?.name ?? "\(number)"
    }
}

extension Duration {
    var seconds: Double { Double(components.seconds) + Double(components.attoseconds) / 1e18 }
}

extension FuzzServer {
    /// The last line that the server wrote to standard error.
    var lastErrorLine: String {
        lastErrors.split(separator: "\n").last.map(String.init) ?? ""
    }
}
