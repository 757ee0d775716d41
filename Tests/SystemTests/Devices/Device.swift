import Foundation
import Synchronization
import TambourSQL
import TambourTesting

/// A user's device: an account file, and the `tambour` programs that use this file. Tests kill
/// these programs.
final class Device: Sendable {
    /// A message that a test gave to a program, and that the program has stored on the device.
    struct Handed: Hashable {
        let text: String
        let cid: Int64
    }

    /// The device's programs, by command.
    private struct Programs {
        var running: [String: ChildProcess] = [:]
        var ended: Set<String> = []
    }

    let index: Int
    private let program: URL
    private let directory: URL
    private let programs = Mutex(Programs())
    private let killed = Mutex(0)

    init(index: Int, program: URL, directory: URL) {
        self.index = index
        self.program = program
        self.directory = directory
    }

    /// The number of killed programs.
    var kills: Int { killed.withLock { $0 } }

    private var account: [String] { ["--home", directory.path, "--account", "device\(index)"] }
    private var file: String { directory.appendingPathComponent("device\(index).db").path }

    /// Returns a text to send; each text is unique.
    func text(_ number: Int, of seed: UInt64) -> String {
        var random = SeededGenerator(seed: seed &+ UInt64(index * 1_000_000 + number))
        let filler = String(repeating: "lorem ", count: Int(random.next() % 12))
        return "d\(index) \(number) \(filler)".trimmingCharacters(in: .whitespaces)
    }

    // MARK: - Programs

    func logIn(to server: String, token: String) async throws {
        let input = try input("token", [token])
        let result = try await run("login", [server, "--token"], input: input)
        guard result.status == 0 else {
            throw ChildProcess.Failed(description: "login of device \(index): \(result.errors)")
        }
    }

    /// Sends the texts, one per line, until all are sent or the program is killed.
    func send(_ texts: [String], to chat: String) async throws -> (status: Int32, errors: String) {
        let input = try input("lines", texts)
        let result = try await run("send", [chat, "--lines", "--wait", "20"], input: input)
        return (result.status, result.errors)
    }

    /// Shows incoming messages until it is killed.
    func tail() async throws -> (status: Int32, lines: [String], errors: String) {
        try await run("tail", ["--json"], input: "/dev/null", within: .seconds(3_600))
    }

    /// Sends everything that still waits.
    func flush() async throws {
        let result = try await run("queue", ["--flush"], input: "/dev/null")
        guard result.status == 0 else {
            throw ChildProcess.Failed(description: "device \(index) still waits: \(result.errors)")
        }
    }

    /// Brings a chat up to date and exports it.
    ///
    /// - Returns: The messages, one line of JSON each.
    func export(_ chat: String) async throws -> [String] {
        let arguments = [chat, "--whole", "--wait", "110"]
        let result = try await run("export", arguments, input: "/dev/null")
        guard result.status == 0 else {
            throw ChildProcess.Failed(description: "export of device \(index): \(result.errors)")
        }
        return result.lines
    }

    /// Kills a program if it runs.
    func kill(_ command: String) {
        guard let child = programs.withLock({ $0.running[command] }) else { return }
        killed.withLock { $0 += 1 }
        child.signal(SIGKILL)
    }

    /// Kills a program now, and kills it again at once whenever it starts later.
    func end(_ command: String) {
        let child = programs.withLock { programs in
            programs.ended.insert(command)
            return programs.running[command]
        }
        child?.signal(SIGKILL)
    }

    func isEnded(_ command: String) -> Bool {
        programs.withLock { $0.ended.contains(command) }
    }

    private func run(
        _ command: String,
        _ arguments: [String],
        input: String,
        within deadline: Duration = .seconds(120)
    ) async throws -> (status: Int32, lines: [String], errors: String) {
        let child = try ChildProcess(program, [command] + account + arguments, input: input)
        let isEnded = programs.withLock { programs in
            programs.running[command] = child
            return programs.ended.contains(command)
        }
        if isEnded { child.signal(SIGKILL) }
        defer { programs.withLock { $0.running[command] = nil } }
        let status = try await child.exitStatus(within: deadline)
        var lines: [String] = []
        for await line in child.lines { lines.append(line) }
        return (status, lines, child.errors)
    }

    private func input(_ name: String, _ lines: [String]) throws -> String {
        let file = directory.appendingPathComponent("device\(index).\(name)")
        try Data(lines.map { $0 + "\n" }.joined().utf8).write(to: file)
        return file.path
    }

    // MARK: - The device's file

    /// Returns the texts that the device was asked to send and that are not acknowledged.
    func waiting() throws -> [Handed] {
        try rows("SELECT json_extract(value, '$.text'), cid FROM overlay WHERE kind = 'send'")
    }

    /// Returns the number of the last text in the device's file, sent or waiting.
    func lastHanded() throws -> Int {
        let own = try rows(
            "SELECT text, coalesce(cid, 0) FROM message WHERE text LIKE 'd\(index) %'"
        )
        return (own + (try waiting())).compactMap { handed in
            let words = handed.text.split(separator: " ")
            return words.count > 1 ? Int(words[1]) : nil
        }.max() ?? 0
    }

    private func rows(_ sql: String) throws -> [Handed] {
        let connection = try SQLiteConnection(path: file, mode: .readOnly)
        let statement = try connection.prepare(sql)
        var rows: [Handed] = []
        while try statement.step() {
            rows.append(Handed(text: statement.string(0), cid: statement.int(1)))
        }
        return rows
    }
}
