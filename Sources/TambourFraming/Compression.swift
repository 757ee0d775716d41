package import TambourProtocol

/// The compression that the receiver of a packet supports. `encodePacket` decides whether a payload is
/// compressed.
package enum Compression: Hashable, Sendable {
    /// None: the payload is sent uncompressed.
    case none
    /// Supported by every known client: LZ4, at most 99,999 bytes raw, a factor of at most 32.
    ///
    /// One client has a buffer of that size; another tries at most 32 times the compressed size.
    case classic
    /// The capability `lz4-large`: LZ4, a factor of at most 254.
    case large

    /// The longest payload that is compressed, bytes.
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
