import Foundation
import TambourFraming
import TambourProtocol
import Yams

/// W8: decodes the specification's examples into the types that handlers use, and encodes them.
///
/// msgpack-c decodes into its own tree of values and looks up every field by its key.
struct CodecWorkload: Workload {
    let name = "W8"
    let title = "codec: decode and encode of 20 typical packets"

    func claims(isFull: Bool) -> [Claim] {
        [
            .ratio(
                "decode, all packets together, of msgpack-c",
                "all packets, tambour, decode ns",
                to: "all packets, msgpack-c, decode ns",
                .atMost(1.5)
            ),
            .ratio(
                "encode, all packets together, of msgpack-c",
                "all packets, tambour, encode ns",
                to: "all packets, msgpack-c, encode ns",
                .atMost(1.5)
            ),
        ]
    }

    /// The number of turns that each codec gets per packet; the codecs alternate.
    private static let turns = 2
    /// The number of passes in a turn; the fastest pass counts. `limits/codec` uses the same
    /// number.
    private static let passes = 5

    func round(in bench: Bench) async throws -> Figures {
        let path = try bench.folder("codec").appendingPathComponent("packet").path
        // The duration of one of Tambour's passes in nanoseconds; a pass of msgpack-c makes the
        // same number of calls.
        let pass: UInt64 = bench.isFull ? 20_000_000 : 4_000_000
        var figures: Figures = [:]
        for packet in try Self.packets() {
            Progress.show("W8: \(packet.name)")
            try Self.file(packet).write(to: URL(fileURLWithPath: path))
            let calls = try packet.calls(in: pass)
            var (ours, theirs) = (Best(), Best())
            for turn in 0..<Self.turns {
                // The order alternates, so that neither codec always runs with the caches that the
                // other one left.
                for isOurs in (bench.round + turn) % 2 == 0 ? [true, false] : [false, true] {
                    if isOurs {
                        for _ in 0..<Self.passes { ours.take(try packet.pass(calls)) }
                    } else {
                        theirs.take(try Self.limit(bench, path, calls))
                    }
                }
            }
            for (label, best) in [("tambour", ours), ("msgpack-c", theirs)] {
                figures["\(packet.name), \(label), decode ns"] = best.decode
                figures["\(packet.name), \(label), encode ns"] = best.encode
                figures["all packets, \(label), decode ns", default: 0] += best.decode
                figures["all packets, \(label), encode ns", default: 0] += best.encode
            }
        }
        return figures
    }

    /// Nanoseconds per call in the fastest pass so far.
    private struct Best {
        var decode = Double.infinity
        var encode = Double.infinity

        mutating func take(_ pass: (decode: Double, encode: Double)) {
            decode = min(decode, pass.decode)
            encode = min(encode, pass.encode)
        }
    }

    private static func limit(
        _ bench: Bench,
        _ path: String,
        _ calls: Int
    ) throws -> (decode: Double, encode: Double) {
        let figures = try Tool.run(
            "\(bench.limits)/codec",
            ["--packets", path, "--repeat", "\(calls)"]
        )
        guard let decode = figures["decode_ns"], let encode = figures["encode_ns"] else {
            throw BenchError("codec printed \(figures)")
        }
        return (decode, encode)
    }

    /// Returns the file format of `limits/codec`: lengths, name, payload.
    private static func file(_ packet: Packet) -> Data {
        var file = Data()
        for part in [Array(packet.name.utf8), packet.payload] {
            withUnsafeBytes(of: UInt32(part.count).littleEndian) { file.append(contentsOf: $0) }
            file.append(contentsOf: part)
        }
        return file
    }

    /// One packet, and the function that measures its codec in both directions.
    private struct Packet {
        let name: String
        let payload: [UInt8]
        /// Measures the nanoseconds per call, over a number of calls.
        let pass: (_ calls: Int) throws -> (decode: Double, encode: Double)

        init<Payload: WirePayload>(
            _ name: String,
            _ payload: [UInt8],
            as type: Payload.Type
        ) throws {
            self.name = name
            self.payload = payload
            let value = try Payload.decode(payload, limits: .standard)
            pass = { calls in
                (
                    try Self.nanoseconds(calls) {
                        consume(try Payload.decode(payload, limits: .standard))
                    },
                    Self.nanoseconds(calls) { consume(value.encoded()) }
                )
            }
        }

        /// Returns the number of calls that fill a pass of this duration, in the slower direction.
        func calls(in nanoseconds: UInt64) throws -> Int {
            let trial = try pass(100)
            return max(1, Int(Double(nanoseconds) / max(trial.decode, trial.encode)))
        }

        private static func nanoseconds(_ calls: Int, _ body: () throws -> Void) rethrows -> Double
        {
            let start = monotonicNow()
            for _ in 0..<calls { try body() }
            return Double(monotonicNow() - start) / Double(calls)
        }
    }

    private static func packets() throws -> [Packet] {
        func example<Payload: WirePayload>(
            _ file: String,
            _ role: String,
            as type: Payload.Type,
            nth: Int = 0
        ) throws -> Packet {
            let path = "protocol-spec/examples/\(file).yaml"
            let text = try String(contentsOfFile: path, encoding: .utf8)
            guard let root = try Yams.compose(yaml: text)?.mapping,
                let examples = root["examples"]?.sequence
            else { throw BenchError("\(path) has no examples") }
            let found = examples.filter { $0.mapping?["role"]?.string == role }
            guard found.count > nth, let hex = found[nth].mapping?["hex"]?.string else {
                throw BenchError("\(path) has no example \(nth) of a \(role)")
            }
            let packet = try bytes(hex)
            let payload = try packet.withUnsafeBytes { bytes in
                try Frame(
                    header: PacketHeader(bytes),
                    wirePayload: UnsafeRawBufferPointer(rebasing: bytes[PacketHeader.size...])
                ).payload(limits: .standard)
            }
            let name = "\(file.split(separator: "/").last ?? "") \(role) \(nth)"
            return try Packet(name, payload, as: type)
        }
        return [
            try example("session/session_init", "request", as: SessionInitRequest.self),
            try example("session/session_init", "reply", as: SessionInitReply.self),
            try example("auth/login", "request", as: LoginRequest.self),
            try example("auth/login", "reply", as: LoginReply.self),
            try example("messages/msg_send", "request", as: MsgSendRequest.self),
            try example("messages/msg_send", "request", as: MsgSendRequest.self, nth: 1),
            try example("messages/msg_send", "reply", as: MsgSendReply.self),
            try example("messages/msg_edit", "request", as: MsgEditRequest.self),
            try example("messages/msg_delete", "request", as: MsgDeleteRequest.self),
            try example("messages/msg_get", "reply", as: MsgGetReply.self),
            try example("messages/notif_message", "push", as: NotifMessage.self),
            try example("messages/notif_typing", "push", as: NotifTyping.self),
            try example("chats/chat_history", "request", as: ChatHistoryRequest.self),
            try example("chats/chat_history", "reply", as: ChatHistoryReply.self),
            try example("chats/chat_info", "reply", as: ChatInfoReply.self),
            try example("chats/chat_mark", "request", as: ChatMarkRequest.self),
            try example("chats/chats_list", "reply", as: ChatsListReply.self),
            try example("chats/notif_mark", "push", as: NotifMark.self),
            try example("contacts/contact_info", "reply", as: ContactInfoReply.self),
            try example("contacts/notif_presence", "push", as: NotifPresence.self),
        ]
    }

    private static func bytes(_ hex: String) throws -> [UInt8] {
        var bytes: [UInt8] = []
        var rest = hex[...]
        while rest.count >= 2 {
            guard let byte = UInt8(rest.prefix(2), radix: 16) else { throw BenchError("not hex") }
            bytes.append(byte)
            rest = rest.dropFirst(2)
        }
        return bytes
    }
}

/// Uses a result, so that the compiler cannot remove the code that produces it.
@inline(never)
@_optimize(none)
private func consume<Value>(_ value: Value) {}
