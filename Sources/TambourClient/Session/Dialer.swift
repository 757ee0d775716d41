import Dispatch
import Glibc
import Synchronization

/// Opens TCP connections without blocking the lane. Looks up names and tries their addresses in
/// turn.
enum Dialer {
    /// The time limit for each address.
    private static let patienceMs: Int32 = 10_000

    /// An attempt that can be cancelled.
    final class Attempt: Sendable {
        private let isGivenUp = Mutex(false)

        func giveUp() { isGivenUp.withLock { $0 = true } }

        var wasGivenUp: Bool { isGivenUp.withLock { $0 } }
    }

    /// Connects to a server, without TLS.
    ///
    /// - Parameter completion: called once, on any queue, with a connected socket or the failure.
    ///   The caller must close the socket. Not called after the attempt was given up.
    static func connect(
        to server: ServerAddress,
        completion:
            @escaping @Sendable (_ socket: Result<Int32, ConnectionFailure>, _ attempt: Attempt) ->
            Void
    ) -> Attempt {
        let attempt = Attempt()
        DispatchQueue.global(qos: .userInitiated).async {
            let socket = Result { () throws(ConnectionFailure) in try open(server, attempt) }
            if attempt.wasGivenUp {
                if case .success(let socket) = socket { close(socket) }
            } else {
                completion(socket, attempt)
            }
        }
        return attempt
    }

    private static func open(
        _ server: ServerAddress,
        _ attempt: Attempt
    ) throws(ConnectionFailure) -> Int32 {
        var hints = addrinfo()
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        var found: UnsafeMutablePointer<addrinfo>?
        let isLocal = server.isLocalName
        if !isLocal { hints.ai_flags = AI_ADDRCONFIG }
        // Without a host name, the system returns the addresses of this machine.
        let host: String? = isLocal ? nil : server.host
        guard getaddrinfo(host, "\(server.port)", &hints, &found) == 0 else {
            throw .unknownHost
        }
        defer { freeaddrinfo(found) }
        var next = found
        var failure = ConnectionFailure.unknownHost
        while let candidate = next, !attempt.wasGivenUp {
            do {
                return try open(candidate.pointee)
            } catch {
                failure = error
            }
            next = candidate.pointee.ai_next
        }
        throw failure
    }

    private static func open(_ address: addrinfo) throws(ConnectionFailure) -> Int32 {
        let type =
            address.ai_socktype | Int32(SOCK_CLOEXEC.rawValue) | Int32(SOCK_NONBLOCK.rawValue)
        let descriptor = socket(address.ai_family, type, address.ai_protocol)
        guard descriptor >= 0 else { throw ConnectionFailure(errno) }
        var on: Int32 = 1
        setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &on, socklen_t(4))
        let result = Glibc.connect(descriptor, address.ai_addr, address.ai_addrlen)
        var error = result == 0 ? 0 : errno
        if error == EINPROGRESS { error = outcome(of: descriptor) }
        if error == 0 { return descriptor }
        close(descriptor)
        throw ConnectionFailure(error)
    }

    /// Waits for a connection attempt in progress.
    ///
    /// - Returns: an `errno`; 0 when connected.
    private static func outcome(of descriptor: Int32) -> Int32 {
        var waiting = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
        guard poll(&waiting, 1, patienceMs) == 1 else { return ETIMEDOUT }
        var error: Int32 = 0
        var length = socklen_t(MemoryLayout<Int32>.size)
        getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &error, &length)
        return error
    }
}

extension ConnectionFailure {
    fileprivate init(_ error: Int32) {
        switch error {
        case ECONNREFUSED: self = .refused
        case ETIMEDOUT: self = .noAnswer
        default: self = .unreachable(reason: String(cString: strerror(error)))
        }
    }
}
