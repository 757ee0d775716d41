import TambourNet

/// A logged-in XMPP user that sends one request at a time.
final class XMPPSession {
    let connection: BlockingConnection
    private var cutter = StanzaCutter()

    init(_ address: ListenAddress, user: String) throws {
        connection = try BlockingConnection(address)
        var login = XMPPLogin(user: user)
        try connection.write(XMPP.header)
        while !login.isDone {
            let answer = try read { try login.received($0) }
            if !answer.isEmpty { try connection.write(answer) }
        }
    }

    /// Reads stanzas until `take` returns a result.
    func read<Result>(_ take: (Stanza) throws -> Result?) throws -> Result {
        try connection.read { bytes, offset in
            while let stanza = cutter.next(in: bytes, from: &offset) {
                if stanza.begins(with: "<stream:error") { throw BenchError(stanza.text) }
                if let result = try take(stanza) { return result }
            }
            return nil
        }
    }

    /// Sends messages to `user` and waits until the server has processed them.
    func write(_ texts: [Bytes100], to user: String) throws {
        let envelope = XMPP.envelope(to: XMPP.address(user), type: "chat")
        var bytes: [UInt8] = []
        for text in texts {
            bytes += envelope.before
            bytes += XMPP.escape(text)
            bytes += envelope.after
        }
        try connection.write(bytes)
        try ask(XMPP.ping("ping"), id: "ping") { _ in }
    }

    /// Sends a request and passes its reply to `take`.
    func ask<Result>(
        _ request: [UInt8],
        id: String,
        _ take: (Stanza) throws -> Result
    ) throws -> Result {
        try connection.write(request)
        return try read { stanza in
            guard stanza.begins(with: "<iq"), stanza.attribute("id") == id else { return nil }
            guard stanza.attribute("type") == "result" else { throw BenchError(stanza.text) }
            return try take(stanza)
        }
    }

    /// Requests the roster, which the server sends only if its version is not `version`. Returns
    /// the new version; nil if the roster is unchanged.
    func rosterVersion(since version: String) throws -> String? {
        try ask(XMPP.roster(version: version), id: "roster") { $0.attribute("ver") }
    }

    /// Requests a page of the archive.
    ///
    /// - Returns: the texts of the messages, and the archive id of the last message.
    func page(
        with user: String? = nil,
        after: String?,
        limit: Int = 50
    ) throws -> (texts: [[UInt8]], last: String?) {
        try connection.write(XMPP.archive(with: user, after: after, limit: limit))
        var texts: [[UInt8]] = []
        return try read { stanza in
            if stanza.begins(with: "<message"), stanza.contains("urn:xmpp:mam:2") {
                if let body = stanza.body { texts.append(XMPP.unescape(body)) }
                return nil
            }
            guard stanza.begins(with: "<iq"), stanza.contains("urn:xmpp:mam:2") else {
                if stanza.begins(with: "<iq"), stanza.contains("error") {
                    throw BenchError(stanza.text)
                }
                return nil
            }
            return (texts, stanza.between("<last>", "</last>"))
        }
    }
}
