/// The reason why the rest of a stream cannot be split into frames. The session sends an error
/// reply if it can, and closes the connection.
package enum FrameError: Error, Hashable, Sendable {
    /// A version other than 10 and 11.
    case version(UInt8)
    /// A command above 3.
    case command(UInt8)
    /// A payload above the peer's current limit.
    case tooLong(length: Int, limit: Int)
}

extension FrameError: CustomStringConvertible {
    /// One line for people, in English.
    package var description: String {
        switch self {
        case .version(let version): "protocol version \(version), expected 10 or 11"
        case .command(let command): "command \(command), expected 0 to 3"
        case .tooLong(let length, let limit): "a payload of \(length) bytes, limit \(limit)"
        }
    }
}
