import Foundation
import TambourClient
import TambourProtocol
import TambourTesting
import Testing

/// Compiles and runs the code that the tour of the library shows.
@Suite("The tour")
struct TourTests {
    private let file = URL(filePath: #filePath)

    @Test("goes from signing in to a note")
    func tour() async throws {
        try await withWorld { world in
            let bob = try world.server.signUp("Bob")
            let path = "\(world.directory)/tour.db"
            let server = world.server.address
            let number = world.server.freshPhone()
            let phone = "+\(number)"
            let password = "never asked for"

            let client = try Client(store: path, server: server)
            client.start()
            let code = try await client.requestCode(phone: phone)

            let digits = try world.server.receivedCode(of: number)
            switch try await client.signIn(code: digits, for: code) {
            case .done: break
            case .nameWanted(let registration):
                try await client.register(registration, firstName: "Anna")
            case .passwordWanted(let request):
                try await client.signIn(password: password, for: request)
            }

            for await state in client.states() where state == .online { break }

            let chat = ChatID.dialog(try #require(try client.me()), bob.userID)
            let changes = client.changes()
            let outgoing = try await client.send("hello", to: chat)
            if let reason = try client.failure(of: outgoing) {
                print("refused: \(reason)")
            }

            for await change in changes
            where change.histories.contains(chat) || change.everything {
                let page = try client.history(of: chat)
                if page.rows.last?.state == .sent { break }
            }

            let home = try await client.createEntity(.account, fields: ["name": .string("Home")])
            let anna = try await client.createEntity(
                .profile,
                below: home,
                fields: ["name": .string("Anna")]
            )
            let note = try await client.createEntity(
                .note,
                below: anna,
                fields: ["title": .string("Milk")]
            )
            try await client.updateEntity(note, fields: ["text": .string("two litres")])
            for conflict in try await client.entityConflicts() {
                try await client.resolveConflict(conflict.id, .mine)
            }
            #expect(try await client.entity(note)?.entity.fields["text"] == .string("two litres"))

            await client.stop()
        }
    }

    @Test("shows the code of this test")
    func sameCode() throws {
        let root = file.deletingLastPathComponent().appending(path: "../../..").standardized
        let tour = root.appending(path: "Sources/TambourClient/TambourClient.docc/Tour.md")
        let here = Self.lines(of: try String(contentsOf: file, encoding: .utf8))
        let blocks = try String(contentsOf: tour, encoding: .utf8).split(separator: "```swift")
            .dropFirst()
            .map {
                Self.lines(of: String($0[..<($0.firstRange(of: "```")?.lowerBound ?? $0.endIndex)]))
            }
        #expect(blocks.count >= 6)
        for block in blocks { #expect(here.contains(block), "\(block)") }
    }

    /// Returns the text without the white space and commas that the formatter controls.
    private static func lines(of text: String) -> String {
        text.filter { !$0.isWhitespace }.replacing(",)", with: ")")
    }
}
