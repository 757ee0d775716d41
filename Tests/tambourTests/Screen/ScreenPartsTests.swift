import Foundation
import TambourClient
import TambourProtocol
import Testing

@testable import TerminalKit
@testable import tambour

@Suite("Parts of the screen")
struct ScreenPartsTests {
    @Test(
        "days are understood as people write them",
        arguments: [
            ("2026-11-23", "2026-11-23"), ("23.11.2026", "2026-11-23"), ("24.12", "2025-12-24"),
            ("11-22", "2026-11-22"), ("today", "2026-11-25"), ("Yesterday", "2026-11-24"),
            ("monday", "2026-11-23"), ("wed", "2026-11-25"), ("thu", "2026-11-19"),
            ("2026-02-30", nil), ("someday", nil), ("", nil), ("1-2-3-4", nil), ("-", nil),
        ] as [(String, String?)]
    )
    func dates(text: String, day: String?) throws {
        var calendar = Calendar(identifier: .gregorian)
        calendar.timeZone = try #require(TimeZone(identifier: "Asia/Tokyo"))
        let now = try #require(
            calendar.date(from: DateComponents(year: 2026, month: 11, day: 25, hour: 13))
        )
        let time = DateWords.time(of: text, now: now, calendar: calendar)
        let parts = time.map {
            calendar.dateComponents(
                [.year, .month, .day, .hour],
                from: Date(timeIntervalSince1970: Double($0) / 1000)
            )
        }
        #expect(parts.map { String(format: "%04d-%02d-%02d", $0.year!, $0.month!, $0.day!) } == day)
        #expect(parts?.hour ?? 0 == 0)
    }

    @Test(
        "addresses are found in texts, without the sentence around them",
        arguments: [
            ("see https://a.example/x, or", ["https://a.example/x"]),
            ("(https://a.example/y)", ["https://a.example/y"]),
            ("https://a.example/Foo_(bar)", ["https://a.example/Foo_(bar)"]),
            ("(https://a.example/Foo_(bar)).", ["https://a.example/Foo_(bar))"]),
            ("(see https://a.example/y).))", ["https://a.example/y"]),
            ("“http://a.example/?q=1#z”.", ["http://a.example/?q=1#z"]),
            ("mailto:bob@a.example!", ["mailto:bob@a.example"]),
            ("javascript:alert(1) file:///etc/passwd https://", []),
            ("👩‍💻 https://a.example/ 1", ["https://a.example/"]),
        ] as [(String, [String])]
    )
    func links(text: String, addresses: [String]) {
        let found = Links.ranges(in: text)
        #expect(found.map(\.address) == addresses)
        for link in found {
            let units = Array(text.utf16)[link.range]
            #expect(String(decoding: units, as: UTF16.self) == link.address)
        }
    }

    @Test("an address before any number of brackets is read over a few times, not once for each")
    func brackets() {
        // If each bracket caused a separate search, the searches would take five billion steps.
        let brackets = String(repeating: ")", count: 100_000)
        let found = Links.ranges(in: "https://a.example/x\(brackets)")
        #expect(found.map(\.address) == ["https://a.example/x"])
        let opened = Links.ranges(in: "https://a.example/(x\(brackets).,")
        #expect(opened.map(\.address) == ["https://a.example/(x\(brackets)"])
    }

    @Test("no link starts a program in another way than with an address")
    func safety() {
        #expect(Links.isSafe("https://a.example/$(reboot)"))
        #expect(!Links.isSafe("--help"))
        #expect(!Links.isSafe("https://a.example/ -x"))
        #expect(!Links.isSafe("https://a.example/\n"))
        #expect(!Links.isSafe("data:text/html,x"))
    }

    @Test("who is named in a text is found, the longest name first")
    func mentions() {
        let people = [UserID(1): "Anna", UserID(2): "Anna Lee", UserID(3): "Боб"]
        let found = ScreenController.mentions(in: "👋 @Anna Lee, @Anna and @Боб", of: people)
        #expect(found.map(\.style) == [2, 1, 3].map { .mention(UserID($0)) })
        #expect(found.first?.range == 3..<12)
    }

    @Test("places are left, gone back to, and forward again")
    func places() {
        var places = Places()
        let all = (1...3).map { Places.Place(chat: ChatID($0), message: nil) }
        places.leave(all[0])
        places.leave(all[1])
        #expect(places.goBack(from: all[2]) == all[1])
        #expect(places.goBack(from: all[1]) == all[0])
        #expect(places.goBack(from: all[0]) == nil)
        #expect(places.goForward(from: all[0]) == all[1])
        places.leave(all[1])
        #expect(places.goForward(from: all[0]) == nil)
    }

    @Test("words that a search found are marked by their beginnings, accents aside")
    func matches() {
        let text = "👩‍💻 Élan vital, elan"
        let found = MessageLayouts.matches(of: ["ela"], in: text)
        let words = found.map { String(decoding: Array(text.utf16)[$0], as: UTF16.self) }
        #expect(words == ["Éla", "ela"])
    }

    @Test("emoji have one name each, of letters that can be typed")
    func emoji() {
        let names = Emoji.all.map(\.name)
        #expect(names.count > 250)
        #expect(Set(names).count == names.count)
        #expect(names.allSatisfy { $0.allSatisfy { $0.isASCII && ($0.isLetter || $0 == "_") } })
        #expect(Emoji.all.allSatisfy { $0.emoji.count == 1 })
    }

    @Test("what was chosen is kept in a file")
    func preferences() throws {
        let path = NSTemporaryDirectory() + "tambour-\(UUID().uuidString).json"
        defer { try? FileManager.default.removeItem(atPath: path) }
        #expect(PreferencesFile(path: path).value == Preferences())
        #expect(PreferencesFile(path: path).change(\.theme, to: "light") == nil)
        #expect(PreferencesFile(path: path).value.theme == "light")
        // While the screen is open, another program writes the file. The file then also contains a
        // member that this build does not know.
        let open = PreferencesFile(path: path)
        let written = #"{"keys": {"leave": "Ctrl-x"}, "theme": "light", "sound": 5}"#
        try written.write(toFile: path, atomically: true, encoding: .utf8)
        #expect(open.change(\.theme, to: "dark") == nil)
        let read = PreferencesFile(path: path)
        #expect(read.value == Preferences(theme: "dark", keys: ["leave": "Ctrl-x"]))
        #expect(read.mistakes == ["“sound” is nothing that can be chosen"])
    }

    @Test(
        "a file with a mistake is told of and left as it is",
        arguments: ["nonsense", #"{"theme": 1}"#, #"{"keys": {"leave": 1}}"#, "", "[]"]
    )
    func unreadablePreferences(text: String) throws {
        let path = NSTemporaryDirectory() + "tambour-\(UUID().uuidString).json"
        defer { try? FileManager.default.removeItem(atPath: path) }
        try text.write(toFile: path, atomically: true, encoding: .utf8)
        let file = PreferencesFile(path: path)
        #expect(file.mistakes.count == 1)
        #expect(file.change(\.theme, to: "light") != nil)
        #expect(file.value.theme == "light")
        #expect(try String(contentsOfFile: path, encoding: .utf8) == text)
    }

    @Test("names that are nothing are told of")
    func strangePreferences() throws {
        let path = NSTemporaryDirectory() + "tambour-\(UUID().uuidString).json"
        defer { try? FileManager.default.removeItem(atPath: path) }
        let text = #"{"theme": "pink", "notify": "loud", "keys": {"dance": "F5"}}"#
        try text.write(toFile: path, atomically: true, encoding: .utf8)
        #expect(PreferencesFile(path: path).mistakes.count == 3)
    }

    @Test("every command is in the help and fits its box")
    func help() {
        for command in ScreenCommand.all {
            #expect(Help.lines(KeyBindings()).contains { $0.hasPrefix("  /\(command.name)") })
        }
        #expect(Help.lines(KeyBindings()).filter { Width.of($0) > 75 } == [])
    }

    @Test("without colours the theme has none, whatever was chosen before")
    func colours() {
        #expect(ColorDepth.detect(["NO_COLOR": "1", "TERM": "xterm-256color"]) == .monochrome)
        #expect(Theme.choose(named: nil, depth: .monochrome).name == "mono")
        #expect(Theme.choose(named: nil, depth: .ansi16).name == "sixteen")
        #expect(Theme.choose(named: "light", depth: .trueColor).name == "light")
    }
}
