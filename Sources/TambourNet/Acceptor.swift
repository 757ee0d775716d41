package import Dispatch
import Glibc
import Synchronization

/// Accepts connections on a listening socket, and pauses when descriptors or memory run out.
///
/// `@unchecked Sendable`: `state` is a `Mutex`, the counters are atomic, and the other properties
/// are constant.
package final class Acceptor: @unchecked Sendable {
    /// The result of one attempt to accept: a socket and its peer, or an `errno`.
    package enum Acceptance: Sendable {
        case socket(Int32, peer: String)
        case failed(Int32)
    }

    private struct State {
        var source: (any DispatchSourceRead)?
        var isPaused = false
        var isStopped = false
    }

    /// The length of the pause after descriptors or memory run out.
    package static let pause = DispatchTimeInterval.milliseconds(100)

    private let descriptor: Int32
    private let queue: DispatchQueue
    private let pause: DispatchTimeInterval
    private let accept: @Sendable (Int32) -> Acceptance
    private let state = Mutex(State())
    private let accepted = Atomic<Int>(0)
    private let exhausted = Atomic<Int>(0)

    /// The number of sockets accepted so far.
    package var acceptedCount: Int { accepted.load(ordering: .relaxed) }

    /// The number of pauses so far.
    package var exhaustedCount: Int { exhausted.load(ordering: .relaxed) }

    /// - Parameters:
    ///   - descriptor: a listening, non-blocking socket. The acceptor takes ownership of the
    ///     socket.
    ///   - queue: the serial queue on which the acceptor accepts connections.
    ///   - accept: accepts one connection.
    package init(
        descriptor: Int32,
        queue: DispatchQueue,
        pauseWhenExhausted: DispatchTimeInterval = Acceptor.pause,
        accept: @escaping @Sendable (Int32) -> Acceptance
    ) {
        self.descriptor = descriptor
        self.queue = queue
        pause = pauseWhenExhausted
        self.accept = accept
    }

    deinit {
        if state.withLock({ $0.source == nil && !$0.isStopped }) { Glibc.close(descriptor) }
    }

    /// Starts accepting connections. Both closures run on the queue. `onAccept` takes ownership of
    /// the sockets.
    package func start(
        onExhausted: @escaping @Sendable () -> Void,
        onAccept: @escaping @Sendable (_ socket: Int32, _ peer: String) -> Void
    ) {
        state.withLock { state in
            guard state.source == nil, !state.isStopped else { return }
            let source = DispatchSource.makeReadSource(fileDescriptor: descriptor, queue: queue)
            source.setEventHandler { self.acceptAll(onExhausted, onAccept) }
            // Close the descriptor only when the source no longer uses it.
            source.setCancelHandler { [descriptor] in Glibc.close(descriptor) }
            state.source = source
            source.activate()
        }
    }

    /// Stops at once. After this method returns, the system refuses new connections.
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
            // Resume a paused source, because a suspended source never runs its cancel handler.
            if state.isPaused { source.resume() }
            state.isPaused = false
            state.source = nil
        }
    }

    private func acceptAll(_ onExhausted: () -> Void, _ onAccept: (Int32, String) -> Void) {
        while !state.withLock({ $0.isStopped }) {
            switch accept(descriptor) {
            case .socket(let socket, let peer):
                accepted.add(1, ordering: .relaxed)
                onAccept(socket, peer)
            case .failed(EMFILE), .failed(ENFILE), .failed(ENOBUFS), .failed(ENOMEM):
                exhausted.add(1, ordering: .relaxed)
                rest()
                return onExhausted()
            case .failed(EAGAIN), .failed(EBADF), .failed(EINVAL):
                return
            case .failed:
                // One connection failed before it was accepted. Continue, because the next
                // connection may be good.
                continue
            }
        }
    }

    /// Stops accepting for a short time. New connections wait in the kernel, and open connections
    /// are still served.
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
