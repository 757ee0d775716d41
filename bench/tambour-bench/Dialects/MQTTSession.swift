import TambourNet

/// An MQTT client that performs one operation at a time.
final class MQTTSession {
    let connection: BlockingConnection

    init(_ address: ListenAddress, identity: String) throws {
        connection = try BlockingConnection(address)
        try connection.write(MQTT.connect(identity))
        let isAccepted = try read { packet in
            packet.kind == MQTT.Kind.connected ? packet.body.last == 0 : nil
        }
        guard isAccepted else { throw BenchError("the broker refused the login") }
    }

    /// Reads packets until `take` returns a result.
    func read<Result>(_ take: (MQTT.Packet) throws -> Result?) throws -> Result {
        try connection.read { bytes, offset in
            while let packet = MQTT.Packet.next(in: bytes, from: &offset) {
                if let result = try take(packet) { return result }
            }
            return nil
        }
    }

    func subscribe(_ topics: [String]) throws {
        try connection.write(MQTT.subscribe(topics))
        try read { $0.kind == MQTT.Kind.subscribed ? () : nil }
    }

    /// Publishes and waits for the acknowledgement.
    func publish(_ text: Bytes100, topic: String) throws {
        try connection.write(
            MQTT.publish(text, topic: MQTT.string(topic), identifier: 1)
        )
        try read { $0.kind == MQTT.Kind.published ? () : nil }
    }

    /// Waits for `count` messages.
    ///
    /// - Returns: their packet identifiers, for acknowledgement.
    func receive(_ count: Int) throws -> [UInt16] {
        var identifiers: [UInt16] = []
        return try read { packet in
            if let message = packet.message { identifiers.append(message.identifier) }
            return identifiers.count == count ? identifiers : nil
        }
    }

    /// Acknowledges messages, waits until the broker has processed the acknowledgements, and
    /// disconnects.
    func finish(acknowledging identifiers: [UInt16]) throws {
        try connection.write(identifiers.flatMap(MQTT.acknowledge) + MQTT.ping)
        try read { $0.kind == MQTT.Kind.pong ? () : nil }
        try connection.write(MQTT.disconnect)
    }
}
