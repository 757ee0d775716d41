import Glibc
import TambourProtocol
import TambourTesting

/// One connection between a device and the server. It has a socket pair on the server's side, and a
/// simulated network that splits the stream anywhere, delays bytes, and can lose the connection.
final class Link {
    /// The delays, in microseconds, after which each side notices a lost connection.
    struct Loss {
        /// The server's delay; nil if the server never notices by itself.
        var serverAfterUs: Int64?
        /// The device's delay; nil if the device never notices by itself.
        var deviceAfterUs: Int64?

        static let atOnce = Loss(serverAfterUs: 0, deviceAfterUs: 0)
    }

    let number: Int
    private unowned let world: World
    private(set) weak var device: Device?
    /// The simulated network's end of the socket pair; -1 after the network has closed it.
    private var socket: Int32
    private var up: [UInt8] = []
    private var down: [UInt8] = []
    private var isUpPlanned = false
    private var isDownPlanned = false
    /// Whether the network has lost the connection and carries no more bytes.
    private(set) var isLost = false
    private(set) var isDeviceGone = false
    /// Whether the server has closed its side; bytes it sent earlier still arrive.
    private var isServerGone = false
    private(set) var isStalled = false
    let latencyUs: Int64
    /// Bytes per millisecond; nil for unlimited.
    var rate: Int?
    let traffic = Traffic()
    private var loop: EventLoop { world.loop }

    init(number: Int, world: World, device: Device, socket: Int32, latencyUs: Int64) {
        self.number = number
        self.world = world
        self.device = device
        self.socket = socket
        self.latencyUs = latencyUs
    }

    var isServerOpen: Bool { socket >= 0 && !isServerGone }
    var isOver: Bool { socket < 0 && isDeviceGone }

    // MARK: - From the device

    func send(_ bytes: [UInt8]) {
        guard !isLost, !isDeviceGone else { return }
        up += bytes
        planUp()
    }

    private func planUp() {
        guard !isUpPlanned, !up.isEmpty, !isLost else { return }
        isUpPlanned = true
        loop.after(pause()) { [weak self] in
            guard let self, !isLost else { return }
            isUpPlanned = false
            write(portion(of: up.count))
            planUp()
        }
    }

    private func pause() -> Int64 {
        loop.random.chance(30, in: 1000)
            ? loop.random.from(latencyUs, to: latencyUs * 10)
            : loop.random.from(latencyUs / 4, to: latencyUs)
    }

    /// Returns how many of `count` bytes to pass on: usually all that `rate` allows, otherwise a
    /// random part.
    private func portion(of count: Int) -> Int {
        let most = min(count, rate.map { max(1, $0 * Int(latencyUs / 1000 + 1)) } ?? count)
        return loop.random.chance(700, in: 1000) ? most : 1 + loop.random.below(most)
    }

    private func write(_ count: Int) {
        guard socket >= 0, count > 0 else { return }
        let taken = up.withUnsafeBytes { Glibc.send(socket, $0.baseAddress, count, noSignal) }
        guard taken > 0 else { return }
        up.withUnsafeBytes { bytes in
            let bytes = UnsafeRawBufferPointer(rebasing: bytes[..<taken])
            loop.hash.add(number)
            loop.hash.add(bytes)
            traffic.sent(bytes, on: self, world)
        }
        up.removeFirst(taken)
        world.server?.poke()
    }

    // MARK: - From the server

    /// Reads the server's output, unless the device is stalled.
    func drain() {
        guard socket >= 0, !isServerGone, !isStalled, !isLost else { return }
        let before = down.count
        take()
        // The server can now write the output that it held back.
        if down.count > before { world.server?.poke() }
        if down.count > before || isServerGone { planDown() }
    }

    private func take() {
        withUnsafeTemporaryAllocation(byteCount: 65_536, alignment: 16) { room in
            while socket >= 0 {
                let count = recv(socket, room.baseAddress, room.count, noWait)
                if count > 0 {
                    down += UnsafeRawBufferPointer(rebasing: room[..<count])
                    continue
                }
                if count == 0 || (errno != EAGAIN && errno != EINTR) { isServerGone = true }
                break
            }
        }
    }

    private func planDown() {
        guard !isDownPlanned, !isDeviceGone, !isLost, !isStalled else { return }
        guard !down.isEmpty || isServerGone else { return }
        isDownPlanned = true
        loop.after(pause()) { [weak self] in
            guard let self else { return }
            isDownPlanned = false
            guard !isLost, !isStalled else { return }
            if down.isEmpty { return tellDevice() }
            deliver(portion(of: down.count))
            planDown()
        }
    }

    private func deliver(_ count: Int) {
        guard !isDeviceGone, count > 0 else { return }
        let bytes = [UInt8](down[..<count])
        down.removeFirst(count)
        bytes.withUnsafeBytes { bytes in
            loop.hash.add(-number)
            loop.hash.add(bytes)
            traffic.received(bytes, on: self, world)
            device?.received(bytes, on: self)
        }
    }

    private func tellDevice() {
        guard !isDeviceGone else { return }
        isDeviceGone = true
        // After a loss, do not close the socket here: `lose` closes it after `serverAfterUs`.
        if !isLost { closeSocket() }
        traffic.ended(on: self, world)
        device?.lost(self)
    }

    // MARK: - Ends

    /// Closes the device's side. The server notices after `delay`, once it has read the earlier
    /// bytes.
    func hangUp(afterUs delay: Int64) {
        guard !isDeviceGone else { return }
        isDeviceGone = true
        traffic.ended(on: self, world)
        if !isLost { write(loop.random.below(up.count + 1)) }
        isLost = true
        loop.after(delay) { [weak self] in self?.closeSocket() }
    }

    /// Loses the connection; some bytes in flight still arrive.
    func lose(_ loss: Loss) {
        guard !isLost else { return }
        write(loop.random.below(up.count + 1))
        take()
        let left = loop.random.below(down.count + 1)
        isLost = true
        if let after = loss.serverAfterUs {
            loop.after(after) { [weak self] in self?.closeSocket() }
        }
        guard !isDeviceGone else { return }
        loop.after(loop.random.from(1, to: 5000)) { [weak self] in self?.deliver(left) }
        if let after = loss.deviceAfterUs {
            loop.after(5000 + after) { [weak self] in self?.tellDevice() }
        }
    }

    /// Handles the end of the server's process, which closes its sockets.
    func serverDied() {
        guard socket >= 0 else { return }
        lose(Loss(serverAfterUs: 0, deviceAfterUs: loop.random.from(100, to: 300_000)))
        closeSocket()
    }

    func stall(forUs us: Int64) {
        guard !isStalled, !isLost else { return }
        isStalled = true
        loop.after(us) { [weak self] in
            guard let self else { return }
            isStalled = false
            world.server?.poke()
            drain()
            planDown()
        }
    }

    func closeSocket() {
        guard socket >= 0 else { return }
        // Shut the socket down first: a child process of another test may hold a copy of the
        // descriptor.
        shutdown(socket, Int32(SHUT_RDWR))
        Glibc.close(socket)
        socket = -1
        world.server?.poke()
    }
}

/// Makes a write to a closed socket return an error instead of raising SIGPIPE.
private let noSignal = Int32(MSG_NOSIGNAL)
private let noWait = Int32(MSG_DONTWAIT)
