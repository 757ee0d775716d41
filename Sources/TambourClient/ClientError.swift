import TambourProtocol

/// The reason a call failed.
public enum ClientError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The server refused the request. `code` is an error code of the protocol, such as
    /// `chat.not.found`; `text` is for the user.
    case refused(code: String, text: String, retryAfter: Duration? = nil)
    /// No connection to the server at the address `server`, the text of a `ServerAddress`.
    case unreachable(server: String, ConnectionFailure)
    /// The connection was lost before the reply. The server may have carried out the request.
    case disconnected
    /// The reply did not arrive in time. The server may have carried out the request.
    case timedOut
    /// The reply cannot be decoded; `reason` says why.
    case unreadable(reason: String)
    /// No account is signed in.
    case signedOut
    /// The local store could not be read or written, for example because the disk is full.
    case store(reason: String)
    /// The arguments are invalid, or name something that does not exist.
    case invalid(reason: String)
    /// The request was cancelled before it completed.
    case cancelled

    public var description: String {
        switch self {
        case .refused(_, let text, let wait?): "\(text) (again in \(wait))"
        case .refused(_, let text, nil): text
        case .unreachable(let server, let failure): failure.description(of: server)
        case .disconnected: "the connection was lost"
        case .timedOut: "the server did not answer in time"
        case .unreadable(let reason): "the server's answer cannot be read: \(reason)"
        case .signedOut: "nobody is signed in"
        case .store(let reason): "the local store: \(reason)"
        case .invalid(let reason): reason
        case .cancelled: "it was cancelled"
        }
    }
}

extension ClientError {
    /// Converts an error reply of the server.
    init(_ reply: ErrorReply) {
        let text = reply.localizedMessage ?? reply.title ?? reply.message
        self = .refused(
            code: String(describing: reply.error),
            text: String(describing: text),
            retryAfter: reply.retryAfter.map { .milliseconds($0) }
        )
    }

    /// The protocol's code of a refusal, if this client knows the code.
    var code: RequestError.Code? {
        guard case .refused(let code, _, _) = self else { return nil }
        return RequestError.Code(rawValue: code)
    }
}
