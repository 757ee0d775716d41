/// The examples of one opcode, from one file under `examples/`.
struct ExampleFile: Sendable {
    var opcode: String
    var examples: [Example]
    var origin: Origin
}

/// A packet as a value and as bytes. Also contains other encodings: some that readers must accept
/// as the same value, and some that readers must reject.
struct Example: Sendable {
    enum Role: String, Sendable { case request, reply, error, push }

    /// An alternative legal encoding of the same value.
    struct Accept: Sendable {
        var name: String
        var wire: WireNode?
        var hex: String?
        var hexLine: Int
        var origin: Origin
    }

    /// An encoding that readers must reject, with the text of the error.
    struct Reject: Sendable {
        var name: String
        var wire: WireNode?
        var hex: String?
        var hexLine: Int
        /// Smaller values for limits, so that a short encoding can exceed a limit.
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
    /// The value without the dialect's changes; nil if the dialect changes nothing.
    var plain: WireNode?
    /// The whole packet in hex digits, or `auto` until `ExampleFiller` fills it in.
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
