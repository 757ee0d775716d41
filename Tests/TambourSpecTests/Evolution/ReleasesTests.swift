import Foundation
import Testing

@testable import tambour_spec

@Suite("Releases")
struct ReleasesTests {
    /// A repository with no releases, gone when the test is over.
    private func inRepository(_ body: (URL) throws -> Void) throws {
        let root = FileManager.default.temporaryDirectory.appending(
            path: "tambour-releases-\(UUID())",
            directoryHint: .isDirectory
        )
        try FileManager.default.createDirectory(at: root, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: root) }
        try body(root)
    }

    private func texts(_ problems: [Problem]) -> [String] { problems.map(\.description) }

    @Test("are written once, and again only when asked to")
    func written() throws {
        try inRepository { root in
            let releases = Releases(root: root)
            var specification = try Repository.specification()
            #expect(try releases.write(specification, again: false))
            #expect(try releases.write(specification, again: false) == false)
            #expect(releases.versions == [1])

            specification.limits[0].value += 1
            #expect(throws: Releases.Failure.self) {
                try releases.write(specification, again: false)
            }
            #expect(
                try releases.surface(of: 1).limits[0].value + 1 == specification.limits[0].value
            )
            #expect(try releases.write(specification, again: true))
            #expect(try releases.surface(of: 1).limits[0].value == specification.limits[0].value)
        }
    }

    @Test("are frozen when the next one begins")
    func frozen() throws {
        try inRepository { root in
            let releases = Releases(root: root)
            let first = try Repository.specification()
            _ = try releases.write(first, again: false)
            var second = first
            second.version = 2
            second.limits[0].value += 1
            _ = try releases.write(second, again: false)
            #expect(releases.versions == [1, 2])
            #expect(try releases.newest()?.version == 2)
            #expect(try releases.newest(below: 2)?.limits[0].value == first.limits[0].value)
            #expect(throws: Releases.Failure.self) { try releases.write(first, again: true) }
        }
    }

    @Test("are not written when they break the one before")
    func breaking() throws {
        try inRepository { root in
            let releases = Releases(root: root)
            var specification = try Repository.specification()
            _ = try releases.write(specification, again: false)
            specification.version = 2
            specification.limits[0].unit = "parsecs"
            #expect(throws: Releases.Failure.self) {
                try releases.write(specification, again: false)
            }
            #expect(releases.versions == [1])
        }
    }

    @Test("must not be missing when the next one begins")
    func missing() throws {
        try inRepository { root in
            var specification = try Repository.specification()
            specification.version = 2
            let problems = Releases(root: root).problems(of: specification)
            #expect(texts(problems).contains { $0.contains("release 1 was never written") })
        }
    }

    @Test("keep the names of what is gone from being used again")
    func reused() throws {
        try inRepository { root in
            let releases = Releases(root: root)
            let first = try Repository.specification()
            _ = try releases.write(first, again: false)
            var second = first
            second.version = 2
            let chat = try #require(second.structs.firstIndex { $0.name == "Chat" })
            let title = try #require(
                second.structs[chat].fields.firstIndex { $0.key == "title" }
            )
            second.structs[chat].fields.remove(at: title)
            Trials.forEachOpcode(&second) { if $0.name == "LOG" { $0.number = 1024 } }
            // As if both had been deprecated long before.
            let file = releases.folder(of: 2).appending(path: Releases.surfaceFile)
            try FileManager.default.createDirectory(
                at: releases.folder(of: 2),
                withIntermediateDirectories: true
            )
            try Data(ProtocolBundle(specification: second).surface().utf8).write(to: file)

            var third = second
            third.version = 3
            var field = first.structs[chat].fields[title]
            field.since = 3
            third.structs[chat].fields.append(field)
            var log = try #require(first.opcode(named: "LOG"))
            log.since = 3
            log.name = "LOG_AGAIN"
            third.families[0].opcodes.append(log)
            let problems = texts(releases.problems(of: third))
            for title in ["Chat.title", "LOG_AGAIN"] {
                #expect(
                    problems.contains { $0.contains("\(title): was something else in release 1") },
                    "\(problems)"
                )
            }
        }
    }

    @Test("say how a change to the one being written is accepted")
    func hint() throws {
        try inRepository { root in
            let releases = Releases(root: root)
            var specification = try Repository.specification()
            _ = try releases.write(specification, again: false)
            specification.limits[0].unit = "parsecs"
            let problems = texts(releases.problems(of: specification))
            #expect(problems.count == 2)
            #expect(problems.last?.contains("make release-spec") == true)
        }
    }

    @Test("need a note for every difference from the last one, and no other")
    func notes() throws {
        try inRepository { root in
            let releases = Releases(root: root)
            var specification = try Repository.specification()
            _ = try releases.write(specification, again: false)
            specification.version = 2
            let text = try #require(
                specification.limits.firstIndex { $0.name == "maxTextUnits" }
            )
            specification.limits[text].value += 1
            let chat = try #require(specification.structs.firstIndex { $0.name == "Chat" })
            var field = try #require(specification.structs[chat].fields.first { $0.isOptional })
            field.key = "addedLater"
            field.since = 2
            specification.structs[chat].fields.append(field)

            let bare = texts(releases.problems(of: specification))
            #expect(bare.count == 2)
            #expect(bare.contains { $0.contains("touches maxTextUnits") })
            #expect(bare.contains { $0.contains("touches Chat") })

            let folder = root.appending(path: "protocol-spec/changes/2")
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            let file = folder.appending(path: "longer-texts.md")
            func write(_ note: String) throws { try Data(note.utf8).write(to: file) }

            try write("---\naudience: client\ntouches: [maxTextUnits, Chat]\n---\nMore room.\n")
            #expect(texts(releases.problems(of: specification)) == [])
            try write("---\naudience: client\ntouches: [maxTextUnits, Chat, PING]\n---\nWhy.\n")
            #expect(
                texts(releases.problems(of: specification)) == [
                    "protocol-spec/changes/2/longer-texts.md:1: touches PING, which has not changed"
                ]
            )
            for (note, wrong) in [
                ("More room.\n", "front matter"),
                ("---\ntouches: [maxTextUnits, Chat]\n---\n", "does not say why"),
                ("---\naudience: nobody\ntouches: [maxTextUnits, Chat]\n---\nWhy.\n", "nobody"),
                ("---\ntouch: [maxTextUnits, Chat]\n---\nWhy.\n", "unknown key \"touch\""),
            ] {
                try write(note)
                let problems = texts(releases.problems(of: specification))
                #expect(problems.contains { $0.contains(wrong) }, "\(problems)")
            }
        }
    }
}
