/// Speaks MQTT 3.1.1 with QoS 1, with PUBACK as the acknowledgement in both directions.
final class MQTTClient: LoadClient {
    private let identity: String
    private let reads: String?
    private let topic: [UInt8]
    private var identifier: UInt16 = 0

    /// - Parameters:
    ///   - identity: The client's name; the broker keeps a session for it.
    ///   - reads: A topic to subscribe to.
    ///   - writes: The topic that `send` publishes to.
    init(index: Int, sink: any LoadSink, identity: String, reads: String?, writes: String?) {
        self.identity = identity
        self.reads = reads
        topic = MQTT.string(writes ?? "")
        super.init(index: index, sink: sink)
    }

    override func opened() { write(MQTT.connect(identity)) }

    override func send(_ text: Bytes100, number: UInt32) {
        // 0 is not a valid identifier.
        identifier = identifier == .max ? 1 : identifier + 1
        write(MQTT.publish(text, topic: topic, identifier: identifier))
    }

    override func consume(_ bytes: UnsafeRawBufferPointer) throws -> Int {
        var offset = 0
        while let packet = MQTT.Packet.next(in: bytes, from: &offset) {
            switch packet.kind {
            case MQTT.Kind.connected:
                guard packet.body.count == 2, packet.body[1] == 0 else {
                    throw BenchError("the broker refused the login")
                }
                if let reads { write(MQTT.subscribe([reads])) } else { sink.ready(self) }
            case MQTT.Kind.subscribed: sink.ready(self)
            case MQTT.Kind.published: sink.acknowledged(self)
            case MQTT.Kind.publish:
                guard let message = packet.message else {
                    throw BenchError("a message came without QoS 1")
                }
                write(MQTT.acknowledge(message.identifier))
                if let number = Corpus.number(in: message.text) {
                    sink.delivered(number, to: self)
                }
            default: break
            }
        }
        return offset
    }
}
