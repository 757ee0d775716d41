/// What the receiver of a packet can inflate.
package enum Compression: Hashable, Sendable {
    /// Nothing: the payload is sent as it is.
    case none
    /// What every known client can: LZ4, at most 99,999 bytes raw, a factor of at most 32.
    ///
    /// One client has a buffer of that size, another tries 32 times the compressed size at most.
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

    /// The highest factor that may be written into `flags`; 255 means zstd.
    var maxFactor: Int { self == .large ? 254 : 32 }

    /// What a client named that it can inflate.
    package init(for capabilities: Capabilities) {
        self = capabilities.contains(.lz4Large) ? .large : .classic
    }
}
