import TambourProtocol
import Testing

/// The payloads that clients with different capabilities get. The tests use the types of
/// `Tests/SampleSpecification`, because the real specification gates only a few fields.
@Suite("What a client can read")
struct ProjectionTests {
    /// The combinations of capabilities to test.
    static let clients: [Capabilities] = [
        [], .colours, .shapes, .threads, [.colours, .shapes], [.shapes, .threads],
        [.colours, .shapes, .threads], .all,
    ]

    private let dot = Shape(kind: .dot, colour: .red, label: "dot")
    private let star = Shape(kind: .star, colour: .teal, label: "star")
    private let plain = Shape(kind: .other("BLOB"), colour: .other("PUCE"))

    private var everything: SampleGetReply {
        SampleGetReply(
            shapes: [dot, star, plain],
            cards: [Card(shape: star, title: "one"), Card(shape: dot, title: "two")],
            rows: [[star], [dot, star]],
            kinds: [.star, .dot],
            colours: [.teal, .red],
            best: star,
            kind: .star,
            packed: Packed([star, dot, star]),
            cover: Packed(Card(shape: star)),
            byUser: IDMap([(UserID(1), star), (UserID(2), dot)]),
            byName: NameMap([("a", Card(shape: dot)), ("b", Card(shape: star))]),
            note: Note(text: "note")
        )
    }

    /// Returns the expected payload for a client, computed by hand.
    private func expected(_ client: Capabilities) -> SampleGetReply {
        func shown(_ shape: Shape) -> Shape? {
            var shape = shape
            if !client.contains(.shapes), shape.kind == .star { return nil }
            if !client.contains(.colours) {
                shape.label = nil
                if shape.colour == .teal { shape.colour = .red }
            }
            return shape
        }
        func shown(_ frame: Card) -> Card? {
            shown(frame.shape).map { Card(shape: $0, title: frame.title) }
        }
        let hasShapes = client.contains(.shapes)
        return SampleGetReply(
            shapes: [dot, star, plain].compactMap(shown),
            cards: [Card(shape: star, title: "one"), Card(shape: dot, title: "two")]
                .compactMap(shown),
            rows: [[star], [dot, star]].map { $0.compactMap(shown) },
            kinds: hasShapes ? [.star, .dot] : [.dot],
            colours: client.contains(.colours) ? [.teal, .red] : [.red, .red],
            best: shown(star),
            kind: hasShapes ? .star : nil,
            packed: Packed([star, dot, star].compactMap(shown)),
            cover: shown(Card(shape: star)).map { Packed($0) },
            byUser: IDMap(
                [(1, star), (2, dot)].compactMap { id, shape in
                    shown(shape).map { (UserID(id), $0) }
                }
            ),
            byName: NameMap(
                [("a", dot), ("b", star)].compactMap { name, shape in
                    shown(Card(shape: shape)).map { (name, $0) }
                }
            ),
            note: client.contains(.threads) ? Note(text: "note") : nil
        )
    }

    @Test("is all they are sent, wherever it stands", arguments: clients)
    func everywhere(client: Capabilities) throws {
        let payload = everything.encoded(for: client)
        let read = try SampleGetReply.decode(payload, limits: .standard)
        #expect(read == expected(client))
        // Headers must not count omitted elements.
        #expect(read.encoded() == payload)
    }

    @Test("is everything unless somebody says otherwise")
    func unlessSaid() throws {
        #expect(everything.encoded() == everything.encoded(for: .all))
        #expect(try SampleGetReply.decode(everything.encoded(), limits: .standard) == everything)
    }

    @Test(
        "bytes that were packed under other limits are unpacked all the same, and broken ones go out as they are"
    )
    func packed() throws {
        let name = Text(String(repeating: "x", count: Limits.standard.maxShortStringBytes + 1))
        var reply = SampleGetReply(packed: Packed([Shape(kind: .other(name)), star]))
        let wide = try Limits(overrides: ["maxShortStringBytes": 10_000])
        let read = try SampleGetReply.decode(reply.encoded(for: []), limits: wide)
        #expect(try read.packed?.value(limits: wide) == [Shape(kind: .other(name))])
        reply.packed = Packed(unchecked: Bytes([0x91, 0xC3]))
        reply.shapes = [star]
        #expect(reply.encoded(for: []).suffix(2) == [0x91, 0xC3])
    }

    @Test("is asked about only where it matters")
    func gates() {
        #expect(SampleGetReply.gates == [.colours, .shapes, .threads])
        #expect(NotifShape.gates == [.colours, .shapes])
        #expect(Colour.gates == .colours && Kind.gates == .shapes && Card.gates == Shape.gates)
        #expect(Note.gates == [] && NotifNote.gates == [] && SampleGetRequest.gates == [])
        #expect([Note].gates == [] && Packed<[Shape]>.gates == Shape.gates)
        // Packets that contain only messages have no gates. Some fields of a chat depend on the
        // client's dialect: `cid` on classic, `link` on tamtam.
        #expect(MsgGetReply.gates == [] && NotifMsgDelete.gates == [] && Message.gates == [])
        let dialects: Capabilities = [.classic, .tamtam]
        #expect(ChatsListReply.gates == dialects && NotifMessage.gates == dialects)
        #expect(LoginReply.gates == [.resync, .syncMore, .classic, .tamtam])
    }

    @Test("decides which pushes they are sent")
    func pushes() {
        let shape = Push.notifShape(NotifShape(shapes: [star]))
        let note = Push.notifNote(NotifNote(note: Note(text: "note")))
        #expect(shape.needs == .threads && shape.gates == [.colours, .shapes])
        #expect(note.needs == [] && note.gates == [])
        let sent = shape.withEncoded(for: .threads) { [UInt8]($0) }
        #expect(sent == NotifShape().encoded())
    }

    @Test("packed bytes are unpacked for who speaks a dialect, also one who reads everything")
    func packedInDialect() throws {
        let user = User(id: UserID(7), names: [UserName(name: "Ann", type: "ONEME")])
        let packed = Packed([user])
        for dialect: Capabilities in [[.classic, .tamtam], .all.union([.classic, .tamtam])] {
            var writer = MessagePackWriter()
            writer.capabilities = dialect
            packed.write(to: &writer)
            var direct = MessagePackWriter()
            direct.capabilities = dialect
            [user].write(to: &direct)
            let bytes = direct.finish()
            #expect(writer.finish() == bytes)
            let read = try Packed<[User]>(unchecked: Bytes(bytes)).value(limits: .standard)
            #expect(read.first?.names == [UserName(name: "Ann", type: "TT")])
        }
    }

    @Test("dialects are found by their names, with those that they build on")
    func dialects() {
        #expect(Capabilities(dialect: "tamtam") == [.classic, .tamtam])
        #expect(Capabilities(dialect: "classic") == .classic)
        #expect(Capabilities(dialect: "") == nil && Capabilities(dialect: "TAMTAM") == nil)
        for (name, value) in Capabilities.dialectTable {
            #expect(value.union(.lz4Large).dialect == name)
        }
        #expect(Capabilities.all.dialect == nil)
    }

    @Test("numbers whose meaning has moved are known, and moved in tamtam alone")
    func movedNumbers() {
        let moved = (0...UInt16(1_300)).filter {
            Opcode(rawValue: $0).info?.movedIn.isEmpty == false
        }
        #expect(moved == [78, 84, 94, 256])
        for number in moved { #expect(Opcode(rawValue: number).info?.movedIn == .tamtam) }
    }

    @Test("leaves more of CHAT_HISTORY to who knows history-more")
    func history() throws {
        let reply = ChatHistoryReply(messages: [], more: true)
        let classic = reply.encoded(for: [.lz4Large])
        #expect(try ChatHistoryReply.decode(classic, limits: .standard).more == nil)
        let modern = reply.encoded(for: [.historyMore])
        #expect(try ChatHistoryReply.decode(modern, limits: .standard).more == true)
        #expect(classic == ChatHistoryReply(messages: []).encoded())
    }
}
