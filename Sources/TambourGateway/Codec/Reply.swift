import TambourFraming
import TambourMessenger
import TambourProtocol

extension Session {
    /// An answer on its way to its lane. The reader that reads a page from the store also frames
    /// the page. The lane therefore spends no time on it.
    struct Reply: Sendable {
        let answer: Answer
        /// The finished packet; nil if the lane encodes and frames the answer.
        private(set) var packet: [UInt8]?
        /// The size of the packet's payload before compression.
        private(set) var payloadBytes = 0

        init(_ answer: Answer) {
            self.answer = answer
        }

        /// Frames the answer if it is a page. If the page is too long, the lane refuses it later.
        ///
        /// - Parameter capabilities: the capabilities with which the page was encoded.
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
            // Drop the payload, because the packet contains it.
            var answer = answer
            answer.outcome = .encoded([])
            var reply = Reply(answer)
            reply.packet = packet
            reply.payloadBytes = payload.count
            return reply
        }
    }
}
