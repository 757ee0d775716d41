package import TambourEvents

/// Creates login codes and delivers them to the phone or e-mail address.
package struct LoginCodeSource: Sendable {
    /// The same digits for everybody, allowed only on loopback listeners; nil for random digits.
    package var fixedDigits: String?
    /// Returns whether another code can be queued for delivery. If not, requests for codes are
    /// refused.
    package var hasRoom: @Sendable () -> Bool
    /// Ends all deliveries within seconds, then calls `body` once. No code is delivered afterwards.
    package var stop: @Sendable (_ body: @escaping @Sendable () -> Void) -> Void
    /// Delivers a code. The caller runs it on a separate queue, which it may block.
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
