package import TambourEvents

/// Delivers login codes to phones and e-mail addresses.
package struct LoginCodeSource: Sendable {
    /// The digits of every code; nil for random digits. Fixed digits are allowed only with loopback
    /// listeners.
    package var fixedDigits: String?
    /// Returns whether another code can be queued for delivery. If not, the server refuses requests
    /// for codes.
    package var hasRoom: @Sendable () -> Bool
    /// Ends all deliveries within seconds, then calls `body` once. After that call, no code is
    /// delivered.
    package var stop: @Sendable (_ body: @escaping @Sendable () -> Void) -> Void
    /// Delivers a code. May block, because the caller runs it on a separate queue.
    package var deliver: @Sendable (_ recipient: CodeRecipient, _ code: String) -> Void
    /// Returns how often the program that delivers codes has run, by outcome. Returns an empty
    /// dictionary if no program is configured.
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
    /// The program failed and will run again later.
    case failed
    /// The program failed in its last attempt, or the server stopped. Nobody gets the code.
    case dropped
}

extension CodeRecipient {
    /// The phone number with a leading plus, or the e-mail address. The text is one line without
    /// blanks.
    package var address: String {
        switch self {
        case .phone(let phone): PhoneNumber.format(phone)
        case .email(let address): address
        }
    }
}
