import TambourFraming
import TambourMessenger
import TambourProtocol
import TambourServer
import TambourTesting
import Testing

extension WireClient {
    /// Returns the preview of a text's first link.
    fileprivate func preview(_ text: Text) throws -> Attach? {
        let attachments = try call(MsgSharePreviewRequest(text: text)).attachments
        #expect(attachments.count <= 1)
        return attachments.first
    }
}

@Suite("MSG_SHARE_PREVIEW (70)")
struct LinkPreviewTests {
    private let desk = PreviewDesk()
    private let link: Text = "https://example.org/a"

    /// Waits until exactly these links are waiting for an answer of the preview source.
    private func wait(for links: [String], _ client: WireClient) throws {
        let deadline = ContinuousClock.now + .seconds(120)
        while desk.open != links {
            try #require(ContinuousClock.now < deadline, "\(desk.open)")
            try client.call(PingRequest())
        }
    }

    @Test("a preview is what a source finds of the first link; a text without one asks nobody")
    func preview() throws {
        let desk = PreviewDesk(answersAtOnce: true)
        try withPair(linkPreviews: desk.source) { _, alice, bob, _ in
            #expect(try alice.preview("no link") == nil)
            let preview = try #require(try alice.preview(Text("see \(link), please")))
            #expect(preview.type == .share && preview.url == link && preview.title == link)
            #expect(preview.host == "example.org" && preview.shareID != nil)
            #expect(try bob.preview(link) == preview)
            #expect(desk.seen == ["\(link)"])
        }
    }

    @Test("without a source, and when it fails, there is no preview and no error")
    func none() throws {
        try withServer { server in
            let alice = try server.signUp("Alice")
            #expect(try alice.preview(link) == nil)
        }
        try withPair(linkPreviews: desk.source) { _, alice, bob, _ in
            let asked = try alice.send(MsgSharePreviewRequest(text: link))
            try wait(for: ["\(link)"], bob)
            try desk.finish("\(link)", .failure("it is broken"))
            let reply = try alice.reply(to: asked, as: MsgSharePreviewReply.self)
            #expect(reply.attachments.isEmpty)
        }
    }

    @Test("what comes behind a preview does not wait for it, and it is answered in the end")
    func beside() throws {
        try withPair(linkPreviews: desk.source) { server, alice, bob, dialog in
            let asked = try alice.send(MsgSharePreviewRequest(text: link))
            try wait(for: ["\(link)"], bob)
            try alice.send("one", to: dialog, cid: 1)
            #expect(try alice.texts(dialog) == ["one"])
            _ = try server.login(alice)
            try alice.call(PingRequest())
            // The client closes its sending side. The server must still answer earlier requests.
            alice.finishSending()
            try desk.finish("\(link)", .page(.init(title: "A")))
            let reply = try alice.reply(to: asked, as: MsgSharePreviewReply.self)
            #expect(reply.attachments.map(\.title) == ["A"])
            try alice.waitForClose()
        }
    }

    @Test("a preview that is asked for right behind LOGIN waits for it")
    func pipelined() throws {
        let desk = PreviewDesk(answersAtOnce: true)
        try withServer(linkPreviews: desk.source) { server in
            let alice = try server.signUp("Alice")
            for (token, isGood) in [(alice.token, true), ("bad", false)] {
                let client = try server.connect()
                let login = try client.send(LoginRequest(token: token))
                let asked = try client.send(MsgSharePreviewRequest(text: link))
                _ = try client.reply(to: login)
                let packet = try client.reply(to: asked)
                #expect((packet.header.command == PacketCommand.ok.rawValue) == isGood)
            }
            #expect(desk.seen.count == 1)
        }
    }

    @Test("the previews in flight of a connection are limited; further ones get nothing")
    func asked() throws {
        try withPair(
            limits: ["maxLinkPreviewsAsked": 2],
            linkPreviews: desk.source
        ) { server, alice, bob, _ in
            let links = (0..<3).map { "https://example.org/\($0)" }
            let asked = try links.map { try alice.send(MsgSharePreviewRequest(text: Text($0))) }
            let third = try alice.reply(to: asked[2], as: MsgSharePreviewReply.self)
            #expect(third.attachments.isEmpty)
            try wait(for: Array(links[..<2]), bob)
            #expect(server.server.metrics.linkPreviewCounts == ["busy": 1])
            try desk.finish(links[0], .nothing)
            _ = try alice.reply(to: asked[0])
            let fourth = try alice.send(MsgSharePreviewRequest(text: "https://example.org/4"))
            try wait(for: [links[1], "https://example.org/4"], bob)
            for link in desk.open { try desk.finish(link, .nothing) }
            _ = try alice.reply(to: fourth)
        }
    }

    @Test("asking too often is refused like searching")
    func rate() throws {
        try withPair(limits: ["searchBurst": 2, "searchesPerMinute": 1]) { _, alice, bob, _ in
            for _ in 0..<2 { #expect(try alice.preview(link) == nil) }
            let refusal = try alice.refusal(of: MsgSharePreviewRequest(text: link))
            #expect(refusal.code == .tooManyRequests)
            #expect(
                try alice.code(of: ContactInfoByPhoneRequest(phone: "1")) == .tooManyRequests
            )
            #expect(try bob.preview(link) == nil)
        }
    }

    @Test("a connection whose session ends does not live on for a preview")
    func deadToken() throws {
        try withPair(linkPreviews: desk.source) { server, alice, bob, _ in
            let laptop = try server.signIn(phoneOf: alice, device: "laptop")
            _ = try alice.send(MsgSharePreviewRequest(text: link))
            try wait(for: ["\(link)"], bob)
            try laptop.call(SessionsCloseRequest())
            try alice.waitForClose()
            try desk.finish("\(link)", .nothing)
        }
    }

    @Test("a server that stops answers whoever waits for a preview and ends what runs")
    func stop() throws {
        let server = try TestServer(linkPreviews: desk.source)
        let alice = try server.signUp("Alice")
        let asked = try alice.send(MsgSharePreviewRequest(text: link))
        try wait(for: ["\(link)"], alice)
        server.remove()
        let reply = try alice.reply(to: asked, as: MsgSharePreviewReply.self)
        #expect(reply.attachments.isEmpty)
        #expect(desk.cancelled == ["\(link)"])
    }

    @Test("a message, also a changed or a scheduled one, carries the preview of an id whole")
    func sent() throws {
        let desk = PreviewDesk(answersAtOnce: true)
        try withPair(linkPreviews: desk.source) { _, alice, bob, dialog in
            let preview = try #require(try alice.preview(link))
            let attach = NewAttach(
                type: .share,
                url: "https://elsewhere.org/",
                shareID: preview.shareID,
                title: "something else"
            )
            func send(_ cid: Int64, at time: Int64? = nil) throws -> Message {
                let message = NewMessage(
                    cid: cid,
                    attaches: [attach],
                    delayedAttributes: time.map { DelayedAttributes(timeToFire: $0) }
                )
                return try alice.call(MsgSendRequest(chatID: dialog, message: message)).message
            }
            let message = try send(1)
            #expect(message.attaches == Packed([preview]))
            let push = try bob.next(.notifMessage, as: NotifMessage.self)
            #expect(push.message.attaches == Packed([preview]))
            #expect(try send(2, at: wallNow + 3_600_000).attaches == Packed([preview]))
            let text = try alice.send("a", to: dialog, cid: 3).message
            let edit = MsgEditRequest(chatID: dialog, messageID: text.id, attaches: [attach])
            #expect(try alice.call(edit).message.attaches == Packed([preview]))
        }
    }

    @Test("an id that nobody knows goes with its address, and is refused without")
    func unknown() throws {
        try withPair { _, alice, _, dialog in
            func request(_ attach: NewAttach) -> MsgSendRequest {
                MsgSendRequest(chatID: dialog, message: NewMessage(cid: 1, attaches: [attach]))
            }
            let lost = NewAttach(type: .share, shareID: 1)
            #expect(try alice.code(of: request(lost)) == .errorMessageInvalid)
            let sent = try alice.call(
                request(NewAttach(type: .share, url: link, shareID: 1, title: "A"))
            )
            let expected = Attach(
                type: .share,
                url: link,
                title: "A",
                shareID: 1,
                host: "example.org"
            )
            #expect(sent.message.attaches == Packed([expected]))
        }
    }
}
