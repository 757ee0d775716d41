/// All possible answers to a request, and what a client should do after each answer.
struct AnswerSet {
    struct Answer: Equatable {
        enum What: Equatable {
            case reply
            case error(String)
            /// The connection was closed before an answer arrived.
            case nothing
        }

        var what: What
        var when: String
        var advice: String
    }

    /// The reply, the opcode's own errors, and a lost connection.
    let own: [Answer]
    /// The common errors that this request can get.
    let common: [Answer]

    init(of opcode: OpcodeEntry, in specification: Specification) {
        let codes = opcode.errors.compactMap { code in
            specification.errors.first { $0.code == code }
        }
        own =
            [Answer(what: .reply, when: "It was done.", advice: "")]
            + codes.map { Self.answer($0, opcode) }
            + [Answer(what: .nothing, when: Self.lost, advice: Self.afterLoss(opcode))]
        common = specification.errors.filter(\.isCommon).compactMap { error in
            var answer = Self.answer(error, opcode)
            switch error.code {
            case "proto.state":
                guard let state = Self.state(neededBy: opcode, in: specification) else {
                    return nil
                }
                answer.when = "The connection is not yet `\(state)`."
            case "proto.opcode":
                var reasons = specification.features.filter { $0.opcodes.contains(opcode.name) }
                    .map { "`\($0.name)` is off" }
                if opcode.since > 1 {
                    reasons.append("the server is older than release \(opcode.since)")
                }
                guard !reasons.isEmpty else { return nil }
                answer.when = "Where \(reasons.joined(separator: ", or "))."
            default: break
            }
            return answer
        }
    }

    private static let lost = "The connection ended before an answer came."

    /// Returns the first connection state in which an opcode is legal; nil if the opcode is legal
    /// from the start.
    private static func state(
        neededBy opcode: OpcodeEntry,
        in specification: Specification
    ) -> String? {
        let first = specification.states.first { opcode.states.contains($0.name) }?.name
        return first == specification.states.first?.name ? nil : first
    }

    private static func answer(_ error: Specification.ErrorCode, _ opcode: OpcodeEntry) -> Answer {
        Answer(what: .error(error.code), when: error.when, advice: advice(on: error))
    }

    /// Returns the advice: what a client should do after an error.
    static func advice(on error: Specification.ErrorCode) -> String {
        if error.errorClass == .hard {
            return "The connection is closed. Connect again; the same bytes will fail again."
        }
        return switch error.retry {
        case .never: "Do not send the same again."
        case .later: "Wait, longer each time, and send the same again."
        case .afterLogin: "SESSION_INIT and LOGIN first, then send it again."
        case .refresh: "Start over: what the request refers to is used up."
        }
    }

    /// Returns the advice for a client that does not know whether the server executed its request.
    private static func afterLoss(_ opcode: OpcodeEntry) -> String {
        switch opcode.idempotency {
        case .safe: "Send it again: it changes nothing."
        case .idempotent: "Send it again: twice is once."
        case .keyed:
            "Send it again with the same key: twice is once. The key is \(opcode.key ?? "")."
        case .unsafe, nil: "It may have been done. Look before sending it again."
        }
    }
}
