import TambourFraming
import TambourMessenger
import TambourProtocol

extension Session {
    /// An answer on its way to its lane. Pages are framed where they were read: no lane waits for
    /// that.
    struct Reply: Sendable {
        let answer: Answer
        /// The packet, compressed if that pays; nil if the lane encodes and frames the answer.
        private(set) var packet: [UInt8]?
        /// The size of the packet's payload before compression.
        private(set) var payloadBytes = 0

        init(_ answer: Answer) {
            self.answer = answer
        }

        /// Frames the answer if it is a page; one that is too long is refused on the lane.
        ///
        /// - Parameter capabilities: those that the page was encoded for.
        static func framed(
            _ answer: Answer,
            to request: Request,
            for capabilities: Capabilities,
            limits: Limits
        ) -> Reply {
            guard case .encoded(let payload) = answer.outcome,
                payload.count <= limits.mostPayloadBytes
            else { return Reply(answer) }
            var packet: [UInt8] = []
            encodePacket(
                command: .ok,
                sequence: request.sequence,
                opcode: request.opcode.rawValue,
                payload: payload,
                compression: Compression(for: capabilities),
                compressFrom: limits.compressFromBytes,
                into: &packet
            )
            // The payload goes: it is in the packet.
            var answer = answer
            answer.outcome = .encoded([])
            var reply = Reply(answer)
            reply.packet = packet
            reply.payloadBytes = payload.count
            return reply
        }
    }
}
