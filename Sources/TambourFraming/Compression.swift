package import TambourProtocol

/// The compression that the receiver of a packet supports. `encodePacket` decides whether to
/// compress a payload.
package enum Compression: Hashable, Sendable {
    /// The payload is sent uncompressed.
    case none
    /// LZ4 with at most 99,999 uncompressed bytes and a factor of at most 32. Every known client
    /// supports it.
    ///
    /// One client has a buffer of 99,999 bytes; another client tries output buffers of at most 32
    /// times the compressed size.
    case classic
    /// LZ4 with a factor of at most 254, for the capability `lz4-large`.
    case large

    /// The size of the longest payload that is compressed, in bytes.
    var maxRawBytes: Int {
        switch self {
        case .none: 0
        case .classic: 99_999
        case .large: .max
        }
    }

    /// The highest factor allowed in `flags`; 255 means zstd.
    var maxFactor: Int { self == .large ? 254 : 32 }

    /// The compression that a client's capabilities allow.
    package init(for capabilities: Capabilities) {
        self = capabilities.contains(.lz4Large) ? .large : .classic
    }
}
