import TambourMessenger
import TambourProtocol
import TambourServer
import TambourTesting
import Testing

extension TestServer {
    /// Returns the output of `tambourd admin reports`.
    fileprivate func reports() throws -> [String] {
        var lines: [String] = []
        let done = try AdminClient(dataDirectory: dataDirectory).run(.reports) { lines.append($0) }
        #expect(done)
        return lines
    }
}

@Suite("CHAT_COMPLAIN (117), COMPLAIN (161), COMPLAIN_REASONS_GET (162)")
struct ReportTests {
    @Test("what is reported stands on the list of the administrators, once each")
    func reported() throws {
        try withPair { server, alice, bob, dialog in
            let group = try bob.createGroup("G", with: [alice], cid: 1)
            let sent = try bob.send("Buy \"now\"", to: group, cid: 2)
            _ = try bob.takePushes()
            for reason in [AnyValue(Int64(3)), AnyValue("спам" as Text)] {
                try alice.call(
                    ComplainRequest(
                        ids: [sent.message.id.rawValue],
                        parentID: group,
                        reason: reason
                    )
                )
            }
            try alice.call(ComplainRequest(ids: [bob.userID.rawValue], reasonID: 7))
            try alice.call(ChatComplainRequest(chatID: group))
            try bob.expectSilence()
            let lines = try server.reports()
            #expect(lines.count == 3)
            #expect(
                lines[0].contains("by \(alice.userID.rawValue) message \(sent.message.id.rawValue)")
            )
            #expect(
                lines[0].hasSuffix("from \(bob.userID.rawValue) \"Buy \"now\"\" reason 0 \"спам\"")
            )
            #expect(lines[1].hasSuffix("user \(bob.userID.rawValue) \"Bob\" reason 7"))
            #expect(lines[2].hasSuffix("chat \(group.rawValue) reason 0"))

            try bob.delete([sent.message.id], in: group)
            #expect(try server.reports()[0].contains(" deleted "))
            let admin = AdminClient(dataDirectory: server.dataDirectory)
            _ = try admin.run(.closeReport("1")) { #expect($0 == "1 closed") }
            #expect(try server.reports().count == 2)
            for id in ["1", "x"] {
                #expect(throws: AdminService.Failure.self) {
                    try admin.run(.closeReport(id)) { _ in }
                }
            }
        }
    }

    @Test("a reported comment is listed with its post")
    func reportedComment() throws {
        try withPair { server, alice, bob, _ in
            let channel = try alice.channel("News", with: [bob], cid: 1)
            let post = try alice.send("news", to: channel, cid: 2).message.id
            let comment = try bob.comment("Buy now", on: post, in: channel, cid: 3).id
            try alice.call(
                ComplainRequest(ids: [comment.rawValue], parentID: channel, postID: post)
            )
            let line = try #require(try server.reports().first)
            let place =
                "comment \(comment.rawValue) post \(post.rawValue) chat \(channel.rawValue)"
            #expect(
                line.hasSuffix("\(place) from \(bob.userID.rawValue) \"Buy now\" reason 0")
            )
            let export = try server.admin(.export(user: "\(alice.userID)"))
            let report = try #require(export.first { $0.contains("\"report\"") })
            for id in [channel.rawValue, post.rawValue, comment.rawValue] {
                #expect(report.contains("\(id)"))
            }
        }
    }

    @Test("what the caller does not see is refused, and nothing is reported")
    func refused() throws {
        try withPair { server, alice, bob, dialog in
            let group = try bob.createGroup("G", with: [], cid: 1)
            let own = try alice.createGroup("G", with: [], cid: 1)
            let sent = try bob.send("hi", to: group, cid: 2).message.id.rawValue
            #expect(
                try alice.code(of: ComplainRequest(ids: [sent], parentID: group)) == .chatNotFound
            )
            #expect(try alice.code(of: ComplainRequest(ids: [sent], parentID: own)) == .notFound)
            #expect(try alice.code(of: ComplainRequest(ids: [group.rawValue])) == .chatNotFound)
            let users = [bob.userID.rawValue, 999]
            #expect(try alice.code(of: ComplainRequest(ids: users)) == .userNotFound)
            #expect(try alice.code(of: ChatComplainRequest(ids: [own, group])) == .chatNotFound)
            #expect(try alice.code(of: ChatComplainRequest()) == .protoPayload)
            #expect(try server.reports().isEmpty)
        }
    }

    @Test(
        "words of any length are not kept, and naming one subject often is one report"
    )
    func bounds() throws {
        try withPair(limits: ["maxReportBytes": 20, "maxReports": 3]) { server, alice, bob, _ in
            func reason(_ count: Int) -> AnyValue {
                AnyValue(Text(String(repeating: "x", count: count)))
            }
            // The header of a short text takes one byte, so a reason of 20 bytes is one byte too
            // long.
            let long = ComplainRequest(ids: [bob.userID.rawValue], reason: reason(20))
            #expect(try alice.code(of: long) == .protoPayload)
            let group = try alice.createGroup("G", with: [bob], cid: 1)
            let chat = ChatComplainRequest(chatID: group, reason: reason(20))
            #expect(try alice.code(of: chat) == .protoPayload)
            #expect(try server.reports().isEmpty)
            let often = Array(repeating: bob.userID.rawValue, count: 50)
            for _ in 0..<3 {
                try alice.call(ComplainRequest(ids: often, reason: reason(19)))
                try alice.call(ChatComplainRequest(ids: [group, group], chatID: group))
            }
            #expect(try server.reports().count == 2)
        }
    }

    @Test("reasons come once, with a title each")
    func reasons() throws {
        try withPair { _, alice, _, _ in
            let reply = try alice.call(ComplainReasonsGetRequest(complainSync: 5))
            #expect(reply.complains.map(\.typeID) == Array(1...8))
            for kind in reply.complains {
                #expect(!kind.reasons.isEmpty)
                #expect(kind.reasons.allSatisfy { $0.reasonID != 0 && !$0.reasonTitle.isEmpty })
            }
            let again = try alice.call(
                ComplainReasonsGetRequest(complainSync: reply.complainSync)
            )
            #expect(again.complains.isEmpty && again.complainSync == reply.complainSync)
        }
    }
}

@Suite("SUSPEND_BOT (119), CHAT_BOT_COMMANDS (144), BOT_INFO (145)")
struct BotTests {
    @Test("there are no bots")
    func none() throws {
        try withPair { server, alice, bob, dialog in
            try alice.send("hi", to: dialog, cid: 1)
            let reply = try alice.call(ChatBotCommandsRequest(chatID: dialog))
            #expect(reply.commands.isEmpty && reply.contacts.isEmpty)
            #expect(try alice.code(of: ChatBotCommandsRequest(chatID: ChatID(-1))) == .chatNotFound)
            #expect(try alice.code(of: BotInfoRequest(botID: bob.userID)) == .userNotFound)
            #expect(try alice.code(of: SuspendBotRequest(botID: bob.userID)) == .userNotFound)
        }
    }
}
