/// Examples of one opcode: one file under `examples/`.
struct ExampleFile: Sendable {
    var opcode: String
    var examples: [Example]
    var origin: Origin
}

/// A packet as a value and as bytes, with other encodings that must be accepted and some that must
/// be refused.
struct Example: Sendable {
    enum Role: String, Sendable { case request, reply, error, push }

    /// Another legal encoding of the same value.
    struct Accept: Sendable {
        var name: String
        var wire: WireNode?
        var hex: String?
        var hexLine: Int
        var origin: Origin
    }

    /// An encoding that must be refused, with the text of the refusal.
    struct Reject: Sendable {
        var name: String
        var wire: WireNode?
        var hex: String?
        var hexLine: Int
        /// Overridden limits, so that short bytes can exceed one.
        var limits: [String: Int]
        var error: String
        var origin: Origin
    }

    var name: String
    var role: Role
    /// The dialect in which the server writes the packet.
    var dialect: String?
    var sequence: Int
    var value: WireNode?
    /// The value before the dialect changes it; nil if the dialect changes nothing.
    var plain: WireNode?
    /// The whole packet; `auto` is filled in once by the tool.
    var hex: String?
    var hexLine: Int
    var accepts: [Accept]
    var rejects: [Reject]
    var origin: Origin

    /// The second byte of the header.
    var command: UInt8 {
        switch role {
        case .request, .push: 0
        case .reply: 1
        case .error: 3
        }
    }
}
