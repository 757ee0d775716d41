import ArgumentParser
import Foundation
import TambourClient
import TambourProtocol

/// The options that choose which servers an account trusts. The account remembers the choice.
struct TrustOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Trusts the certificates of this file in PEM, instead of the system's authorities; `system` trusts these again. The account remembers it.",
            valueName: "file"
        ),
        completion: .file()
    )
    var ca: String?

    @Option(
        help: ArgumentHelp(
            "Trusts only the server with this public key: its SHA-256 in hexadecimal digits or Base64. The account remembers it.",
            valueName: "sha256"
        )
    )
    var pin: String?

    /// The word for the authorities of the system.
    private static let system = "system"
    /// The maximum size of a file of certificates. The file with the authorities of a system has
    /// about a quarter of this size.
    private static let maxFileBytes = 1 << 20

    func validate() throws {
        if ca != nil, pin != nil { throw ValidationError("Give --ca or --pin, not both.") }
        if let pin, ServerKeyDigest(pin) == nil {
            throw ValidationError(
                printable(
                    "“\(pin)” is no SHA-256: it has 64 hexadecimal digits, or 44 characters of Base64."
                )
            )
        }
    }

    /// Returns the trust that the user has chosen; nil to use the trust that is stored with the
    /// account.
    ///
    /// - Throws: `Failure` if the file of certificates cannot be read.
    func chosen() throws -> ServerTrust? {
        if let pin { return ServerKeyDigest(pin).map { .pinned($0) } }
        guard let ca else { return nil }
        if ca == Self.system { return .system }
        guard let file = FileHandle(forReadingAtPath: ca),
            let bytes = try? file.read(upToCount: Self.maxFileBytes + 1) ?? Data()
        else { throw Failure("\(ca) cannot be read. --ca needs a file of certificates in PEM.") }
        guard bytes.count <= Self.maxFileBytes else {
            throw Failure("\(ca) is too long for a file of certificates.")
        }
        return .authorities(pem: String(decoding: bytes, as: UTF8.self))
    }
}

extension ServerTrust {
    /// A short description of the trust; for a pinned key, the pin.
    var words: String {
        switch self {
        case .system: "system"
        case .authorities: "own authorities"
        case .pinned(let key): "\(key)"
        }
    }
}

extension ClientError {
    /// The description of the error. For some errors, also names the options that can help.
    var words: String {
        guard case .unreachable(_, let failure) = self else { return description }
        switch failure {
        case .untrusted: return "\(description) `--ca FILE` trusts an authority, `--pin` a key."
        case .wrongKey: return "\(description) `--pin` trusts another key."
        default: return description
        }
    }
}

extension String {
    /// Reads a server's address from the command line.
    ///
    /// - Throws: `ValidationError` if the text is not an address.
    func serverAddress() throws -> ServerAddress {
        do {
            return try ServerAddress(self)
        } catch {
            throw ValidationError(printable("\(error)"))
        }
    }
}
