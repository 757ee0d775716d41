package import TambourEvents

/// Creates login codes and delivers them to the person who asked.
package struct LoginCodeSource: Sendable {
    /// The same digits for everybody; nil for fresh random ones. Only for loopback listeners.
    package var fixedDigits: String?
    /// Whether another code can be accepted; otherwise requests for codes are refused.
    package var hasRoom: @Sendable () -> Bool
    /// Ends all deliveries within seconds, then calls `body` once; nothing is delivered afterwards.
    package var stop: @Sendable (_ body: @escaping @Sendable () -> Void) -> Void
    /// Hands over a code; called on a queue of its own, which it may block.
    package var deliver: @Sendable (_ recipient: CodeRecipient, _ code: String) -> Void

    package init(
        fixedDigits: String? = nil,
        hasRoom: @escaping @Sendable () -> Bool = { true },
        stop: @escaping @Sendable (_ body: @escaping @Sendable () -> Void) -> Void = { $0() },
        deliver: @escaping @Sendable (_ recipient: CodeRecipient, _ code: String) -> Void
    ) {
        self.fixedDigits = fixedDigits
        self.hasRoom = hasRoom
        self.stop = stop
        self.deliver = deliver
    }
}

extension CodeRecipient {
    /// The phone with its plus, or the e-mail address; on one line and without blanks.
    package var address: String {
        switch self {
        case .phone(let phone): PhoneNumber.format(phone)
        case .email(let address): address
        }
    }
}
