import Foundation
import Testing

@testable import tambour_spec

@Suite("Release notes")
struct ReleaseNotesTests {
    /// Returns a release with one change of every kind.
    private func next() throws -> Specification {
        var next = try Repository.specification()
        next.version = 2
        func doc(_ entry: inout Specification.Documented) {
            entry.name = "polls"
            entry.since = 2
            entry.doc = "The client draws polls."
        }
        var capability = next.capabilities[0]
        doc(&capability)
        next.capabilities.append(capability)

        let family = try #require(next.families.firstIndex { $0.name == "chats" })
        var opcode = try #require(next.opcode(named: "CHAT_INFO"))
        opcode.number = 1024
        opcode.name = "CHAT_COUNT"
        opcode.since = 2
        opcode.doc = "How many messages a chat has."
        opcode.errors = ["chat.not.found"]
        opcode.edges = []
        opcode.reply?.fields = []
        next.families[family].opcodes.append(opcode)

        Trials.forEachOpcode(&next) { opcode in
            if opcode.name == "MSG_TYPING" { opcode.idempotency = .idempotent }
            if opcode.name == "LOG" {
                opcode.deprecated = Deprecation(since: 2, replacement: "PING", sunset: 4)
            }
        }
        let chat = try #require(next.structs.firstIndex { $0.name == "Chat" })
        var field = try #require(next.structs[chat].fields.first { $0.key == "title" })
        field.key = "poll"
        field.capability = "polls"
        field.since = 2
        field.doc = "The poll that is open."
        next.structs[chat].fields.append(field)
        next.structs[chat].fields.removeAll { $0.key == "restrictions" }

        let limit = try #require(next.limits.firstIndex { $0.name == "maxTextUnits" })
        next.limits[limit].value = 5000
        let chapter = try #require(next.chapters.firstIndex { $0.name == "evolution" })
        next.chapters[chapter].requirements.removeAll { $0.id == "CAP-01" }
        return next
    }

    @Test("tell what was added, changed, deprecated and removed, by subject")
    func text() throws {
        let note = ChangeNote(
            name: "longer-texts",
            audience: .client,
            touches: ["maxTextUnits"],
            text: "People write more.",
            origin: Origin(file: "", line: 0)
        )
        let notes = ReleaseNotes(from: Trials.old, to: try next(), notes: [note])
        let expected = """
            # Release 2

            What changed in the protocol since release 1.

            ## Why

            **maxTextUnits** (for clients)

            People write more.

            ## Handshake

            ### Added

            - capability `polls`: The client draws polls.

            ## Opcodes: chats

            ### Added

            - `CHAT_COUNT` (1024) (clientToServer, safe): How many messages a chat has.
                - CHAT_COUNT in the state loggedIn
                - CHAT_COUNT: error chat.not.found
                - `CHAT_COUNT request.chatIds` (`list<chatId>`, required, at most `maxIDsPerRequest` items): \
            Which chats; 0 is the caller's saved messages.

            ## Opcodes: messages

            ### Changed

            - `MSG_TYPING` (65): idempotency safe → idempotent

            ## Opcodes: session

            ### Deprecated

            - `LOG` (5): use `PING` instead
            - `LOG` (5): may be gone in release 4

            ## Objects

            ### Added

            - `Chat.poll` (`text`, optional, at most `maxTitleUnits` units, only with the capability `polls`): The poll that is open.

            ### Removed

            - `Chat.restrictions`

            ## Limits

            ### Changed

            - limit `maxTextUnits`: value 4000 → 5000

            ## Requirements

            ### Removed

            - requirement CAP-01

            """
        let text = notes.text()
        #expect(text == expected, "\(GeneratedFiles.difference(from: expected, to: text))")
    }

    @Test("say so when nothing changed")
    func nothing() {
        let text = ReleaseNotes(from: Trials.old, to: Trials.old).text()
        #expect(text.hasSuffix("\n\nNothing.\n"))
    }
}
