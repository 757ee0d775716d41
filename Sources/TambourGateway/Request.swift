import TambourMessenger
import TambourProtocol

extension Session {
    /// A request in flight or queued.
    final class Request: Sendable {
        /// Work that runs outside the lane and waits for its turn.
        enum Work: Sendable {
            case login(LoginRequest)
            case query(QueryRequest)
            case command(CommandRequest)
            case preview(MsgSharePreviewRequest)
        }

        let work: Work
        let opcode: Opcode
        let sequence: UInt16
        /// The time when the lane read the request's bytes, in microseconds of the lane's clock.
        let arrivalUs: Int64
        /// Whether the request arrived after a LOGIN that is still in flight. The outcome of the
        /// LOGIN decides which bucket pays.
        let isUnpaid: Bool

        init(
            _ work: Work,
            _ sequence: UInt16,
            _ opcode: Opcode,
            arrivalUs: Int64,
            isUnpaid: Bool
        ) {
            self.work = work
            self.opcode = opcode
            self.sequence = sequence
            self.arrivalUs = arrivalUs
            self.isUnpaid = isUnpaid
        }

        var turn: SessionStateMachine.Turn {
            switch work {
            case .login: .exclusive
            case .query: .query
            case .command: .command
            case .preview: .beside
            }
        }

        /// Returns the charges that are due before the request starts. Returns nil for LOGIN, which
        /// is charged when its token is known.
        func charges(limits: Limits) -> RateRules.Charges? {
            switch work {
            case .login: nil
            case .query(let query): RateRules.charges(for: query, limits: limits)
            case .command(let command): RateRules.charges(for: command, limits: limits)
            case .preview(let preview):
                RateRules.charges(for: .msgSharePreview(preview), limits: limits)
            }
        }

        /// Returns the additional charge for the answer, in units of `read`. It depends on the
        /// answer's size, so it is charged after the answer.
        ///
        /// - Parameters:
        ///   - bytes: the size of the reply's payload before compression.
        ///   - rows: the number of rows that the query has read.
        func units(forReplyOf bytes: Int, reading rows: Int, limits: Limits) -> Int {
            let units = RateRules.units(forReplyOf: bytes, limits: limits)
            guard case .query(let query) = work else { return units }
            return units + RateRules.units(forReading: rows, by: query, limits: limits)
        }
    }
}
