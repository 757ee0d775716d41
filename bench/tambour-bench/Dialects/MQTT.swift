/// The MQTT 3.1.1 packets that the benchmark's client writes, and a parser for received packets.
enum MQTT {
    static let user = "bench"
    static let password = "p"

    enum Kind {
        static let connected: UInt8 = 2
        static let publish: UInt8 = 3
        static let published: UInt8 = 4
        static let subscribed: UInt8 = 9
        static let pong: UInt8 = 13
    }

    /// One packet. The upper half of `first` is the type; `body` is the bytes after the length
    /// field.
    struct Packet {
        let first: UInt8
        let body: UnsafeRawBufferPointer

        var kind: UInt8 { first >> 4 }

        /// For a PUBLISH with QoS 1: the packet identifier to acknowledge, and the text.
        var message: (identifier: UInt16, text: UnsafeRawBufferPointer)? {
            guard kind == Kind.publish, first & 0x06 == 0x02, body.count >= 2 else { return nil }
            let topic = Int(body[0]) << 8 | Int(body[1])
            guard body.count >= topic + 4 else { return nil }
            let identifier = UInt16(body[topic + 2]) << 8 | UInt16(body[topic + 3])
            return (identifier, UnsafeRawBufferPointer(rebasing: body[(topic + 4)...]))
        }

        /// Returns the next packet of `bytes` and moves `offset` past it.
        static func next(in bytes: UnsafeRawBufferPointer, from offset: inout Int) -> Packet? {
            var length = 0
            var shift = 0
            var position = offset + 1
            while true {
                guard position < bytes.count, shift <= 21 else { return nil }
                let byte = bytes[position]
                length |= Int(byte & 0x7F) << shift
                position += 1
                shift += 7
                if byte & 0x80 == 0 { break }
            }
            guard position + length <= bytes.count else { return nil }
            defer { offset = position + length }
            return Packet(
                first: bytes[offset],
                body: UnsafeRawBufferPointer(rebasing: bytes[position..<(position + length)])
            )
        }
    }

    /// Returns a CONNECT for a session that outlives the connection.
    static func connect(_ client: String) -> [UInt8] {
        // Flags: user name, password, no will, persistent session. Keep-alive: 5 minutes.
        packet(
            0x10,
            string("MQTT") + [4, 0xC0, 1, 44] + string(client) + string(user)
                + string(password)
        )
    }

    static func subscribe(_ topics: [String]) -> [UInt8] {
        packet(0x82, [0, 1] + topics.flatMap { string($0) + [1] })
    }

    static func publish(_ text: [UInt8], topic: [UInt8], identifier: UInt16) -> [UInt8] {
        packet(
            0x32,
            topic + [UInt8(identifier >> 8), UInt8(truncatingIfNeeded: identifier)] + text
        )
    }

    static func acknowledge(_ identifier: UInt16) -> [UInt8] {
        [0x40, 2, UInt8(identifier >> 8), UInt8(truncatingIfNeeded: identifier)]
    }

    static let ping: [UInt8] = [0xC0, 0]
    static let disconnect: [UInt8] = [0xE0, 0]

    static func string(_ text: String) -> [UInt8] {
        [UInt8(text.utf8.count >> 8), UInt8(truncatingIfNeeded: text.utf8.count)] + text.utf8
    }

    private static func packet(_ first: UInt8, _ body: [UInt8]) -> [UInt8] {
        var packet = [first]
        var length = body.count
        repeat {
            let rest = length >> 7
            packet.append(UInt8(length & 0x7F) | (rest > 0 ? 0x80 : 0))
            length = rest
        } while length > 0
        return packet + body
    }
}
