import Foundation
import TambourFraming
import TambourNet
import TambourProtocol

/// Keeps packets in flight on a dedicated thread, and discards the answers.
///
/// `@unchecked Sendable`: the thread owns all other state; the lock guards `isOver` and `failure`.
final class Attacker: @unchecked Sendable {
    private let lock = NSLock()
    private var isOver = false
    private var failure: (any Error)?
    private var answers = 0
    private let ended = DispatchSemaphore(value: 0)
    private let connection: BlockingConnection
    private let packets: [[UInt8]]
    private let window: Int
    private let isBurst: Bool
    private var sent = 0

    /// - Parameters:
    /// - opening: packets whose replies arrive before the attack starts.
    /// - packets: the packets that the attack repeats in order.
    ///   - window: the number of packets in flight.
    /// - isBurst: whether to send `window` packets at once and wait for all replies. Otherwise each
    ///   reply triggers the next packet.
    init(
        _ address: ListenAddress,
        opening: [[UInt8]],
        packets: [[UInt8]],
        window: Int,
        isBurst: Bool
    ) throws {
        self.packets = packets
        self.window = window
        self.isBurst = isBurst
        connection = try BlockingConnection(address)
        for packet in opening {
            try connection.write(packet)
            try connection.readAnswer()
        }
        Thread { [self] in
            do { try attack() } catch { lock.withLock { failure = error } }
            ended.signal()
        }.start()
    }

    private func attack() throws {
        try sendWindow()
        while !lock.withLock({ isOver }) {
            if isBurst {
                for _ in 0..<window { try connection.readAnswer() }
                lock.withLock { answers += window }
                try sendWindow()
            } else {
                try connection.readAnswer()
                lock.withLock { answers += 1 }
                try connection.write(nextPacket())
            }
        }
    }

    private func nextPacket() -> [UInt8] {
        sent += 1
        return packets[sent % packets.count]
    }

    private func sendWindow() throws {
        try connection.write((0..<window).flatMap { _ in nextPacket() })
    }

    /// Stops without waiting for packets in flight.
    ///
    /// - Returns: the number of answered packets.
    /// - Throws: the error that ended the attack early.
    func stop() throws -> Int {
        lock.withLock { isOver = true }
        ended.wait()
        if let failure { throw failure }
        return answers
    }
}

extension BlockingConnection {
    /// Reads one reply, even an error; skips pushes.
    func readAnswer() throws {
        var decoder = FrameDecoder(limits: .standard)
        decoder.authenticated = true
        try read { bytes, offset -> Void? in
            while let frame = try decoder.next(in: bytes, from: &offset) {
                if frame.header.command != PacketCommand.request.rawValue { return () }
            }
            return nil
        }
    }
}

/// The packets that attackers send.
enum Attack {
    static func packet(
        _ opcode: Opcode,
        _ payload: [UInt8],
        compressed: Bool = false
    ) -> [UInt8] {
        var packet: [UInt8] = []
        let block = compressed ? payload.withUnsafeBytes { LZ4.compress($0) } : nil
        let body = block ?? payload
        var header = [UInt8](repeating: 0, count: PacketHeader.size)
        header.withUnsafeMutableBytes { bytes in
            PacketHeader(
                command: PacketCommand.request.rawValue,
                sequence: 1,
                opcode: opcode.rawValue,
                flags: block == nil ? 0 : UInt8(clamping: payload.count / body.count + 1),
                length: body.count
            ).write(to: bytes)
        }
        packet += header
        packet += body
        return packet
    }

    static func packet(_ request: some WireRequest) -> [UInt8] {
        packet(type(of: request).opcode, request.encoded())
    }

    /// Returns `count` MSG_SEND packets, each with its own client id.
    static func messages(to chat: ChatID, _ count: Int, text: Text) -> [[UInt8]] {
        (0..<count).map { number in
            let message = NewMessage(cid: Int64(number) + 1, text: text)
            return packet(MsgSendRequest(chatID: chat, message: message))
        }
    }

    /// LOG with 99 events of 60 empty spans: about 84 bytes that inflate to 7.7 KB.
    static let log: [UInt8] = {
        func text(_ value: String) -> [UInt8] { [0xA0 | UInt8(value.utf8.count)] + value.utf8 }
        let spans: [UInt8] = [0xDC, 0, 60] + Array(repeating: 0x80, count: 60)
        let event: [UInt8] = [0x81] + text("params") + [0x81] + text("spans") + spans
        let events = (0..<99).flatMap { _ in event }
        return packet(.log, [0x81] + text("events") + [0xDC, 0, 99] + events, compressed: true)
    }()

    /// The number of `log` packets in a burst of 64 KB.
    static let logsOfBurst = 64 * 1024 / log.count

    static let hello = packet(SessionInitRequest(deviceID: "attacker"))

    static func login(_ account: Account) -> [[UInt8]] {
        [packet(account.hello), packet(account.loginRequest())]
    }
}
