package import TambourNet
package import TambourProtocol

/// A listener: its transport and address, and the dialect of its clients.
package struct ListenEndpoint: Hashable, Sendable, CustomStringConvertible {
    /// An error in the text of a listener, described for the operator who wrote it.
    package struct ParseError: Error, Hashable, CustomStringConvertible {
        package let text: String
        package let reason: String

        package var description: String { "listener \"\(text)\": \(reason)" }
    }

    /// Whether the protocol's packets travel over plain TCP or TLS. The raw value is the URL
    /// scheme.
    package enum Transport: String, Sendable {
        case tcp
        case tls
    }

    package let transport: Transport
    package let address: ListenAddress
    /// The dialect of the listener's clients, including the dialects that it builds on; nil to
    /// detect each client's dialect.
    package let dialect: Capabilities?

    package init(
        _ address: ListenAddress,
        transport: Transport = .tcp,
        dialect: Capabilities? = nil
    ) {
        self.transport = transport
        self.address = address
        self.dialect = dialect
    }

    /// Parses `HOST:PORT`, `tcp://HOST:PORT` or `tls://HOST:PORT`, each optionally followed by
    /// `?dialect=NAME`.
    ///
    /// - Throws: `ParseError`.
    package init(_ text: String) throws {
        func refuse(_ reason: String) -> ParseError { ParseError(text: text, reason: reason) }

        var rest = text[...]
        if let scheme = text.firstRange(of: "://") {
            guard let named = Transport(rawValue: String(text[..<scheme.lowerBound])) else {
                throw refuse("the only schemes are tcp:// and tls://")
            }
            transport = named
            rest = text[scheme.upperBound...]
        } else {
            transport = .tcp
        }
        let parts = rest.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        do {
            address = try ListenAddress(String(parts[0]))
        } catch {
            throw refuse(error.reason)
        }
        guard parts.count > 1 else {
            self.dialect = nil
            return
        }
        let option = parts[1].split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        guard option.count == 2, option[0] == "dialect" else {
            throw refuse("\"\(parts[1])\" is no option; a listener has dialect=NAME")
        }
        guard let named = Capabilities(dialect: String(option[1])) else {
            let known = Capabilities.dialectTable.map(\.name).joined(separator: " and ")
            throw refuse("there is no dialect \"\(option[1])\"; there are \(known)")
        }
        self.dialect = named
    }

    package var description: String {
        let scheme = transport == .tcp ? "" : "\(transport.rawValue)://"
        guard let name = dialect?.dialect else { return "\(scheme)\(address)" }
        return "\(scheme)\(address)?dialect=\(name)"
    }
}
