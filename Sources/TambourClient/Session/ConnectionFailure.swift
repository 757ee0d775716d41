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

    /// Describes the failure, its cause and the next step.
    func description(of server: String) -> String {
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
            "\(server) closed the connection before it answered. It may be busy, or expect TLS, which this client does not speak. Check the port, or try again later."
        case .otherProtocol:
            "\(server) does not speak this protocol. Is it a TLS or web port? Use the port on which the server listens for TCP without TLS."
        }
    }
}
