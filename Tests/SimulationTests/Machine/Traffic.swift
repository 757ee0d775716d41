import TambourFraming
import TambourProtocol

@testable import TambourClient

/// The packets of one connection, as an eavesdropper sees them. They show which faults a loss or a
/// crash causes.
final class Traffic {
    private var sentBytes: [UInt8] = []
    private var receivedBytes: [UInt8] = []
    /// Requests that the device has sent and that have no reply yet.
    private(set) var open: [UInt16: Asked] = [:]
    /// Whether a login reply has reached the device.
    private(set) var isLoggedIn = false

    struct Asked {
        let opcode: Opcode
        /// The text of the message being sent.
        var text: String?
        var chat: ChatID?
    }

    func isOpen(_ opcode: Opcode) -> Bool { open.values.contains { $0.opcode == opcode } }

    func isOpen(_ opcode: Opcode, of chat: ChatID) -> Bool {
        open.values.contains { $0.opcode == opcode && $0.chat == chat }
    }

    /// Records bytes that reached the server.
    func sent(_ bytes: UnsafeRawBufferPointer, on link: Link, _ world: World) {
        Self.cut(&sentBytes, bytes) { packet in
            let header = packet.header
            guard header.command == PacketCommand.request.rawValue else { return }
            var asked = Asked(opcode: Opcode(rawValue: header.opcode))
            switch asked.opcode {
            case .msgSend:
                let request = try? MsgSendRequest.decode(packet.payload, limits: .standard)
                asked.text = request?.message.text.map { "\($0)" }
                if let message = request?.message,
                    let token = message.attaches.first?.photoToken
                {
                    world.photoNamed("\(token)", by: asked.text ?? "", cid: message.cid)
                }
            case .chatHistory:
                let request = try? ChatHistoryRequest.decode(packet.payload, limits: .standard)
                asked.chat = request?.chatID
            default: break
            }
            open[header.sequence] = asked
            if asked.opcode == .login { world.loginAsked(on: link) }
            world.commandAsked(asked.opcode)
            if let chat = asked.chat { world.pageAsked(chat, on: link) }
        }
    }

    /// Records bytes that reach the device now.
    func received(_ bytes: UnsafeRawBufferPointer, on link: Link, _ world: World) {
        guard let device = link.device else { return }
        Self.cut(&receivedBytes, bytes) { packet in
            let header = packet.header
            guard header.command == PacketCommand.request.rawValue else {
                let asked = open.removeValue(forKey: header.sequence)
                if asked?.opcode == .login { isLoggedIn = true }
                if asked?.opcode == .objPush,
                    let reply = try? ObjPushReply.decode(packet.payload, limits: .standard),
                    reply.results.contains(where: { $0.status == .rejected }),
                    reply.results.contains(where: { $0.status == .skipped })
                {
                    world.hit(.parentRejected)
                }
                if asked?.opcode == .chatHistory,
                    let page = try? ChatHistoryReply.decode(packet.payload, limits: .standard)
                {
                    world.pageArrived(page.messages ?? [], on: device)
                }
                return
            }
            switch Opcode(rawValue: header.opcode) {
            case .notifMessage:
                guard let push = try? NotifMessage.decode(packet.payload, limits: .standard) else {
                    return
                }
                world.pushed(push, to: device)
            case .notifMsgDelete:
                guard let push = try? NotifMsgDelete.decode(packet.payload, limits: .standard)
                else { return }
                device.removed.formUnion(push.messageIDs)
            default: break
            }
        }
    }

    func ended(on link: Link, _ world: World) {
        if !receivedBytes.isEmpty { world.hit(.cutInReply) }
        if !open.isEmpty { world.hit(.cutAfterRequest) }
        if open.values.contains(where: { $0.opcode == .login }) && receivedBytes.count > 200 {
            world.hit(.loginCut)
        }
        if isOpen(.syncMore) || isOpen(.chatsList) { world.hit(.loginCut) }
        for text in open.values.compactMap(\.text) { world.replyLost(of: text) }
    }

    private static func cut(
        _ kept: inout [UInt8],
        _ bytes: UnsafeRawBufferPointer,
        _ body: (Packet) -> Void
    ) {
        kept += bytes
        var decoder = FrameDecoder(limits: .standard)
        decoder.authenticated = true
        var offset = 0
        kept.withUnsafeBytes { bytes in
            while let frame = try? decoder.next(in: bytes, from: &offset) {
                if let packet = try? frame.packet(limits: .standard) { body(packet) }
            }
        }
        kept.removeFirst(offset)
    }
}
