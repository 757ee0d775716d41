package import TambourEvents

/// Delivers login codes to phones and e-mail addresses.
package struct LoginCodeSource: Sendable {
    /// The digits of every code, allowed only with loopback listeners; nil for random digits.
    package var fixedDigits: String?
    /// Returns whether another code can be queued for delivery. If not, requests for codes are
    /// refused.
    package var hasRoom: @Sendable () -> Bool
    /// Ends all deliveries within seconds, then calls `body` once. No code is delivered afterwards.
    package var stop: @Sendable (_ body: @escaping @Sendable () -> Void) -> Void
    /// Delivers a code. The caller runs it on a separate queue, which it may block.
    package var deliver: @Sendable (_ recipient: CodeRecipient, _ code: String) -> Void
    /// Returns how often the program that delivers codes has run, by outcome; empty without a
    /// program.
    package var runs: @Sendable () -> [CodeRunOutcome: Int]

    package init(
        fixedDigits: String? = nil,
        hasRoom: @escaping @Sendable () -> Bool = { true },
        stop: @escaping @Sendable (_ body: @escaping @Sendable () -> Void) -> Void = { $0() },
        deliver: @escaping @Sendable (_ recipient: CodeRecipient, _ code: String) -> Void,
        runs: @escaping @Sendable () -> [CodeRunOutcome: Int] = { [:] }
    ) {
        self.fixedDigits = fixedDigits
        self.hasRoom = hasRoom
        self.stop = stop
        self.deliver = deliver
        self.runs = runs
    }
}

/// The outcome of one run of the program that delivers login codes.
package enum CodeRunOutcome: String, Sendable, CaseIterable {
    /// The program took the code.
    case sent
    /// The program failed and runs again later.
    case failed
    /// The program failed for the last time, or the server stopped: nobody gets the code.
    case dropped
}

extension CodeRecipient {
    /// The phone number with a leading plus, or the e-mail address; on one line and without blanks.
    package var address: String {
        switch self {
        case .phone(let phone): PhoneNumber.format(phone)
        case .email(let address): address
        }
    }
}
