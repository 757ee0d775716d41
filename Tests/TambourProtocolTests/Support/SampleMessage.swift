import TambourProtocol

/// A payload like the generated ones, with a field of every kind.
struct SampleMessage: WirePayload, Hashable {
    var chatID: ChatID
    var text: Text
    var attaches: [SampleAttach] = []
    var marks: IDMap<UserID, Int64> = IDMap()
    var packed: Packed<[SampleAttach]>?
    var extra: AnyValue?
    var ratio: Double?
    var hash: Bytes?
    var name: String?
    var isSilent = false

    static func read(from reader: inout MessagePackReader) throws(PayloadError) -> SampleMessage {
        var chatID: ChatID?
        var text: Text?
        var message = SampleMessage(chatID: ChatID(0), text: .empty)
        var field: StaticString = ""
        do throws(PayloadError) {
            for _ in 0..<(try reader.readMapHeader()) {
                field = ""
                let key = try reader.readKey()
                if reader.matches(key, "chatId") {
                    field = "chatId"
                    if chatID != nil { throw .duplicateKey() }
                    chatID = ChatID(try reader.readID())
                } else if reader.matches(key, "text") {
                    field = "text"
                    if text != nil { throw .duplicateKey() }
                    text = try reader.readText(
                        maxUTF16: reader.limits.maxTextUnits,
                        maxBytes: reader.limits.maxTextBytes
                    )
                } else if reader.matches(key, "attaches") {
                    field = "attaches"
                    if !reader.readNilIfPresent() {
                        message.attaches = try reader.readList(maxItems: 16) {
                            (reader: inout MessagePackReader) throws(PayloadError) in
                            try SampleAttach.read(from: &reader)
                        }
                    }
                } else if reader.matches(key, "marks") {
                    field = "marks"
                    message.marks = try IDMap.read(from: &reader)
                } else if reader.matches(key, "packed") {
                    field = "packed"
                    message.packed = try Packed.read(from: &reader)
                } else if reader.matches(key, "extra") {
                    field = "extra"
                    message.extra = try AnyValue.read(from: &reader)
                } else if reader.matches(key, "ratio") {
                    field = "ratio"
                    message.ratio = try reader.readDouble()
                } else if reader.matches(key, "hash") {
                    field = "hash"
                    message.hash = try reader.readBytes(maxBytes: 64)
                } else if reader.matches(key, "name") {
                    field = "name"
                    message.name = try reader.readString(maxBytes: 64)
                } else if reader.matches(key, "silent") {
                    field = "silent"
                    message.isSilent = try reader.readBool()
                } else {
                    try reader.skip()
                }
            }
        } catch {
            throw error.within(field)
        }
        reader.endContainer()
        guard let chatID else { throw .missing("chatId") }
        guard let text else { throw .missing("text") }
        message.chatID = chatID
        message.text = text
        return message
    }

    func write(to writer: inout MessagePackWriter) {
        let optional: [Bool] = [
            packed != nil, extra != nil, ratio != nil, hash != nil, name != nil,
        ]
        writer.writeMapHeader(5 + optional.filter { $0 }.count)
        writer.writeKey("chatId")
        chatID.write(to: &writer)
        writer.writeKey("text")
        writer.writeText(text)
        writer.writeKey("attaches")
        attaches.write(to: &writer)
        writer.writeKey("marks")
        marks.write(to: &writer)
        if let packed {
            writer.writeKey("packed")
            packed.write(to: &writer)
        }
        if let extra {
            writer.writeKey("extra")
            extra.write(to: &writer)
        }
        if let ratio {
            writer.writeKey("ratio")
            writer.writeDouble(ratio)
        }
        if let hash {
            writer.writeKey("hash")
            writer.writeBytes(hash)
        }
        if let name {
            writer.writeKey("name")
            writer.writeString(name)
        }
        writer.writeKey("silent")
        writer.writeBool(isSilent)
    }

    /// A message with every field set.
    static let full = SampleMessage(
        chatID: ChatID(-73_000_001),
        text: "привет, 🌍",
        attaches: [
            SampleAttach(type: "SHARE", size: 300), SampleAttach(type: "CONTACT", size: -1),
        ],
        marks: IDMap([(UserID(7), 1_781_708_681_185), (UserID(-8), 0)]),
        packed: Packed([SampleAttach(type: "LOCATION", size: 70_000)]),
        extra: AnyValue(Tree.map([.init(key: .int(1), value: .array([.null, .text("x")]))])),
        ratio: 0.5,
        hash: Bytes([1, 2, 3]),
        name: "Анна",
        isSilent: true
    )
}

/// An item of a list in `SampleMessage`.
struct SampleAttach: WireValue, Hashable {
    var type: Text
    var size: Int64

    static func read(from reader: inout MessagePackReader) throws(PayloadError) -> SampleAttach {
        var attach = SampleAttach(type: .empty, size: 0)
        var field: StaticString = ""
        do throws(PayloadError) {
            for _ in 0..<(try reader.readMapHeader()) {
                field = ""
                let key = try reader.readKey()
                if reader.matches(key, "_type") {
                    field = "_type"
                    attach.type = try reader.readText(maxUTF16: 16, maxBytes: 64)
                } else if reader.matches(key, "size") {
                    field = "size"
                    attach.size = try reader.readInt()
                } else {
                    try reader.skip()
                }
            }
        } catch {
            throw error.within(field)
        }
        reader.endContainer()
        return attach
    }

    func write(to writer: inout MessagePackWriter) {
        writer.writeMapHeader(2)
        writer.writeKey("_type")
        writer.writeText(type)
        writer.writeKey("size")
        writer.writeInt(size)
    }
}
