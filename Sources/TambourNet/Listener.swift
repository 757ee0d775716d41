import CEpoll
import Dispatch
import Glibc

/// Accepts connections on its own queue and passes the sockets to a closure.
///
/// `@unchecked Sendable`: all properties are constant, and the acceptor guards its own state.
package final class Listener: @unchecked Sendable {
    /// The error that is thrown when listening fails.
    package struct ListenError: Error, CustomStringConvertible {
        package let address: ListenAddress
        package let reason: String

        package var description: String { "cannot listen on \(address): \(reason)" }
    }

    private let acceptor: Acceptor

    /// The bound address with the actual port, such as `127.0.0.1:43211`.
    package let boundAddress: String

    /// The number of sockets accepted so far.
    package var acceptedCount: Int { acceptor.acceptedCount }

    /// The number of pauses so far. The listener pauses when descriptors or memory run out.
    package var exhaustedCount: Int { acceptor.exhaustedCount }

    /// Binds the address and listens. Connections wait in the kernel until `start`.
    ///
    /// If a host name has several addresses, binds the first one that can be bound. A listener with
    /// an IPv6 address accepts only IPv6 connections.
    package convenience init(address: ListenAddress, backlog: Int32 = 4096) throws(ListenError) {
        try self.init(
            address: address,
            backlog: backlog,
            pauseWhenExhausted: Acceptor.pause,
            accept: acceptOne
        )
    }

    init(
        address: ListenAddress,
        backlog: Int32,
        pauseWhenExhausted: DispatchTimeInterval,
        accept: @escaping @Sendable (Int32) -> Acceptor.Acceptance
    ) throws(ListenError) {
        let descriptor: Int32
        switch listen(on: address, backlog: backlog) {
        case .success(let bound):
            descriptor = bound
        case .failure(let error):
            throw error
        }
        boundAddress = localAddress(of: descriptor)
        acceptor = Acceptor(
            descriptor: descriptor,
            queue: DispatchQueue(label: "tambour.listener \(boundAddress)"),
            pauseWhenExhausted: pauseWhenExhausted,
            accept: accept
        )
    }

    /// Starts accepting connections. `onAccept` is called on the listener's queue and takes
    /// ownership of the sockets.
    ///
    /// The sockets are non-blocking, are closed on exec, and send small packets at once.
    ///
    /// - Parameter onExhausted: called when the listener pauses because descriptors or memory ran
    ///   out.
    package func start(
        onExhausted: @escaping @Sendable () -> Void = {},
        onAccept: @escaping @Sendable (_ socket: Int32, _ peer: String) -> Void
    ) {
        acceptor.start(onExhausted: onExhausted, onAccept: onAccept)
    }

    /// Stops at once. After this method returns, the system refuses new connections.
    package func stop() {
        acceptor.stop()
    }
}

private func acceptOne(_ listening: Int32) -> Acceptor.Acceptance {
    var address = sockaddr_storage()
    var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
    let socket = withUnsafeMutablePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
            accept4(
                listening,
                $0,
                &length,
                Int32(SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
            )
        }
    }
    if socket < 0 { return .failed(errno) }
    setOption(socket, Int32(IPPROTO_TCP), TCP_NODELAY, 1)
    return .socket(socket, peer: describe(address))
}

private func listen(
    on address: ListenAddress,
    backlog: Int32
) -> Result<Int32, Listener.ListenError> {
    func failure(_ reason: String) -> Result<Int32, Listener.ListenError> {
        .failure(Listener.ListenError(address: address, reason: reason))
    }

    var hints = addrinfo()
    hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV
    hints.ai_family = AF_UNSPEC
    hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
    var found: UnsafeMutablePointer<addrinfo>?
    let status = getaddrinfo(address.host, String(address.port), &hints, &found)
    guard status == 0 else { return failure(String(cString: gai_strerror(status))) }
    defer { freeaddrinfo(found) }

    var reason = "the name has no address"
    var candidate = found
    while let entry = candidate?.pointee {
        candidate = entry.ai_next
        let flags = Int32(SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
        let descriptor = socket(entry.ai_family, entry.ai_socktype | flags, entry.ai_protocol)
        if descriptor < 0 {
            reason = String(cString: strerror(errno))
            continue
        }
        setOption(descriptor, SOL_SOCKET, SO_REUSEADDR, 1)
        if entry.ai_family == AF_INET6 {
            setOption(descriptor, Int32(IPPROTO_IPV6), IPV6_V6ONLY, 1)
        }
        if bind(descriptor, entry.ai_addr, entry.ai_addrlen) == 0,
            Glibc.listen(descriptor, backlog) == 0
        {
            return .success(descriptor)
        }
        reason = String(cString: strerror(errno))
        close(descriptor)
    }
    return failure(reason)
}

private func localAddress(of descriptor: Int32) -> String {
    var address = sockaddr_storage()
    var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
    withUnsafeMutablePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
            _ = getsockname(descriptor, $0, &length)
        }
    }
    return describe(address)
}

/// Formats an address as `127.0.0.1:43211` or `[::1]:43211`.
private func describe(_ address: sockaddr_storage) -> String {
    withUnsafeBytes(of: address) { bytes in
        func text(_ family: Int32, at offset: Int) -> String {
            var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
            let address = UnsafeRawBufferPointer(rebasing: bytes[offset...]).baseAddress
            inet_ntop(family, address, &text, socklen_t(text.count))
            return text.withUnsafeBufferPointer { $0.baseAddress.map { String(cString: $0) } ?? "" }
        }

        // The port is at offset 2 in both sockaddr_in and sockaddr_in6. The address is at offset 4
        // in sockaddr_in, and at 8 in sockaddr_in6.
        let port = UInt16(bigEndian: bytes.load(fromByteOffset: 2, as: UInt16.self))
        switch Int32(address.ss_family) {
        case AF_INET: return "\(text(AF_INET, at: 4)):\(port)"
        case AF_INET6: return "[\(text(AF_INET6, at: 8))]:\(port)"
        default: return "unknown"
        }
    }
}

private func setOption(_ socket: Int32, _ level: Int32, _ name: Int32, _ value: Int32) {
    var value = value
    setsockopt(socket, level, name, &value, socklen_t(MemoryLayout<Int32>.size))
}
