import Foundation
import Glibc

/// The stanzas that the benchmark's client writes, and a parser for received stanzas.
enum XMPP {
    static let domain = "localhost"
    static let password = "p"

    static let header = Array(
        """
        <?xml version='1.0'?><stream:stream to='\(domain)' xmlns='jabber:client' \
        xmlns:stream='http://etherx.jabber.org/streams' version='1.0'>
        """.utf8
    )

    static func address(_ user: String) -> String { "\(user)@\(domain)" }

    static func plain(_ user: String) -> [UInt8] {
        let secret = Data("\0\(user)\0\(password)".utf8).base64EncodedString()
        return Array(
            "<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='PLAIN'>\(secret)</auth>".utf8
        )
    }

    static let bind = Array(
        """
        <iq type='set' id='bind'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'>\
        <resource>b</resource></bind></iq>
        """.utf8
    )

    static let present = Array("<presence/>".utf8)

    /// Returns the stanza that enters a room without requesting its history.
    static func join(_ room: String, as nick: String) -> [UInt8] {
        Array(
            """
            <presence to='\(room)/\(nick)'><x xmlns='http://jabber.org/protocol/muc'>\
            <history maxstanzas='0'/></x></presence>
            """.utf8
        )
    }

    static func ping(_ id: String) -> [UInt8] {
        Array(
            "<iq type='get' id='\(id)' to='\(domain)'><ping xmlns='urn:xmpp:ping'/></iq>".utf8
        )
    }

    /// Returns the request for the contact list; the server sends the list only if `version` is
    /// outdated.
    static func roster(version: String) -> [UInt8] {
        Array(
            "<iq type='get' id='roster'><query xmlns='jabber:iq:roster' ver='\(version)'/></iq>"
                .utf8
        )
    }

    static func addContact(_ user: String, name: String, id: String) -> [UInt8] {
        Array(
            """
            <iq type='set' id='\(id)'><query xmlns='jabber:iq:roster'>\
            <item jid='\(address(user))' name='\(name)'><group>Friends</group></item></query></iq>
            """.utf8
        )
    }

    /// Returns the request for a page of the archive: XEP-0313 with result set management.
    ///
    /// - Parameters:
    /// - user: Restricts the page to the conversation with this user.
    /// - after: The archive id of the message before the page; nil requests the last page.
    static func archive(with user: String? = nil, after: String?, limit: Int) -> [UInt8] {
        let with = user.map { "<field var='with'><value>\(address($0))</value></field>" } ?? ""
        let place = after.map { "<after>\($0)</after>" } ?? "<before/>"
        return Array(
            """
            <iq type='set' id='page'><query xmlns='urn:xmpp:mam:2' queryid='q'>\
            <x xmlns='jabber:x:data' type='submit'><field var='FORM_TYPE' type='hidden'>\
            <value>urn:xmpp:mam:2</value></field>\(with)</x>\
            <set xmlns='http://jabber.org/protocol/rsm'><max>\(limit)</max>\(place)</set>\
            </query></iq>
            """.utf8
        )
    }

    /// Returns the bytes before and after the text of a message to `to`.
    static func envelope(to: String, type: String) -> (before: [UInt8], after: [UInt8]) {
        (
            Array("<message to='\(to)' type='\(type)'><body>".utf8),
            Array("</body></message>".utf8)
        )
    }

    /// Escapes a text for XML. Replaces control characters, which XML cannot represent, by question
    /// marks; a few old fortunes contain such characters.
    static func escape(_ text: Bytes100) -> [UInt8] {
        var escaped: [UInt8] = []
        escaped.reserveCapacity(text.count + 16)
        for byte in text {
            switch byte {
            case UInt8(ascii: "&"): escaped.append(contentsOf: "&amp;".utf8)
            case UInt8(ascii: "<"): escaped.append(contentsOf: "&lt;".utf8)
            case UInt8(ascii: ">"): escaped.append(contentsOf: "&gt;".utf8)
            case 0..<0x20: escaped.append(UInt8(ascii: "?"))
            default: escaped.append(byte)
            }
        }
        return escaped
    }

    /// Returns a text as the receiver gets it; see `escape`.
    static func arriving(_ text: Bytes100) -> [UInt8] {
        text.map { $0 < 0x20 ? UInt8(ascii: "?") : $0 }
    }

    private static let entities: [(name: StaticString, byte: UInt8)] = [
        ("&lt;", UInt8(ascii: "<")), ("&gt;", UInt8(ascii: ">")), ("&amp;", UInt8(ascii: "&")),
        ("&quot;", UInt8(ascii: "\"")), ("&apos;", UInt8(ascii: "'")),
        ("&#39;", UInt8(ascii: "'")),
    ]

    /// Reverses the escaping; covers the escapes that any of the measured servers writes.
    static func unescape(_ text: UnsafeRawBufferPointer) -> [UInt8] {
        var plain: [UInt8] = []
        plain.reserveCapacity(text.count)
        var position = 0
        while position < text.count {
            let rest = Stanza(bytes: UnsafeRawBufferPointer(rebasing: text[position...]))
            if text[position] == UInt8(ascii: "&"),
                let entity = entities.first(where: { rest.begins(with: $0.name) })
            {
                plain.append(entity.byte)
                position += entity.name.utf8CodeUnitCount
            } else {
                plain.append(text[position])
                position += 1
            }
        }
        return plain
    }
}

/// One element of the stream, or the stream's own opening or closing tag.
struct Stanza {
    let bytes: UnsafeRawBufferPointer

    fileprivate static func find(
        _ byte: UInt8,
        in bytes: UnsafeRawBufferPointer,
        from: Int
    ) -> Int? {
        guard let base = bytes.baseAddress, from < bytes.count else { return nil }
        return memchr(base + from, Int32(byte), bytes.count - from).map {
            UnsafeRawPointer($0) - base
        }
    }

    func begins(with text: StaticString) -> Bool { stands(text, at: 0) }

    func contains(_ text: StaticString) -> Bool { place(of: text) != nil }

    private func place(of text: StaticString) -> Int? {
        var from = 0
        while let place = Self.find(text.utf8Start[0], in: bytes, from: from) {
            if stands(text, at: place) { return place }
            from = place + 1
        }
        return nil
    }

    private func stands(_ text: StaticString, at place: Int) -> Bool {
        guard let base = bytes.baseAddress, place + text.utf8CodeUnitCount <= bytes.count
        else { return false }
        return memcmp(base + place, text.utf8Start, text.utf8CodeUnitCount) == 0
    }

    var text: String { String(decoding: bytes, as: UTF8.self) }

    /// Returns the text between the first `before` and the following `after`.
    func between(_ before: String, _ after: String) -> String? {
        let text = text
        guard let start = text.range(of: before)?.upperBound,
            let end = text[start...].range(of: after)?.lowerBound
        else { return nil }
        return String(text[start..<end])
    }

    /// Returns the value of an attribute, in either kind of quotes.
    func attribute(_ name: String) -> String? {
        between(" \(name)='", "'") ?? between(" \(name)=\"", "\"")
    }

    /// The text of a message, still escaped; nil without a text.
    var body: UnsafeRawBufferPointer? {
        let tag: StaticString = "<body>"
        guard let place = place(of: tag) else { return nil }
        let start = place + tag.utf8CodeUnitCount
        guard let end = Self.find(UInt8(ascii: "<"), in: bytes, from: start) else { return nil }
        return UnsafeRawBufferPointer(rebasing: bytes[start..<end])
    }
}

/// Splits a stream into stanzas; scans each byte once, even if a stanza arrives in pieces.
///
/// It counts tags without comparing names, because the measured servers send well-formed XML. They
/// write `>` in attributes as `&gt;`, so a tag ends at the first `>`.
struct StanzaCutter {
    /// The start of the incomplete stanza, and the end of the scanned bytes. Both are relative to
    /// the first unconsumed byte.
    private var start = 0
    private var seen = 0
    private var depth = 0

    /// Returns the next stanza of `bytes` and moves `offset` past it; nil if it is incomplete.
    mutating func next(in bytes: UnsafeRawBufferPointer, from offset: inout Int) -> Stanza? {
        let rest = UnsafeRawBufferPointer(rebasing: bytes[offset...])
        while let tag = Stanza.find(UInt8(ascii: "<"), in: rest, from: seen) {
            seen = tag
            guard let end = Stanza.find(UInt8(ascii: ">"), in: rest, from: tag) else { return nil }
            seen = end + 1
            if depth == 0 { start = tag }
            if rest[tag + 1] == UInt8(ascii: "?") { continue }
            if rest[tag + 1] == UInt8(ascii: "/") {
                depth -= 1
            } else if rest[end - 1] != UInt8(ascii: "/") {
                depth += 1
            }
            let stanza = Stanza(bytes: UnsafeRawBufferPointer(rebasing: rest[start..<seen]))
            if depth <= 0 || stanza.begins(with: "<stream:stream") {
                offset += seen
                self = StanzaCutter()
                return stanza
            }
        }
        seen = rest.count
        return nil
    }
}

/// The login, from an open socket to a bound session. Returns the bytes to write after each
/// received stanza.
struct XMPPLogin {
    private enum Step { case mechanisms, success, features, bound, done }

    let user: String
    private var step = Step.mechanisms

    init(user: String) { self.user = user }

    var isDone: Bool { step == .done }

    mutating func received(_ stanza: Stanza) throws -> [UInt8] {
        switch step {
        case .mechanisms where stanza.begins(with: "<stream:features"):
            step = .success
            return XMPP.plain(user)
        case .success where stanza.begins(with: "<success"):
            step = .features
            return XMPP.header
        case .features where stanza.begins(with: "<stream:features"):
            step = .bound
            return XMPP.bind
        case .bound where stanza.begins(with: "<iq"):
            guard stanza.attribute("type") == "result" else { throw BenchError(stanza.text) }
            step = .done
            return []
        default:
            guard stanza.begins(with: "<stream:stream") else { throw BenchError(stanza.text) }
            return []
        }
    }
}
