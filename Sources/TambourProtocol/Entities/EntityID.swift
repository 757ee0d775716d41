/// Names an entity: by the number the server gave it or, until then, by the device's own.
///
/// On the wire a server id is an integer and a local one the text `"#l7"`. A local id means
/// something inside one device and inside one `OBJ_PUSH` of it, as the creation ids of JMAP do (RFC
/// 8620, 5.3).
public enum EntityID: Hashable, Sendable {
    case server(Int64)
    case local(Int64)
}

extension EntityID {
    package var isLocal: Bool {
        if case .local = self { true } else { false }
    }
}

/// By age, those of the server first.
extension EntityID: Comparable {
    public static func < (lhs: EntityID, rhs: EntityID) -> Bool {
        switch (lhs, rhs) {
        case (.server(let left), .server(let right)), (.local(let left), .local(let right)):
            left < right
        case (.server, .local): true
        case (.local, .server): false
        }
    }
}

extension EntityID: CustomStringConvertible {
    public var description: String {
        switch self {
        case .server(let number): "\(number)"
        case .local(let number): "#l\(number)"
        }
    }

    /// Reads what `description` writes.
    public init?(_ description: String) {
        if description.hasPrefix("#l"), let number = Int64(description.dropFirst(2)) {
            self = .local(number)
        } else if let number = Int64(description) {
            self = .server(number)
        } else {
            return nil
        }
    }
}
