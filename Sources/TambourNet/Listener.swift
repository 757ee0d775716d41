import CEpoll
import Dispatch
import Glibc
import Synchronization

/// Accepts connections on its own queue and hands the sockets to a closure.
///
/// `@unchecked Sendable`: `state` is a `Mutex`, the counters are atomic, the rest is constant.
package final class Listener: @unchecked Sendable {
    /// Why listening failed.
    package struct ListenError: Error, CustomStringConvertible {
        package let address: ListenAddress
        package let reason: String

        package var description: String { "cannot listen on \(address): \(reason)" }
    }

    /// How one attempt to accept ended: a socket and its peer, or an `errno`.
    enum Acceptance {
        case socket(Int32, peer: String)
        case failed(Int32)
    }

    private struct State {
        var source: (any DispatchSourceRead)?
        var isPaused = false
        var isStopped = false
    }

    private let descriptor: Int32
    private let queue: DispatchQueue
    private let pause: DispatchTimeInterval
    private let accept: @Sendable (Int32) -> Acceptance
    private let state = Mutex(State())
    private let accepted = Atomic<Int>(0)
    private let exhausted = Atomic<Int>(0)

    /// What was bound, the port being the real one: `127.0.0.1:43211`.
    package let boundAddress: String

    /// How many sockets were accepted.
    package var acceptedCount: Int { accepted.load(ordering: .relaxed) }

    /// How many times accepting paused because descriptors or memory had run out.
    package var exhaustedCount: Int { exhausted.load(ordering: .relaxed) }

    /// Binds and listens; connections wait in the kernel until `start`.
    ///
    /// Of the addresses a host name has, the first that can be bound is used. An IPv6 address means
    /// IPv6 only.
    package convenience init(address: ListenAddress, backlog: Int32 = 4096) throws(ListenError) {
        try self.init(
            address: address,
            backlog: backlog,
            pauseWhenExhausted: .milliseconds(100),
            accept: acceptOne
        )
    }

    init(
        address: ListenAddress,
        backlog: Int32,
        pauseWhenExhausted: DispatchTimeInterval,
        accept: @escaping @Sendable (Int32) -> Acceptance
    ) throws(ListenError) {
        switch listen(on: address, backlog: backlog) {
        case .success(let bound):
            descriptor = bound
        case .failure(let error):
            throw error
        }
        boundAddress = localAddress(of: descriptor)
        queue = DispatchQueue(label: "tambour.listener \(boundAddress)")
        pause = pauseWhenExhausted
        self.accept = accept
    }

    deinit {
        if state.withLock({ $0.source == nil && !$0.isStopped }) { Glibc.close(descriptor) }
    }

    /// Begins to accept; `onAccept` owns the sockets it gets and is called on the listener's queue.
    ///
    /// Sockets are non-blocking, closed on exec, and send small packets at once.
    package func start(onAccept: @escaping @Sendable (_ socket: Int32, _ peer: String) -> Void) {
        state.withLock { state in
            guard state.source == nil, !state.isStopped else { return }
            let source = DispatchSource.makeReadSource(fileDescriptor: descriptor, queue: queue)
            source.setEventHandler { self.acceptAll(onAccept) }
            // The source must let go of the descriptor before it is closed.
            source.setCancelHandler { [descriptor] in Glibc.close(descriptor) }
            state.source = source
            source.activate()
        }
    }

    /// Stops at once: when this returns, the system refuses new connections.
    package func stop() {
        state.withLock { state in
            guard !state.isStopped else { return }
            state.isStopped = true
            shutdown(descriptor, Int32(SHUT_RDWR))
            guard let source = state.source else {
                Glibc.close(descriptor)
                return
            }
            source.cancel()
            // A suspended source would never run its cancel handler.
            if state.isPaused { source.resume() }
            state.isPaused = false
            state.source = nil
        }
    }

    private func acceptAll(_ onAccept: (Int32, String) -> Void) {
        while !state.withLock({ $0.isStopped }) {
            switch accept(descriptor) {
            case .socket(let socket, let peer):
                accepted.add(1, ordering: .relaxed)
                onAccept(socket, peer)
            case .failed(EMFILE), .failed(ENFILE), .failed(ENOBUFS), .failed(ENOMEM):
                exhausted.add(1, ordering: .relaxed)
                return rest()
            case .failed(EAGAIN), .failed(EBADF), .failed(EINVAL):
                return
            case .failed:
                // What happened to one connection before it was accepted says nothing of the next.
                continue
            }
        }
    }

    /// Leaves the waiting connections to the kernel for a while; the others are served meanwhile.
    private func rest() {
        let isPaused = state.withLock { state in
            guard let source = state.source else { return false }
            source.suspend()
            state.isPaused = true
            return true
        }
        guard isPaused else { return }
        queue.asyncAfter(deadline: .now() + pause) {
            self.state.withLock { state in
                guard state.isPaused else { return }
                state.isPaused = false
                state.source?.resume()
            }
        }
    }
}

private func acceptOne(_ listening: Int32) -> Listener.Acceptance {
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

/// `127.0.0.1:43211`, `[::1]:43211`.
private func describe(_ address: sockaddr_storage) -> String {
    withUnsafeBytes(of: address) { bytes in
        func text(_ family: Int32, at offset: Int) -> String {
            var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
            let address = UnsafeRawBufferPointer(rebasing: bytes[offset...]).baseAddress
            inet_ntop(family, address, &text, socklen_t(text.count))
            return text.withUnsafeBufferPointer { $0.baseAddress.map { String(cString: $0) } ?? "" }
        }

        // sockaddr_in and sockaddr_in6 both keep the port at offset 2; the address is at 4 and 8.
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
