/// Who can answer what: everything that may come back for a request, and what a client does about it.
struct AnswerSet {
    struct Answer: Equatable {
        enum What: Equatable {
            case reply
            case error(String)
            /// The connection ended first.
            case nothing
        }

        var what: What
        var when: String
        var advice: String
    }

    /// The reply, and the errors that the opcode names itself.
    let own: [Answer]
    /// The errors that any request may get and this one can.
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

    /// The first state in which an opcode is legal; nil when it always is.
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

    /// What a client does about an error.
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

    /// What a client does when it does not know whether its request was served.
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
