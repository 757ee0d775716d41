import Foundation
import TambourTesting
import Testing

@testable import tambour_spec

@Suite("Releases")
struct ReleasesTests {
    /// Runs `body` with an empty folder, and then removes the folder.
    private func inFolder(_ body: (URL) throws -> Void) throws {
        let root = FileManager.default.temporaryDirectory.appending(
            path: "tambour-releases-\(UUID())",
            directoryHint: .isDirectory
        )
        try FileManager.default.createDirectory(at: root, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: root) }
        try body(root)
    }

    /// Runs `body` with a repository that contains this specification and no releases.
    private func inRepository(_ body: (URL) throws -> Void) throws {
        try inFolder { root in
            let original = Repository.root.appending(path: "protocol-spec")
            let copy = root.appending(path: "protocol-spec")
            try FileManager.default.createDirectory(at: copy, withIntermediateDirectories: true)
            for name in try FileManager.default.contentsOfDirectory(atPath: original.path)
            where name.hasSuffix(".yaml") || ["opcodes", "prose"].contains(name) {
                try FileManager.default.copyItem(
                    at: original.appending(path: name).resolvingSymlinksInPath(),
                    to: copy.appending(path: name)
                )
            }
            try body(root)
        }
    }

    /// Replaces the first occurrence of a text in a file below `protocol-spec/`.
    private func edit(_ file: String, in root: URL, _ old: String, _ new: String) throws {
        let place = root.appending(path: "protocol-spec/\(file)")
        var text = try String(contentsOf: place, encoding: .utf8)
        text.replaceSubrange(try #require(text.firstRange(of: old)), with: new)
        try Data(text.utf8).write(to: place)
    }

    private func texts(_ problems: [Problem]) -> [String] { problems.map(\.description) }

    /// Writes the digests of all existing releases, as happens when the next release begins.
    private func seal(_ root: URL) throws {
        let releases = Releases(root: root)
        let lines = try releases.versions.map { "\($0) \(try releases.digest(of: $0))\n" }
        try Data(lines.joined().utf8).write(
            to: releases.folder.appending(path: Releases.digestFile)
        )
    }

    /// Runs `body` with a repository that contains a frozen release 1 and a draft of release 2.
    private func withDraft(_ body: (URL, Releases, Specification) throws -> Void) throws {
        try inRepository { root in
            let releases = Releases(root: root)
            var specification = try Repository.specification()
            _ = try releases.write(specification, again: false)
            try edit("protocol.yaml", in: root, "version: 1", "version: 2")
            specification.version = 2
            _ = try releases.write(specification, again: false)
            #expect(releases.problems(of: specification) == [])
            try body(root, releases, specification)
        }
    }

    @Test("keep what declares promises, and nothing else")
    func kept() throws {
        try inRepository { root in
            let releases = Releases(root: root)
            _ = try releases.write(try Repository.specification(), again: false)
            let kept = try FileManager.default.subpathsOfDirectory(
                atPath: releases.folder(of: 1).path
            )
            #expect(kept.contains("types.yaml") && kept.contains("opcodes/messages.yaml"))
            #expect(kept.contains("prose/framing.md"))
            // The written release makes the same promises as the specification.
            let before = Promises(of: try releases.release(1))
            let after = Promises(of: try Repository.specification())
            #expect(before.items.count == after.items.count)
            #expect(CompatibilityCheck(from: before, to: after).differences().isEmpty)

            // If a file is removed from the specification, `write` also removes it from the
            // release.
            try FileManager.default.removeItem(
                at: root.appending(path: "protocol-spec/prose/wireshark.md")
            )
            #expect(try releases.write(try Repository.specification(), again: true))
            let left = try FileManager.default.subpathsOfDirectory(
                atPath: releases.folder(of: 1).path
            )
            #expect(Set(kept).subtracting(left) == ["prose/wireshark.md"])
        }
    }

    @Test("are sealed when the next one begins")
    func sealed() throws {
        try withDraft { root, releases, specification in
            let digests = releases.folder.appending(path: Releases.digestFile)
            let lines = try String(contentsOf: digests, encoding: .utf8)
            #expect(lines.hasPrefix("1 "))

            // Make the same edit in the specification, in the frozen release and in the draft. The
            // three do not differ then, and only the digest reveals the edit.
            let (old, new) = ("value: 1048576", "value: 1048577")
            var other = specification
            other.limits[0].value += 1
            for folder in ["", "released/1/", "released/2/"] {
                try edit("\(folder)limits.yaml", in: root, old, new)
            }
            #expect(
                texts(releases.problems(of: other)) == [
                    "protocol-spec/released: release 1 is frozen, and its files are not what they were"
                ]
            )
            #expect(throws: Releases.Failure.self) { try releases.write(other, again: true) }

            // The digest of the edited release is missing. The release must not get a new digest.
            try FileManager.default.removeItem(at: digests)
            #expect(texts(releases.problems(of: other)).contains { $0.contains("no digest") })
            #expect(throws: Releases.Failure.self) { try releases.write(other, again: true) }

            try edit("released/1/limits.yaml", in: root, new, old)
            for wrong in ["1 12\n", lines + lines, "x \(lines)"] {
                try Data(wrong.utf8).write(to: digests)
                #expect(
                    texts(releases.problems(of: specification)).contains {
                        $0.contains("released/digests:")
                    }
                )
            }
        }
    }

    @Test("are compared with before the draft hides them")
    func behindDraft() throws {
        try withDraft { root, releases, specification in
            var other = specification
            other.limits[0].unit = "parsecs"
            try edit("released/2/limits.yaml", in: root, "unit: bytes", "unit: parsecs")
            #expect(
                texts(releases.problems(of: other)).contains { $0.contains("release 1 is broken") }
            )
        }
    }

    @Test("must be there, under their numbers, and their version too")
    func folders() throws {
        try inRepository { root in
            let releases = Releases(root: root)
            #expect(
                releases.folderProblems(for: 1).map(\.text) == [
                    "there is no release to compare with; make release-spec writes it"
                ]
            )
            for version in [Int.min, -1, 0, 2, 4_000_000, .max] {
                #expect(releases.folderProblems(for: version).count == 1)
            }
        }
        try withDraft { _, releases, _ in
            for version in [1, 2, 3] {
                let problems = releases.folderProblems(for: version).map(\.text)
                #expect(problems.isEmpty == (version == 2), "\(version): \(problems)")
            }
            for version in [Int.min, -1, 0, 4, 4_000_000, .max] {
                #expect(
                    releases.folderProblems(for: version).map(\.text) == [
                        "version \(version) is not from 1 to 3, the release after the newest"
                    ]
                )
            }
            for name in ["one", "01", "0", "1.old", ".3"] {
                let folder = releases.folder.appending(path: name)
                try FileManager.default.createDirectory(
                    at: folder,
                    withIntermediateDirectories: true
                )
                #expect(
                    releases.folderProblems(for: 2).map(\.text) == [
                        "\(name) is neither the number of a release nor digests"
                    ]
                )
                try FileManager.default.removeItem(at: folder)
            }
            try FileManager.default.moveItem(
                at: releases.folder(of: 1),
                to: releases.folder(of: 4_000_000)
            )
            for version in [2, 4_000_001] {
                #expect(
                    releases.folderProblems(for: version).map(\.text) == [
                        "release 1 was never written; it must be before the next one begins"
                    ]
                )
            }
        }
    }

    @Test("let no command pass or crash where they or the specification are wrong")
    func program() throws {
        let program = try #require(Tool.built("tambour-spec"))
        let original = Repository.root.appending(path: "protocol-spec").resolvingSymlinksInPath()
        for (file, old, new, message) in [
            ("protocol.yaml", "version: 1 ", "version: 0 ", "version 0 is not from 1 to 2"),
            (
                "protocol.yaml", "version: 1 ", "version: 9223372036854775807 ",
                "version 9223372036854775807 is not from 1 to 2"
            ),
            ("opcodes/messages.yaml", "opcode: 65\n", "opcode: 70000\n", "opcode 70000 is outside"),
        ] {
            try inFolder { root in
                let specification = root.appending(path: "protocol-spec")
                try FileManager.default.copyItem(at: original, to: specification)
                let place = specification.appending(path: file)
                let text = try String(contentsOf: place, encoding: .utf8)
                try #require(text.contains(old))
                try Data(text.replacing(old, with: new).utf8).write(to: place)
                let commands =
                    file == "protocol.yaml"
                    ? [["check"], ["breaking"], ["diff", "1"], ["docs"]] : [["check"], ["docs"]]
                for command in commands {
                    let site = root.appending(path: "site")
                    let outcome = try Tool.run(
                        program,
                        command + (command == ["docs"] ? ["--out", site.path] : [])
                            + ["--root", root.path],
                        in: TemporaryFolder()
                    )
                    #expect(outcome.status == 1 && outcome.errors.contains(message), "\(outcome)")
                    #expect(!FileManager.default.fileExists(atPath: site.path))
                }
            }
        }
    }

    @Test("take other words for a requirement only by a note")
    func reworded() throws {
        try withDraft { root, releases, specification in
            var specification = specification
            let id = "FRM-01"
            for index in specification.chapters.indices {
                for other in specification.chapters[index].requirements.indices
                where specification.chapters[index].requirements[other].id == id {
                    specification.chapters[index].requirements[other].text += " Always."
                }
            }
            try edit("prose/framing.md", in: root, "[\(id)]", "Always. [\(id)]")
            #expect(
                texts(releases.problems(of: specification)).contains {
                    $0.contains("release 1 is broken: requirement \(id)")
                }
            )
            let folder = releases.folder.deletingLastPathComponent().appending(path: "changes/2")
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            try Data("---\ntouches: [\(id)]\nreworded: [\(id)]\n---\nClearer.\n".utf8).write(
                to: folder.appending(path: "clearer.md")
            )
            // The draft still contains the old text, so write the draft again.
            #expect(try releases.write(specification, again: true))
            #expect(texts(releases.problems(of: specification)) == [])
        }
    }

    @Test("are written once, and again only when asked to")
    func written() throws {
        try inRepository { root in
            let releases = Releases(root: root)
            var specification = try Repository.specification()
            #expect(try releases.write(specification, again: false))
            #expect(try releases.write(specification, again: false) == false)
            #expect(releases.versions == [1])

            try edit("limits.yaml", in: root, "value: 1048576", "value: 1048577")
            specification.limits[0].value += 1
            #expect(throws: Releases.Failure.self) {
                try releases.write(specification, again: false)
            }
            #expect(try releases.release(1).limits[0].value + 1 == specification.limits[0].value)
            #expect(try releases.write(specification, again: true))
            #expect(try releases.release(1).limits[0].value == specification.limits[0].value)
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
            try edit("protocol.yaml", in: root, "version: 1", "version: 2")
            try edit("limits.yaml", in: root, "value: 1048576", "value: 1048577")
            _ = try releases.write(second, again: false)
            #expect(releases.versions == [1, 2])
            #expect(try releases.newest()?.version == 2)
            #expect(try releases.release(1).limits[0].value == first.limits[0].value)
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
            try seal(root)
            var second = first
            second.version = 2
            let chat = try #require(second.structs.firstIndex { $0.name == "Chat" })
            let title = try #require(
                second.structs[chat].fields.firstIndex { $0.key == "title" }
            )
            second.structs[chat].fields.remove(at: title)
            Trials.forEachOpcode(&second) { if $0.name == "LOG" { $0.number = 1024 } }
            // Write release 2 without the field and the opcode, as if their time of deprecation had
            // ended.
            try FileManager.default.copyItem(
                at: releases.folder(of: 1),
                to: releases.folder(of: 2)
            )
            try edit("released/2/protocol.yaml", in: root, "version: 1", "version: 2")
            try edit("released/2/opcodes/session.yaml", in: root, "opcode: 5\n", "opcode: 1024\n")
            let line = "{key: title, type: text, limit: maxTitleUnits, since: 1, doc: Title of"
            let other = line.replacing("title,", with: "was,")
            try edit("released/2/types.yaml", in: root, line, other)

            try seal(root)
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
            try seal(root)
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
                (
                    "---\ntouches: [maxTextUnits, Chat]\nreworded: [CAP-01]\n---\nWhy.\n",
                    "CAP-01 is reworded, but not touched"
                ),
                (
                    "---\ntouches: [maxTextUnits, Chat]\nreworded: [Chat]\n---\nWhy.\n",
                    "Chat is reworded, whose words have not changed"
                ),
                ("---\ntouch: [maxTextUnits, Chat]\n---\nWhy.\n", "unknown key \"touch\""),
            ] {
                try write(note)
                let problems = texts(releases.problems(of: specification))
                #expect(problems.contains { $0.contains(wrong) }, "\(problems)")
            }
        }
    }
}
