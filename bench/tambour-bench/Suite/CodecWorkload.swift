import Foundation
import TambourProtocol
import Yams

/// W8: decoding bytes into the types that handlers use, and back, on the specification's examples.
///
/// msgpack-c decodes into its tree of values and looks every field up by its key.
struct CodecWorkload: Workload {
    let name = "W8"
    let title = "codec: decode and encode of 20 typical packets"

    let claims: [Claim] = [
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

    func round(in bench: Bench) async throws -> Figures {
        let packets = try Self.packets()
        var file = Data()
        for packet in packets {
            for part in [Array(packet.name.utf8), packet.payload] {
                withUnsafeBytes(of: UInt32(part.count).littleEndian) { file.append(contentsOf: $0) }
                file.append(contentsOf: part)
            }
        }
        let path = try bench.folder("codec").appendingPathComponent("packets").path
        try file.write(to: URL(fileURLWithPath: path))

        var figures: Figures = [:]
        var sums: Figures = [:]
        func add(_ packet: String, _ label: String, _ decode: Double, _ encode: Double) {
            figures["\(packet), \(label), decode ns"] = decode
            figures["\(packet), \(label), encode ns"] = encode
            sums["all packets, \(label), decode ns", default: 0] += decode
            sums["all packets, \(label), encode ns", default: 0] += encode
        }
        let budget: UInt64 = bench.isFull ? 100_000_000 : 20_000_000
        for packet in packets {
            let (decode, encode) = try packet.measure(budget)
            add(packet.name, "tambour", decode, encode)
        }
        for line in try Tool.text("\(bench.limits)/codec", ["--packets", path]).split(
            separator: "\n"
        ) {
            let object = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
            guard let object, let name = object["packet"] as? String,
                let decode = (object["decode_ns"] as? NSNumber)?.doubleValue,
                let encode = (object["encode_ns"] as? NSNumber)?.doubleValue
            else { throw BenchError("codec printed \(line)") }
            add(name, "msgpack-c", decode, encode)
        }
        return figures.merging(sums) { $1 }
    }

    /// One packet and how long it takes both ways.
    private struct Packet {
        let name: String
        let payload: [UInt8]
        let measure: (_ nanoseconds: UInt64) throws -> (decode: Double, encode: Double)

        init<Payload: WirePayload>(
            _ name: String,
            _ payload: [UInt8],
            as type: Payload.Type
        ) throws {
            self.name = name
            self.payload = payload
            let value = try Payload.decode(payload, limits: .standard)
            measure = { budget in
                (
                    try Self.best(budget) { _ = try Payload.decode(payload, limits: .standard) },
                    Self.best(budget) { _ = value.encoded() }
                )
            }
        }

        /// Nanoseconds of one call, of the best of five passes.
        private static func best(_ budget: UInt64, _ body: () throws -> Void) rethrows -> Double {
            var best = Double.infinity
            for _ in 0..<5 {
                var calls = 0
                let start = monotonicNow()
                var now = start
                while now - start < budget / 5 {
                    for _ in 0..<64 { try body() }
                    calls += 64
                    now = monotonicNow()
                }
                best = min(best, Double(now - start) / Double(calls))
            }
            return best
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
