import Foundation
import TambourTesting

@testable import tambour_spec

/// The bytes that one segment of a connection carries, with their direction.
struct Segment {
    var isToServer: Bool
    var bytes: [UInt8]
}

/// Runs tshark with this repository's dissector, on captures that a test makes.
struct Wireshark {
    static let isInstalled = Tool.path("tshark") != nil && Tool.path("text2pcap") != nil
    static let missing = "needs tshark and text2pcap: scripts/deps test installs them"

    /// The separator between the values of a field that has several values.
    static let aggregator = "|"

    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    private func run(_ name: String, _ arguments: [String]) throws -> String {
        guard let program = Tool.path(name) else {
            throw Tool.Failure(description: Self.missing)
        }
        let outcome = try Tool.run(program, arguments, in: folder)
        // tshark continues even if it cannot load a script, so also search its errors for "Lua".
        guard outcome.status == 0, !outcome.errors.contains("Lua") else {
            throw Tool.Failure(description: "\(name): \(outcome.errors)")
        }
        return outcome.output
    }

    /// Makes a capture of one connection. Each segment is in a separate packet, one microsecond
    /// after the one before.
    func capture(
        _ segments: [Segment],
        clientPort: Int = 40_000,
        serverPort: Int = 7770
    ) throws -> URL {
        let lines = segments.map { "\($0.isToServer ? ">" : "<") \(Hex.text($0.bytes))\n" }
        return try capture(
            lines.joined(),
            pattern: #"^(?<dir>[<>])\s(?<data>[0-9a-f]+)$"#,
            ["-D", "-T", "\(serverPort),\(clientPort)"]
        )
    }

    /// Makes a capture in which every frame contains one packet. The packets belong to no
    /// connection.
    func capture(frames: [[UInt8]]) throws -> URL {
        let lines = frames.map { Hex.text($0) + "\n" }
        return try capture(lines.joined(), pattern: "^(?<data>[0-9a-f]+)$", ["-P", "tambour"])
    }

    private func capture(_ text: String, pattern: String, _ more: [String]) throws -> URL {
        let input = folder.file("\(UUID().uuidString).txt")
        let output = folder.file("\(UUID().uuidString).pcapng")
        try Data(text.utf8).write(to: input)
        _ = try run("text2pcap", ["-q", "-r", pattern] + more + [input.path, output.path])
        return output
    }

    /// Returns tshark's output for a capture.
    func read(_ capture: URL, _ arguments: [String]) throws -> String {
        let script = Repository.root.appending(path: DissectorSource.path).path
        return try run("tshark", ["-r", capture.path, "-X", "lua_script:\(script)"] + arguments)
    }

    /// Returns one row for each shown frame. A row maps field names to values. The value of an
    /// absent field is an empty string.
    func rows(
        _ capture: URL,
        _ fields: [String],
        _ arguments: [String] = []
    ) throws -> [[String: String]] {
        let text = try read(
            capture,
            ["-T", "fields", "-E", "aggregator=\(Self.aggregator)"] + fields.flatMap { ["-e", $0] }
                + arguments
        )
        return text.split(separator: "\n").map { line in
            let values = line.split(separator: "\t", omittingEmptySubsequences: false)
            return Dictionary(zip(fields, values.map(String.init))) { first, _ in first }
        }
    }

    /// Returns every packet that the trees of a capture show.
    func trees(_ capture: URL, _ arguments: [String] = []) throws -> [PacketTree] {
        PacketTree.all(in: try read(capture, ["-V", "-O", "tambour"] + arguments))
    }
}

/// Runs the dissector in a plain interpreter of the Lua version that later Wireshark versions use.
enum PlainLua {
    static let isInstalled = Tool.path("lua5.4") != nil
    static let missing = "needs lua5.4: scripts/deps test installs it"

    /// Returns what the dissector shows for packets.
    /// - Parameter megabytes: The memory limit of the interpreter, in megabytes.
    static func trees(_ packets: [[UInt8]], megabytes: Int = 2000) throws -> [PacketTree] {
        let stage = URL(filePath: #filePath).deletingLastPathComponent()
            .appending(path: "wireshark.lua")
        let outcome = try Tool.run(
            URL(filePath: "/bin/sh"),
            [
                "-c", "ulimit -v \(megabytes * 1024); exec lua5.4 \"$@\"", "lua5.4", stage.path,
                Repository.root.appending(path: DissectorSource.path).path,
            ],
            input: Data(packets.map { Hex.text($0) + "\n" }.joined().utf8),
            in: try TemporaryFolder()
        )
        guard outcome.status == 0 else { throw Tool.Failure(description: outcome.errors) }
        return PacketTree.all(in: outcome.output)
    }
}

/// A packet as the tree shows it.
struct PacketTree: Equatable {
    /// The title, such as `MSG_SEND request, seq 23, 57 bytes`.
    var title: String
    /// The lines below the title except the lines of the payload, without indentation.
    var header: [String] = []
    /// The lines of the payload, indented by two blanks for each level. They contain no expert
    /// information.
    var payload: [String] = []

    /// Returns every packet in the output of `tshark -V`.
    static func all(in text: String) -> [PacketTree] {
        var trees: [PacketTree] = []
        // A skipped item has this indentation. Lines with more indentation belong to the item.
        var skipped = Int.max
        var isOurs = false
        var isPayload = false
        for line in text.split(separator: "\n") {
            let level = line.prefix { $0 == " " }.count / 4
            let content = String(line.drop { $0 == " " })
            if level == 0 {
                isOurs = content.hasPrefix("Tambour")
                isPayload = false
                skipped = .max
                if isOurs { trees.append(PacketTree(title: content)) }
                continue
            }
            guard isOurs, level <= skipped else { continue }
            skipped = .max
            if content.hasPrefix("[Expert Info") {
                skipped = level
                continue
            }
            if level == 1 { isPayload = content.hasPrefix("Payload: ") }
            if isPayload, level > 1 {
                let indent = String(repeating: "  ", count: level - 2)
                trees[trees.count - 1].payload.append(indent + content)
            } else {
                trees[trees.count - 1].header.append(content)
            }
        }
        return trees
    }
}

extension PayloadText {
    /// Returns the lines as the tree shows them. Leaves out the marks, because the tree shows them
    /// as expert information.
    func linesWithoutMarks(of node: WireNode, as type: StructType?) -> [String] {
        lines(of: node, as: type).compactMap { line in
            if line.drop(while: { $0 == " " }).hasPrefix("# ") { return nil }
            return line.range(of: "  # ").map { String(line[..<$0.lowerBound]) } ?? line
        }
    }
}
