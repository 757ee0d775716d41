import Glibc
import TambourTLS

/// The reason why no connection to a server was made.
public enum ConnectionFailure: Error, Hashable, Sendable {
    /// The host name has no address, or name resolution failed.
    case unknownHost
    /// No process listens on the port.
    case refused
    /// The system reports another reason, such as a missing route.
    case unreachable(reason: String)
    /// The server did not answer in time.
    case noAnswer
    /// The server closed the connection before it answered.
    case closed
    /// The answer is not a packet of this protocol.
    case otherProtocol
    /// The server's answer is not TLS.
    case notTLS
    /// Client and server have no version or cipher of TLS in common.
    case nothingShared(reason: String)
    /// No trusted authority has signed the server's certificate.
    case untrusted(reason: String, key: ServerKeyDigest)
    /// The server's certificate, or another certificate of its chain, has expired.
    ///
    /// - Parameter at: seconds since 1970.
    case expired(at: Int64)
    /// The server's certificate, or another certificate of its chain, is not valid yet.
    ///
    /// - Parameter until: seconds since 1970.
    case notYetValid(until: Int64)
    /// The server's certificate is for other names. `names` contains some of them.
    case wrongName(names: [String])
    /// The server's key is not the pinned key.
    case wrongKey(ServerKeyDigest)
    /// The server accepts only clients with a certificate, which this client cannot have.
    case certificateRequired
    /// The server closed the connection during the handshake of TLS.
    case closedDuringHandshake
    /// The server did not complete the handshake of TLS in time.
    case handshakeTimedOut
    /// The handshake of TLS failed for another reason.
    case handshakeFailed(reason: String)
    /// This build has no TLS, or TLS cannot start.
    case tlsUnavailable(reason: String)

    /// Describes the failure, its cause and the next step.
    ///
    /// - Parameter server: the text of a `ServerAddress`.
    public func description(of server: String) -> String {
        switch self {
        case .unknownHost:
            "\(server) cannot be reached: no address is known for its name. Check the name and your network connection."
        case .refused:
            "\(server) refuses the connection: nothing listens there. Check host and port, and whether the server runs."
        case .unreachable(let reason):
            "\(server) cannot be reached: \(reason). Check the address and your network connection."
        case .noAnswer:
            "\(server) does not answer. Check host and port; a firewall may be in between."
        case .closed:
            "\(server) closed the connection before it answered. It may be busy: try again later.\(hint(of: server))"
        case .otherProtocol:
            "\(server) does not speak this protocol. Check the port.\(hint(of: server))"
        case .notTLS:
            "\(server) does not speak TLS: its answer is something else. Check the port.\(Self.plainHint)"
        case .nothingShared(let reason):
            "\(server) and this client have no version or cipher of TLS in common (\(reason)). The server needs TLS 1.3, or TLS 1.2 with ECDHE and AEAD ciphers."
        case .untrusted(let reason, let key):
            "\(server) is not trusted: no authority that you trust has signed its certificate (\(reason)). Somebody may be impersonating it. Ask its operator for the certificate of the authority, or for the key, and compare: this key is \(key)."
        case .expired(let end):
            "\(server) is not trusted: its certificate expired on \(Self.date(end)). If the clock of this device is right, tell the server's operator."
        case .notYetValid(let begin):
            "\(server) is not trusted: its certificate is valid from \(Self.date(begin)) on. The clock of this device may be wrong."
        case .wrongName(let names):
            "\(server) is not trusted: its certificate is for \(Self.list(names)). Use the name that the operator gives, and check that no one else answers there."
        case .wrongKey(let key):
            "\(server) is not trusted: it has another key than the pinned one. Somebody may be impersonating it, or it has a new key: ask its operator, and compare. This key is \(key)."
        case .certificateRequired:
            "\(server) accepts only clients with a certificate, which this client cannot show. Ask its operator for another port."
        case .closedDuringHandshake:
            "\(server) closed the connection during the TLS handshake. It may be busy, or not speak TLS: check the port, or try again later.\(Self.plainHint)"
        case .handshakeTimedOut:
            "\(server) did not complete the TLS handshake in time. Check the port and your network connection, or try again later."
        case .handshakeFailed(let reason):
            "\(server) and this client could not agree on TLS: \(reason). Tell the server's operator."
        case .tlsUnavailable(let reason):
            "\(server) needs TLS, which cannot be used: \(reason)."
        }
    }

    /// Advice for the user when a connection without TLS gets no understandable answer.
    private func hint(of server: String) -> String {
        server.hasPrefix("tcp://") ? " If it expects TLS, write tls:// before its name." : ""
    }

    /// Advice for the user when the server may not support TLS.
    private static let plainHint =
        " Only if you trust every network in between, write tcp:// to connect without TLS."

    /// Lists names, for the text about a wrong name.
    private static func list(_ names: [String]) -> String {
        names.isEmpty ? "another name" : names.joined(separator: ", ")
    }

    /// A day in UTC, such as `2026-11-27`.
    private static func date(_ seconds: Int64) -> String {
        var (time, parts) = (time_t(truncatingIfNeeded: seconds), tm())
        gmtime_r(&time, &parts)
        var text = [CChar](repeating: 0, count: 32)
        let count = strftime(&text, text.count, "%Y-%m-%d", &parts)
        return String(decoding: text[..<count].map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}

extension ConnectionFailure {
    init(_ refusal: TLSRefusal) {
        self =
            switch refusal {
            case .notTLS: .notTLS
            case .nothingShared(let reason): .nothingShared(reason: reason)
            case .untrusted(let reason, let key):
                .untrusted(reason: reason, key: ServerKeyDigest(bytes: key))
            case .expired(let end): .expired(at: end)
            case .notYetValid(let begin): .notYetValid(until: begin)
            case .wrongName(let names): .wrongName(names: names)
            case .wrongKey(let key): .wrongKey(ServerKeyDigest(bytes: key))
            case .certificateRequired: .certificateRequired
            case .alert(let reason), .other(let reason): .handshakeFailed(reason: reason)
            }
    }
}
