package import TambourNet
package import TambourProtocol

/// A listener: its address, and the dialect of its clients.
package struct ListenEndpoint: Hashable, Sendable, CustomStringConvertible {
    /// An error in the text of a listener, described for the operator who wrote it.
    package struct ParseError: Error, Hashable, CustomStringConvertible {
        package let text: String
        package let reason: String

        package var description: String { "listener \"\(text)\": \(reason)" }
    }

    package let address: ListenAddress
    /// The dialect of the listener's clients, including the dialects that it builds on; nil to
    /// detect each client's dialect.
    package let dialect: Capabilities?

    package init(_ address: ListenAddress, dialect: Capabilities? = nil) {
        self.address = address
        self.dialect = dialect
    }

    /// Parses `HOST:PORT` or `tcp://HOST:PORT`, each optionally followed by `?dialect=NAME`.
    ///
    /// - Throws: `ParseError`.
    package init(_ text: String) throws {
        func refuse(_ reason: String) -> ParseError { ParseError(text: text, reason: reason) }

        let scheme = "tcp://"
        let rest = text.hasPrefix(scheme) ? text.dropFirst(scheme.count) : text[...]
        if rest.contains("://") { throw refuse("the only scheme is tcp://") }
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
        guard let name = dialect?.dialect else { return "\(address)" }
        return "\(address)?dialect=\(name)"
    }
}
