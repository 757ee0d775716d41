import TambourProtocol

/// Handles links to chats. A link is either an invitation, `join/…`, or a public name.
///
/// A client sends an invitation or a name alone, or as the end of a web address.
enum ChatLink {
    /// Returns a new invitation with 128 random bits, so that nobody can guess it.
    static func newInvitation(_ environment: Environment) -> Text {
        let digits = environment.randomBytes(16).map { byte in
            let text = String(byte, radix: 16)
            return byte < 16 ? "0\(text)" : text
        }
        return Text("join/\(digits.joined())")
    }

    /// Returns the key under which the store finds the linked chat; nil for an invalid link.
    static func key(in link: Text, limits: Limits) -> Text? {
        let text = "\(link)"
        if let start = text.ranges(of: "join/").last?.lowerBound {
            return Text(String(text[start...]))
        }
        return try? publicName(in: link, limits: limits)
    }

    /// Returns the public name in a link, in lower case.
    ///
    /// - Throws: `proto.payload` for an invalid name.
    static func publicName(in link: Text, limits: Limits) throws -> Text {
        var text = "\(link)"[...]
        let scheme = text.ranges(of: "://").first
        if let scheme { text = text[scheme.upperBound...] }
        // Apps also send an address without its scheme, such as tt.me/name. Public names never
        // contain a dot.
        if let slash = text.firstIndex(of: "/"), scheme != nil || text[..<slash].contains(".") {
            text = text[text.index(after: slash)...]
        } else if scheme != nil {
            throw RequestError.protoPayload("/link: an address without a name")
        }
        if text.first == "@" { text.removeFirst() }
        if text.last == "/" { text.removeLast() }
        let name = text.lowercased()
        guard limits.minPublicNameUnits...limits.maxPublicNameUnits ~= name.utf8.count,
            let first = name.utf8.first, 0x61...0x7a ~= first,
            name.utf8.allSatisfy({ 0x61...0x7a ~= $0 || 0x30...0x39 ~= $0 || $0 == 0x5f })
        else {
            throw RequestError.protoPayload(
                "/link: a name has \(limits.minPublicNameUnits) to \(limits.maxPublicNameUnits) "
                    + "Latin letters, digits and _, a letter first"
            )
        }
        return Text(name)
    }
}
