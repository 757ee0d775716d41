import Foundation
import Testing

@testable import tambour_spec

@Suite("Check of the specification")
struct SpecificationCheckTests {
    @Test("finds nothing wrong with what is committed")
    func isClean() throws {
        let problems = SpecificationCheck.problems(of: try Repository.specification())
        #expect(problems.isEmpty, "\(problems.map(\.description).joined(separator: "\n"))")
    }

    /// A possible mistake in the specification, and the message that the check must give.
    struct Mistake: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let expected: String
        let plant: @Sendable (inout Specification) throws -> Void

        init(
            _ name: String,
            _ expected: String,
            _ plant: @escaping @Sendable (inout Specification) throws -> Void
        ) {
            self.testDescription = name
            self.expected = expected
            self.plant = plant
        }

        /// Returns a mistake in a field of a struct of `types.yaml`.
        static func field(
            _ name: String,
            of type: String,
            _ key: String,
            _ expected: String,
            _ change: @escaping @Sendable (inout Field) -> Void
        ) -> Mistake {
            Mistake(name, expected) { specification in
                let index = try #require(specification.structs.firstIndex { $0.name == type })
                let field = try #require(
                    specification.structs[index].fields.firstIndex { $0.key == key }
                )
                change(&specification.structs[index].fields[field])
            }
        }

        /// Returns a mistake in the values of an enumeration.
        static func value(
            _ name: String,
            of type: String,
            _ expected: String,
            _ change: @escaping @Sendable (inout [EnumType.Value]) -> Void
        ) -> Mistake {
            Mistake(name, expected) { specification in
                let index = try #require(specification.enums.firstIndex { $0.name == type })
                change(&specification.enums[index].values)
            }
        }

        /// Returns a mistake in an opcode.
        static func opcode(
            _ name: String,
            of opcode: String,
            _ expected: String,
            _ change: @escaping @Sendable (inout OpcodeEntry) -> Void
        ) -> Mistake {
            Mistake(name, expected) { specification in
                for family in specification.families.indices {
                    for index in specification.families[family].opcodes.indices
                    where specification.families[family].opcodes[index].name == opcode {
                        change(&specification.families[family].opcodes[index])
                    }
                }
            }
        }

        /// Returns a mistake in the steps of a flow.
        static func flow(
            _ name: String,
            _ expected: String,
            _ change: @escaping @Sendable (inout Flow.Step) -> Void
        ) -> Mistake {
            Mistake(name, expected) { specification in
                let index = try #require(
                    specification.flows.firstIndex { $0.name == "send-with-retry" }
                )
                for step in specification.flows[index].steps.indices {
                    change(&specification.flows[index].steps[step])
                }
            }
        }

        /// Returns a mistake in an opcode's first example with this role.
        static func example(
            _ name: String,
            of opcode: String,
            _ role: Example.Role,
            _ expected: String,
            _ change: @escaping @Sendable (inout Example) -> Void
        ) -> Mistake {
            Mistake(name, expected) { specification in
                let file = try #require(specification.examples.firstIndex { $0.opcode == opcode })
                let index = try #require(
                    specification.examples[file].examples.firstIndex { $0.role == role }
                )
                change(&specification.examples[file].examples[index])
            }
        }
    }

    @Test("finds a planted mistake", arguments: mistakes)
    func findsMistake(mistake: Mistake) throws {
        var specification = try Repository.specification()
        try mistake.plant(&specification)
        let problems = SpecificationCheck.problems(of: specification).map(\.description)
        #expect(
            problems.contains { $0.contains(mistake.expected) },
            "\(problems.joined(separator: "\n"))"
        )
    }

    static let mistakes: [Mistake] = [
        .opcode("a number that is taken", of: "MSG_SEND", "opcode 65 is there twice") {
            $0.number = 65
        },
        .opcode("a number outside every range", of: "MSG_SEND", "opcode 600 is outside every range")
        {
            $0.number = 600
        },
        .opcode("a name that is taken", of: "MSG_SEND", "opcode name MSG_EDIT is there twice") {
            $0.name = "MSG_EDIT"
        },
        .opcode(
            "a push twice among the effects",
            of: "MSG_SEND",
            "effect NOTIF_CHAT is there twice"
        ) {
            $0.effects.append(.init(push: "NOTIF_CHAT", to: "nobody", when: "never"))
        },
        Mistake("a range of numbers twice", "range tambour is there twice") { specification in
            specification.idRanges.append(.init(name: "tambour", from: 600, through: 700))
        },
        .opcode("an error nobody knows", of: "MSG_SEND", "unknown error chat.gone") {
            $0.errors.append("chat.gone")
        },
        .opcode("an error that is common", of: "MSG_SEND", "internal: is common") {
            $0.errors.append("internal")
        },
        .opcode("an effect that is no push", of: "MSG_SEND", "unknown push MSG_EDIT") {
            $0.effects[0].push = "MSG_EDIT"
        },
        .opcode("a state nobody knows", of: "MSG_SEND", "unknown state ready") {
            $0.states = ["ready"]
        },
        .opcode("keyed by nothing", of: "MSG_SEND", "keyed goes with \"key\"") { $0.key = nil },
        .opcode(
            "a request with a capability",
            of: "MSG_SEND",
            "only a push can need a capability"
        ) {
            $0.capability = "lz4-large"
        },
        .opcode(
            "a push with a capability nobody knows",
            of: "NOTIF_CHAT",
            "unknown capability chats"
        ) {
            $0.capability = "chats"
        },
        .opcode(
            "a request without an answer",
            of: "MSG_SEND",
            "a request has a request and a reply"
        ) {
            $0.reply = nil
        },
        .opcode("a request without a kind", of: "MSG_SEND", "has kind, idempotency and states") {
            $0.kind = nil
        },
        .opcode("no text", of: "MSG_SEND", "the text must end with a full stop") { $0.doc = "" },
        .opcode("a release of the future", of: "MSG_SEND", "since 2 is not a release up to 1") {
            $0.since = 2
        },
        .field("a type nobody knows", of: "Chat", "lastMessage", "unknown type Massage") {
            $0.type = .named("Massage")
        },
        .field("a limit nobody knows", of: "NewMessage", "text", "unknown limit maxUnits") {
            $0.limitUnits = "maxUnits"
        },
        .field("a capability nobody knows", of: "Chat", "title", "unknown capability titles") {
            $0.capability = "titles"
        },
        .field("a form in a dialect nobody knows", of: "Chat", "title", "unknown dialect icq") {
            $0.forms = [DialectForm(dialect: "icq", change: .absent)]
        },
        .field(
            "a capability for a dialect",
            of: "Chat",
            "title",
            "unknown dialect history-more"
        ) {
            $0.forms = [DialectForm(dialect: "history-more", change: .absent)]
        },
        .field(
            "two forms in one dialect",
            of: "Chat",
            "title",
            "Chat.title: the form in tamtam is there twice"
        ) {
            $0.forms = [
                DialectForm(dialect: "tamtam", change: .absent),
                DialectForm(dialect: "tamtam", change: .prefix("x")),
            ]
        },
        .field(
            "other words for a number",
            of: "Chat",
            "owner",
            "Chat.owner: 1 as 2 does not fit the type in tamtam"
        ) {
            $0.forms = [DialectForm(dialect: "tamtam", change: .words(["1": "2"]))]
        },
        .field(
            "a word that is over the limit of the field",
            of: "UserName",
            "type",
            "for ONEME is over the limit"
        ) {
            let word = String(repeating: "x", count: 4_000)
            $0.forms = [DialectForm(dialect: "tamtam", change: .words(["ONEME": word]))]
        },
        .field(
            "something before a number",
            of: "Chat",
            "owner",
            "Chat.owner: after x does not fit the type in tamtam"
        ) {
            $0.forms = [DialectForm(dialect: "tamtam", change: .prefix("x"))]
        },
        .field(
            "items left out of what is no list",
            of: "Chat",
            "lastMessage",
            "without items whose id is 0 does not fit the type in tamtam"
        ) {
            $0.forms = [DialectForm(dialect: "tamtam", change: .leavesOut(key: "id", value: 0))]
        },
        .field(
            "items left out by a field that they need not have",
            of: "User",
            "names",
            "without items whose name is 0 does not fit the type in tamtam"
        ) {
            $0.forms = [DialectForm(dialect: "tamtam", change: .leavesOut(key: "name", value: 0))]
        },
        .field(
            "a required field that is absent, and nothing in its place",
            of: "Chat",
            "id",
            "Chat.id: is required, and nothing stands for it in tamtam"
        ) {
            $0.forms = [DialectForm(dialect: "tamtam", change: .absent)]
        },
        .opcode(
            "a form of what only clients send",
            of: "MSG_SEND",
            "the server sends no requests to write otherwise"
        ) {
            $0.request?.fields[0].forms = [DialectForm(dialect: "tamtam", change: .absent)]
        },
        Mistake("a dialect on top of a later one", "its base tamtam is not declared before it") {
            $0.dialects[0].base = "tamtam"
        },
        Mistake("a moved number nobody knows", "nobody knows the moved number 999") {
            $0.dialects[1].movedOpcodes.append(999)
        },
        Mistake("a moved number twice", "dialect tamtam: the moved number 78 is there twice") {
            $0.dialects[1].movedOpcodes.append(78)
        },
        .example(
            "an example in a dialect nobody knows",
            of: "AUTH_CONFIRM",
            .reply,
            "unknown dialect icq"
        ) {
            $0.dialect = "icq"
        },
        .example(
            "an example of a dialect that changes nothing",
            of: "AUTH_CONFIRM",
            .reply,
            "the dialect changes nothing of it"
        ) {
            $0.plain = $0.value
        },
        .example(
            "an example that is not what the dialect makes of it",
            of: "AUTH_CONFIRM",
            .reply,
            "the value is not what the server would write"
        ) {
            $0.dialect = "tamtam"
            $0.plain = $0.value
        },
        .field("a limit of texts on a number", of: "NewMessage", "cid", "limit is for texts") {
            $0.limitUnits = "maxTextUnits"
        },
        .field(
            "a text of clients without a limit",
            of: "Element",
            "type",
            "Element.type: has no bound in bytes"
        ) {
            $0.limitBytes = nil
        },
        .field(
            "a list of clients without a limit",
            of: "NewMessage",
            "attaches",
            "NewMessage.attaches: has no bound in items"
        ) {
            $0.limitItems = []
        },
        .field("a key that is taken", of: "Chat", "title", "Chat: key link is there twice") {
            $0.key = "link"
        },
        .field(
            "a property that is taken",
            of: "Chat",
            "title",
            "Chat: property link is there twice"
        ) {
            $0.swiftName = "link"
        },
        .field("a property the reader uses", of: "Chat", "title", "the property name is taken") {
            $0.swiftName = "wireKey"
        },
        .field(
            "no text for a field",
            of: "Chat",
            "title",
            "Chat.title: the text must end with a full stop"
        ) {
            $0.doc = "?"
        },
        .field("required with a default", of: "Message", "text", "required and with a default") {
            $0.isRequired = true
        },
        .field("a default of another type", of: "Message", "text", "the default does not fit") {
            $0.defaultValue = .int(0)
        },
        .field(
            "a struct in itself",
            of: "Message",
            "link",
            "Message: holds itself; it must be packed"
        ) {
            $0.type = .named("MessageLink")
        },
        .field("a token that would be logged", of: "TokenAttr", "token", "must be sensitive") {
            $0.isSensitive = false
        },
        .field("a replacement that is not there", of: "Chat", "link", "there is no address to") {
            $0.deprecated = Deprecation(since: 1, replacement: "address", sunset: 2)
        },
        .field("an end before the warning", of: "Chat", "link", "served for one more at least") {
            $0.deprecated = Deprecation(since: 1, replacement: "title", sunset: 1)
        },
        Mistake("a list that fits no frame", "contactIds: a list at its limits does not fit") {
            let index = try #require($0.limits.firstIndex { $0.name == "maxIDsPerRequest" })
            $0.limits[index].value = 1_000_000
        },
        .field("a key that is too long", of: "Chat", "title", "a key has at most 31 bytes") {
            $0.key = String(repeating: "k", count: 32)
        },
        .opcode("a requirement twice", of: "MSG_SEND", "requirement MSG-02 is there twice") {
            $0.edges[0].id = "MSG-02"
        },
        .opcode("a requirement without a number", of: "MSG_SEND", "an id looks like FRM-04") {
            $0.edges[0].id = "MSG-1"
        },
        .opcode("an edge of another level", of: "MSG_SEND", "MSG-01: the text says MUST") {
            $0.edges[0].level = .should
        },
        .opcode("a norm outside of the edges", of: "MSG_SEND", "belongs into an edge, with an id") {
            $0.doc = "The server MUST store it."
        },
        Mistake("a norm without a number", "a normative sentence without an id: It MUST not.") {
            $0.chapters.append(
                ChapterParser.parse("# More\n\nIt MUST not.", name: "more", file: "prose/more.md")
            )
        },
        .opcode("two norms under one number", of: "MSG_SEND", "MSG-01: says MUST or SHOULD more") {
            $0.edges[0].then += " It MUST be so."
        },
        Mistake("a norm among the limits", "belongs into a chapter, with an id: It MUST be so.") {
            $0.limits[0].reason = "It MUST be so."
        },
        Mistake("a number without a norm", "FRM-99 says neither MUST nor SHOULD") {
            $0.chapters.append(
                ChapterParser.parse("- It does. [FRM-99]", name: "more", file: "prose/more.md")
            )
        },
        .flow("a flow with a key nobody knows", "MsgSendRequest has no body") { step in
            guard case .request("MSG_SEND", let from, _, let answer, let save) = step.action else {
                return
            }
            step.action = .request(
                opcode: "MSG_SEND",
                from: from,
                value: .map([.init(key: .string("body"), value: .string("hi"))]),
                answer: answer,
                save: save
            )
        },
        .flow("a flow of somebody who is not there", "dave is not connected") { step in
            if case .silence = step.action { step.action = .silence("dave") }
        },
        .flow("a flow with an error nobody answers", "MSG_SEND does not answer login.token") {
            step in
            guard case .request("MSG_SEND", let from, let value, _, let save) = step.action else {
                return
            }
            step.action = .request(
                opcode: "MSG_SEND",
                from: from,
                value: value,
                answer: .error("login.token"),
                save: save
            )
        },
        Mistake("a common error without an example", "overloaded has no example") {
            for file in $0.examples.indices {
                $0.examples[file].examples.removeAll {
                    $0.value?["error"] == .string("overloaded")
                }
            }
        },
        Mistake("an error nobody answers", "login.flood: no opcode answers it") { specification in
            for family in specification.families.indices {
                for index in specification.families[family].opcodes.indices {
                    specification.families[family].opcodes[index].errors.removeAll {
                        $0 == "login.flood"
                    }
                }
            }
        },
        Mistake("a limit below one", "maxDepth: 0 is out of range") { specification in
            let index = try #require(specification.limits.firstIndex { $0.name == "maxDepth" })
            specification.limits[index].value = 0
        },
        Mistake("a capability twice", "capability or dialect lz4-large is there twice") {
            specification in
            specification.capabilities += specification.capabilities
        },
        Mistake("a capability with capitals", "capability LZ4: a name is lower-case") {
            specification in
            specification.capabilities[0].name = "LZ4"
        },
        Mistake("more capabilities than there are bits", "capability c49: more than 48") {
            specification in
            let first = specification.capabilities[0]
            specification.capabilities = (1...65).map { number in
                var capability = first
                capability.name = "c\(number)"
                return capability
            }
        },
        Mistake("a dialect that is a capability", "dialect lz4-large is there twice") {
            specification in
            specification.dialects[0].documented = specification.capabilities[0]
        },
        .field(
            "a copy of nothing",
            of: "Chat",
            "cid",
            "Chat.cid: a copy of nothing, which is not there"
        ) {
            $0.copyOf = ["nothing"]
        },
        .field(
            "a copy of another type",
            of: "Chat",
            "cid",
            "Chat.cid: of another type than what it copies"
        ) {
            $0.copyOf = ["title"]
        },
        .field(
            "a copy for everybody",
            of: "Chat",
            "cid",
            "Chat.cid: a copy is for one dialect or capability"
        ) {
            $0.capability = nil
        },
        .field(
            "an alias that is a key",
            of: "Element",
            "entityId",
            "Element: key url is there twice"
        ) {
            $0.aliases = ["url"]
        },
        .field(
            "a capability of a required field",
            of: "Chat",
            "id",
            "only an optional field can need a capability"
        ) {
            $0.capability = "history-more"
        },
        .opcode(
            "a capability of a field that only clients send",
            of: "PING",
            "the server sends no requests to keep it from"
        ) {
            $0.request?.fields[0].capability = "history-more"
        },
        .opcode("a push for nobody", of: "NOTIF_MARK", "unknown capability marks") {
            $0.capability = "marks"
        },
        .opcode("a request for some", of: "PING", "only a push can need a capability") {
            $0.capability = "history-more"
        },
        .value("a capability nobody knows", of: "LinkType", "unknown capability threads") {
            $0[1].capability = "threads"
        },
        .value("a fallback for nothing", of: "LinkType", "a fallback goes with a capability") {
            $0[1].fallback = "REPLY"
        },
        .value("a fallback nobody knows", of: "LinkType", "unknown fallback ANSWER") {
            $0[1].capability = "history-more"
            $0[1].fallback = "ANSWER"
        },
        .value("a fallback that is gated too", of: "LinkType", "needs a capability itself") {
            $0[0].capability = "history-more"
            $0[1].capability = "history-more"
            $0[1].fallback = "REPLY"
        },
        .value("a value that falls back to itself", of: "LinkType", "needs a capability itself") {
            $0[1].capability = "history-more"
            $0[1].fallback = "FORWARD"
        },
        .value("a capability of what only clients send", of: "MarkType", "a closed enumeration") {
            $0[0].capability = "history-more"
        },
        .value(
            "a value without a fallback in what cannot be left out",
            of: "ChatType",
            "NotifChat.chat: may have to be left out and is required"
        ) {
            $0[2].capability = "history-more"
        },
        Mistake("a feature twice", "feature phone-lookup is there twice") { specification in
            specification.features += specification.features
        },
        Mistake("an opcode of two features", "the feature of MSG_GET is there twice") {
            specification in
            specification.features[0].opcodes = ["MSG_GET", "MSG_GET"]
        },
        Mistake("a feature of an opcode nobody knows", "MSG_SET is no query and no command") {
            specification in
            specification.features[0].opcodes = ["MSG_SET"]
        },
        Mistake("a feature of what has to be there", "LOGIN is no query and no command") {
            specification in
            specification.features[0].opcodes = ["LOGIN"]
        },
        Mistake("a value of an enumeration twice", "MarkType: value READ_MESSAGE is there twice") {
            specification in
            let index = try #require(specification.enums.firstIndex { $0.name == "MarkType" })
            specification.enums[index].values.append(specification.enums[index].values[0])
        },
        .opcode("an error without an example", of: "MSG_GET", "no example of its error not.allowed")
        {
            $0.errors.append("not.allowed")
        },
        Mistake("an opcode without examples", "MSG_GET has no example of its reply") {
            specification in
            specification.examples.removeAll { $0.opcode == "MSG_GET" }
        },
        .example("other bytes", of: "PING", .request, "the value encodes to 0a0000020001") {
            $0.hex = $0.hex?.replacing("c3", with: "c2")
        },
        .example("another value", of: "PING", .request, "the value encodes to 0a0000020001") {
            $0.value = .map([.init(key: .string("interactive"), value: .bool(false))])
        },
        .example(
            "a value of another type",
            of: "PING",
            .request,
            "the value is refused: /interactive: expected"
        ) {
            $0.value = .map([.init(key: .string("interactive"), value: .int(1))])
        },
        .example(
            "an unknown key",
            of: "PING",
            .request,
            "the value is not what the server would write"
        ) {
            $0.value = .map([.init(key: .string("active"), value: .bool(true))])
        },
        .example("an encoding of something else", of: "PING", .request, "decodes to another value")
        {
            $0.accepts[0].hex = "0a00000200010000000180"
            $0.accepts[0].wire = nil
        },
        .example(
            "a refusal in other words",
            of: "PING",
            .request,
            "is refused with: /interactive: expected"
        ) {
            $0.rejects[0].error = "wrong"
        },
        .example("a refusal of what is right", of: "PING", .request, "is not refused") {
            $0.rejects[0].wire = nil
            $0.rejects[0].hex = $0.hex
        },
        .example(
            "an error it does not answer",
            of: "MSG_GET",
            .error,
            "MSG_GET does not answer login.token"
        ) {
            $0.value = .map([
                .init(key: .string("error"), value: .string("login.token")),
                .init(key: .string("message"), value: .string("FAIL_LOGIN_TOKEN")),
            ])
        },
        .example(
            "an error in other words",
            of: "MSG_GET",
            .error,
            "the message of chat.not.found is"
        ) {
            $0.value = .map([
                .init(key: .string("error"), value: .string("chat.not.found")),
                .init(key: .string("message"), value: .string("Gone")),
            ])
        },
    ]

    @Test("finds a misspelt key of the YAML and says where it is")
    func findsMisspeltKey() throws {
        let folder = FileManager.default.temporaryDirectory.appending(
            path: "tambour-spec-\(UUID())"
        )
        defer { try? FileManager.default.removeItem(at: folder) }
        let original = Repository.root.appending(path: "protocol-spec").resolvingSymlinksInPath()
        try FileManager.default.copyItem(at: original, to: folder)
        let file = folder.appending(path: "errors.yaml")
        let text = try String(contentsOf: file, encoding: .utf8)
        try Data(text.replacing("retry: refresh", with: "retries: refresh").utf8).write(to: file)

        var loader = SpecificationLoader(root: folder)
        _ = loader.load()
        let problem = try #require(loader.problems.first)
        #expect(problem.text == "unknown key \"retries\"")
        #expect(problem.origin.file == "errors.yaml")
        #expect(problem.origin.line > 0)
    }

    @Test("names the file that is missing, and the line that is not UTF-8")
    func findsUnreadableFiles() throws {
        let folder = FileManager.default.temporaryDirectory.appending(
            path: "tambour-spec-\(UUID())"
        )
        defer { try? FileManager.default.removeItem(at: folder) }
        try FileManager.default.createDirectory(
            at: folder.appending(path: "prose"),
            withIntermediateDirectories: true
        )
        try Data("version: 1\n# caf".utf8 + [0xe9, 0x0a]).write(
            to: folder.appending(path: "protocol.yaml")
        )
        try Data([0x23, 0x0a, 0xff]).write(to: folder.appending(path: "prose/guide.md"))
        var loader = SpecificationLoader(root: folder)
        _ = loader.load()
        #expect(
            loader.problems.map(\.description) == [
                "protocol-spec/protocol.yaml:2: is not UTF-8",
                "protocol-spec/limits.yaml: there is no such file",
                "protocol-spec/errors.yaml: there is no such file",
                "protocol-spec/types.yaml: there is no such file",
                "protocol-spec/prose/guide.md:2: is not UTF-8",
            ]
        )
    }

    @Test("reads types no deeper than need be")
    func deepTypes() throws {
        func nested(_ depth: Int) -> String {
            String(repeating: "list<", count: depth) + "int" + String(repeating: ">", count: depth)
        }
        #expect(WireType(nested(WireType.mostNested)) != nil)
        #expect(WireType(nested(WireType.mostNested + 1)) == nil)
        #expect(WireType(nested(60_000)) == nil)

        let folder = FileManager.default.temporaryDirectory.appending(
            path: "tambour-spec-\(UUID())"
        )
        defer { try? FileManager.default.removeItem(at: folder) }
        let original = Repository.root.appending(path: "protocol-spec").resolvingSymlinksInPath()
        try FileManager.default.copyItem(at: original, to: folder)
        let file = folder.appending(path: "types.yaml")
        let text = try String(contentsOf: file, encoding: .utf8)
        let deep = text.replacing("type: list<Element>", with: "type: \(nested(60_000))")
        try #require(deep != text)
        try Data(deep.utf8).write(to: file)
        var loader = SpecificationLoader(root: folder)
        _ = loader.load()
        let problem = try #require(loader.problems.first)
        #expect(problem.text.hasSuffix(": a type may nest 32 deep"))
    }

    @Test(
        "refuses a malformed form of a dialect",
        arguments: [
            "gone", "{prefix: [x]}", "{words: {}}", "{leavesOut: {id: x}}", "{}", "[absent]",
        ]
    )
    func strangeForm(_ form: String) throws {
        let folder = FileManager.default.temporaryDirectory.appending(
            path: "tambour-spec-\(UUID())"
        )
        defer { try? FileManager.default.removeItem(at: folder) }
        let original = Repository.root.appending(path: "protocol-spec").resolvingSymlinksInPath()
        try FileManager.default.copyItem(at: original, to: folder)
        let file = folder.appending(path: "types.yaml")
        let text = try String(contentsOf: file, encoding: .utf8)
        let strange = text.replacing(
            "inDialect: {tamtam: absent}",
            with: "inDialect: {tamtam: \(form)}",
            maxReplacements: 1
        )
        try #require(strange != text)
        try Data(strange.utf8).write(to: file)
        var loader = SpecificationLoader(root: folder)
        _ = loader.load()
        #expect(
            loader.problems.first?.text
                == "inDialect tamtam: expected absent, words, prefix or leavesOut"
        )
    }

    @Test("does not crash at a version that is none", arguments: [Int.min, -1, 0])
    func strangeVersion(_ version: Int) throws {
        var specification = try Repository.specification()
        specification.version = version
        #expect(!SpecificationCheck.problems(of: specification).isEmpty)
    }

    @Test("fills in bytes once and leaves the rest of the file alone")
    func fillsIn() throws {
        let file = "examples/session/ping.yaml"
        let text = try String(
            contentsOf: Repository.root.appending(path: "protocol-spec/\(file)"),
            encoding: .utf8
        )
        let specification = try Repository.specification()
        #expect(try ExampleFiller(specification: specification).changes { _ in text }.isEmpty)

        var open = specification
        let index = try #require(open.examples.firstIndex { $0.opcode == "PING" })
        let hex = try #require(open.examples[index].examples[0].hex)
        open.examples[index].examples[0].hex = "auto"
        let blank = text.replacing("hex: \"\(hex)\"", with: "hex: auto", maxReplacements: 1)
        let changes = try ExampleFiller(specification: open).changes { _ in blank }
        #expect(changes.map(\.file) == [file])
        #expect(changes.first?.text == text)
    }
}
