import Foundation
import Testing

/// Tests that numbers from packets, from the store and from administrators are never operands of an
/// operator that can trap.
///
/// docs/decisions/0019-checked-arithmetic.md has the reasons.
@Suite("Arithmetic on numbers from outside, in the sources")
struct ArithmeticTests {
    /// The targets that handle numbers from outside.
    private static let targets = [
        "TambourProtocol", "TambourEvents", "TambourFraming", "TambourStore", "TambourMessenger",

        "TambourGateway", "TambourServer", "TambourClient", "tambourd", "tambour",
    ]

    private static let files = Result {
        try SourceFile.all(of: targets)
    }

    /// A permitted line that would violate a rule without this exception.
    struct Exception: Sendable {
        /// A file or the beginning of its path below `Sources`; empty if the exception applies to
        /// any file.
        let path: String
        /// A text that the line contains.
        let code: String
        let reason: String

        init(_ path: String, _ code: String, _ reason: String) {
            self.path = path
            self.code = code
            self.reason = reason
        }
    }

    /// The lines that may call a narrowing initializer without a label. Each exception gives the
    /// reason why the call cannot trap.
    private static let narrowings: [Exception] = [
        Exception("", "SOCK_", "a constant of the system"),
        Exception("", "MSG_", "a constant of the system"),
        Exception("", "IPPROTO_", "a constant of the system"),
        Exception("", "POLLOUT", "a constant of the system"),
        Exception("", "Int(Int32.max)", "a constant"),
        Exception("", "digits[Int(", "four bits of a byte"),
        Exception("", "Int(words[1])", "a text: nil for what does not fit"),
        Exception(
            "TambourProtocol/MessagePack/",
            "",
            "bytes and lengths: the reader compares each with what is there"
        ),
        Exception(
            "TambourFraming/LZ4",
            "",
            "bytes and lengths: a block is as long as a frame at most"
        ),
        Exception(
            "TambourFraming/",
            "",
            "the header's own bytes; a payload is as long as 24 bits say at most"
        ),
        Exception("TambourProtocol/Generated/Opcodes.swift", "", "numbers of the table, 16 bits"),
        Exception("TambourProtocol/Generated/Costs.swift", "1 << 32", "between 0 and 2^32"),
        Exception("TambourProtocol/Ids.swift", "UInt64(Self.channelBit)", "a constant"),
        Exception(
            "TambourMessenger/Features/Bucket.swift",
            "",
            "bytes of a digest, and weights that the rules bound"
        ),
        Exception(
            "TambourMessenger/Features/FeatureSubject.swift",
            "Int(String(",
            "a text: nil for what does not fit"
        ),
        Exception(
            "TambourMessenger/Limits/RateLimiter.swift",
            "Int(bucket.rawValue)",
            "a case of an enumeration"
        ),
        Exception("TambourMessenger/Engine/StoreSource.swift", "Int($1)", "a byte"),
        Exception(
            "TambourMessenger/Rules/SettingRules.swift",
            "Int(digits)",
            "a text: nil for what does not fit"
        ),
        Exception("TambourMessenger/Features/ServiceConfig.swift", "UInt64($1)", "a byte"),
        Exception("TambourStore/Search/SearchWords.swift", "", "bytes of a text"),
        Exception("tambour/Screen/", "/ .nanoseconds(1)", "a pause of our own"),
        Exception(
            "tambour/Screen/ScreenView+Panels.swift",
            "/ .milliseconds(1)",
            "a round trip that was measured"
        ),
        Exception("tambour/Screen/ScreenController+Messages.swift", "digit.value - 48", "a digit"),
        Exception(
            "tambour/Screen/ScreenController+Commands.swift",
            "Int(rest)",
            "a text: nil for what does not fit"
        ),
        Exception(
            "tambour/Screen/DateWords.swift",
            "compactMap { Int($0) }",
            "a text: nil for what does not fit"
        ),
        Exception(
            "tambour/Screen/KeyBindings.swift",
            "Int(rest.dropFirst())",
            "a text: nil for what does not fit"
        ),
        Exception("tambour/Tambour.swift", "CommandLine.argc", "a count of the system"),
        Exception(
            "tambour/Commands/Waiting.swift",
            "Int(argument)",
            "a text: nil for what does not fit"
        ),
        Exception("tambour/LaterWords.swift", "Int(match.", "two digits"),
        Exception("tambour/LaterWords.swift", "Int($0)", "a text: nil for what does not fit"),
        Exception("tambour/LaterWords.swift", "timeIntervalSince1970", "the time of a calendar"),
        Exception("TambourProtocol/InvitationCode.swift", "Int(byte)", "a byte"),
        Exception(
            "TambourMessenger/Operator/AdminService.swift",
            "let days = Int(words[2])",
            "a text: nil for what does not fit"
        ),
        Exception(
            "tambourd/Settings.swift",
            "Int(invitationsText)",
            "a text: nil for what does not fit"
        ),
        Exception("tambourd/FeatureFile.swift", "Int(", "up to three digits"),
        Exception("tambourd/Settings.swift", "Int($0)", "a text: nil for what does not fit"),
        Exception("tambourd/ServiceManager.swift", "Int($0)", "a text: nil for what does not fit"),
    ]

    /// The lines that may do arithmetic on ids.
    private static let calculations: [Exception] = [
        Exception(
            "TambourProtocol/Ids.swift",
            "MessageID(rawValue",
            "the operations of an id: they stop at the ends"
        ),
        Exception(
            "TambourClient/History/Position.swift",
            "Position(rawValue",
            "the operations of a place: nil at the ends"
        ),
        Exception("TambourProtocol/Generated/Roles.swift", "cells[", "cases of enumerations"),
        Exception(
            "TambourStore/Accounts/Settings.swift",
            ".rawValue << ",
            "cases of an enumeration with two bits"
        ),
    ]

    @Test("files that calculate see the operators that cannot trap")
    func imports() throws {
        for file in try Self.files.get()
        where file.target != "TambourProtocol" && !file.imports("TambourProtocol") {
            for line in file.code where Arithmetic.calculates(line.text) {
                Issue.record(
                    "\(file.path):\(line.number): no `import TambourProtocol`: \(line.text)"
                )
            }
        }
    }

    @Test("numbers are narrowed in words: clamping, exactly, or truncatingIfNeeded")
    func narrowing() throws {
        try expect(Arithmetic.narrows, except: Self.narrowings)
    }

    @Test("ids are not calculated with: they have operations of their own")
    func ids() throws {
        try expect(Arithmetic.calculatesWithID, except: Self.calculations)
    }

    @Test("what traps beside the operators is not used")
    func others() throws {
        try expect(Arithmetic.trapsOtherwise, except: [])
    }

    /// Expects that `isWrong` is false for each line without an exception, and that each exception
    /// is needed.
    private func expect(_ isWrong: (String) -> Bool, except exceptions: [Exception]) throws {
        var used = Set<Int>()
        for file in try Self.files.get() {
            for line in file.code where isWrong(line.text) {
                let index = exceptions.firstIndex {
                    file.path.dropFirst("Sources/".count).hasPrefix($0.path)
                        && ($0.code.isEmpty || line.text.contains($0.code))
                }
                if let index { used.insert(index) }
                #expect(index != nil, "\(file.path):\(line.number): \(line.text)")
            }
        }
        for index in exceptions.indices where !used.contains(index) {
            Issue.record("nothing needs this exception: \(exceptions[index])")
        }
    }

    @Test(
        "lines that may trap are found",
        arguments: [
            "let id = MessageID(marker.rawValue - 1)", "let next = id.rawValue + 1",
            "statement.bind(4, -chat.rawValue)", "let time = 2 * id.rawValue",
            "rawValue = time << 16 + id.rawValue",
        ]
    )
    func idLines(line: String) { #expect(Arithmetic.calculatesWithID(line)) }

    @Test(
        "lines that may narrow are found",
        arguments: [
            "let count = Int32(request.count)", "let n = Int(reply.codeLength)",
            "return UInt32(number)", "flags = UInt8(word >> 24)", "let s = UInt64(request.from)",
            "let ms = Int64(pause / .milliseconds(1))", "var seconds = time_t(ms / 1000)",
        ]
    )
    func narrowLines(line: String) { #expect(Arithmetic.narrows(line)) }

    @Test(
        "lines that cannot trap are let be",
        arguments: [
            "let count = Int(clamping: request.count)",
            "guard let number = Int32(exactly: x) else {",
            "let low = UInt8(truncatingIfNeeded: x)", "let bits = UInt64(bitPattern: x)",
            "statement.bind(1, id.rawValue)", "let limit = Int64(limits.maxPage)",
            "let a = UInt8(ascii: \"a\")", "func count(_: Int) -> UInt32",
        ]
    )
    func harmless(line: String) {
        #expect(!Arithmetic.narrows(line) && !Arithmetic.calculatesWithID(line))
    }

    @Test("calculations are told from texts and signs")
    func calculations() {
        for line in ["let end = now + lease", "left -= 1", "bytes * 8", "time % day", "a / b"] {
            #expect(Arithmetic.calculates(line), "\(line)")
        }
        for line in ["\"a\" + text", "text + \"b\"", "-> Int64", "case -1: return", "x = y"] {
            #expect(!Arithmetic.calculates(line), "\(line)")
        }
    }
}

/// Recognizes arithmetic and calls in one line of code from the line's text alone.
///
/// The parser uses no regular expressions, because they would take minutes for all lines.
enum Arithmetic {
    private static let operators: Set<String> = [
        "+", "-", "*", "/", "%", "+=", "-=", "*=", "/=", "%=",
    ]
    private static let shifts: Set<String> = ["<<", "<<=", "&+", "&-", "&*"]
    private static let narrow: Set<String> = [
        "Int", "Int8", "Int16", "Int32", "UInt", "UInt8", "UInt16", "UInt32", "UInt64", "time_t",
    ]
    private static let labels = [
        "clamping:", "count:", "exactly:", "truncatingIfNeeded:", "bitPattern:", "bigEndian:",
        "littleEndian:", "ascii:", ")",
    ]

    static func calculates(_ line: String) -> Bool {
        let words = words(of: line)
        return words.indices.contains { index in
            guard operators.contains(words[index]), index > 0, index + 1 < words.count,
                let last = words[index - 1].last
            else { return false }
            // Skip signs and the concatenation of strings.
            return !"\",(=".contains(last) && words[index + 1].first != "\""
        }
    }

    static func narrows(_ line: String) -> Bool {
        calls(in: line).contains { name, rest in
            if labels.contains(where: { rest.hasPrefix($0) }) { return false }
            guard name == "Int64" else { return narrow.contains(name) }
            // `Int64(…)` can trap only if the argument is a floating-point number.
            let argument = rest.prefix { $0 != ")" }
            return argument.contains("/ .") || argument.contains("timeInterval")
        }
    }

    static func calculatesWithID(_ line: String) -> Bool {
        let words = words(of: line)
        return words.indices.contains { index in
            guard words[index].contains("rawValue"), !words[index].contains("\\.rawValue") else {
                return false
            }
            let (before, after) = (
                index > 0 ? words[index - 1] : "",
                index + 1 < words.count ? words[index + 1] : ""
            )
            let isLast = words[index].hasSuffix("rawValue")
            return operators.contains(before) || words[index].contains("-")
                || isLast && (operators.contains(after) || shifts.contains(after))
        }
    }

    static func trapsOtherwise(_ line: String) -> Bool {
        calls(in: line).contains { name, rest in
            ["negate", "quotientAndRemainder", "dividingFullWidth"].contains(name)
                || name == "distance" && rest.hasPrefix("to:")
        }
    }

    private static func words(of line: String) -> [String] {
        line.utf8.split(separator: UInt8(ascii: " ")).compactMap { String($0) }
    }

    /// Returns the calls in a line, with the text after each opening bracket. An initializer keeps
    /// its whole name, so a call of `A.Int` is not a call of `Int`.
    private static func calls(in line: String) -> [(name: String, rest: Substring)] {
        let utf8 = line.utf8
        var calls: [(name: String, rest: Substring)] = []
        var start = utf8.startIndex
        for index in utf8.indices {
            let byte = utf8[index]
            if byte == UInt8(ascii: "("), start < index {
                calls.append((String(line[start..<index]), line[utf8.index(after: index)...]))
            }
            let isName =
                byte == UInt8(ascii: "_") || byte == UInt8(ascii: ".")
                || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
                || (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte)
                || (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte)
            if !isName { start = utf8.index(after: index) }
        }
        return calls.map { call in
            // For a method, match only the last part of the name. For an initializer, match the
            // whole name.
            let method = call.name.split(separator: ".").last.map(String.init) ?? ""
            return narrow.contains(method) ? call : (method, call.rest)
        }
    }
}

/// A Swift file and its lines of code.
struct SourceFile {
    let target: String
    let path: String
    /// The lines of code, without comments and without texts of several lines.
    let code: [(number: Int, text: String)]

    func imports(_ module: String) -> Bool {
        code.contains { TidyTests.module(importedBy: $0.text[...]) == module }
    }

    static func all(of targets: [String]) throws -> [SourceFile] {
        var files: [SourceFile] = []
        for target in targets {
            let root = Repository.root.appending(path: "Sources/\(target)").standardizedFileURL
            let names = FileManager.default.enumerator(atPath: root.path)
            while let name = names?.nextObject() as? String {
                guard name.hasSuffix(".swift") else { continue }
                let text = try String(contentsOf: root.appending(path: name), encoding: .utf8)
                files.append(
                    SourceFile(target: target, path: "Sources/\(target)/\(name)", code: code(text))
                )
            }
        }
        return files
    }

    private static func code(_ text: String) -> [(number: Int, text: String)] {
        var code: [(number: Int, text: String)] = []
        var isText = false
        for (index, line) in text.split(separator: "\n", omittingEmptySubsequences: false)
            .enumerated()
        {
            let words = line.drop { $0 == " " }
            // Skip texts of several lines. They contain SQL and help, not Swift code.
            defer { if line.hasSuffix("\"\"\"") || words.hasPrefix("\"\"\"") { isText.toggle() } }
            guard !isText, !words.hasPrefix("//") else { continue }
            if let last = code.last, last.text.hasSuffix("(") {
                // A call may continue in the next line. Join its first argument with the line of
                // the call.
                code[code.count - 1].text += words
            } else {
                code.append((index + 1, String(line)))
            }
        }
        return code
    }
}
