/// Identifies an entity by a number from the server. Before the server has assigned a number, a
/// number from the device identifies the entity.
///
/// On the wire a server id is an integer, and a local id is a text such as `"#l7"`. A local id is
/// valid only within one `OBJ_PUSH` request of one device, like the creation ids of JMAP (RFC 8620,
/// 5.3).
public enum EntityID: Hashable, Sendable {
    case server(Int64)
    case local(Int64)
}

extension EntityID {
    package var isLocal: Bool {
        if case .local = self { true } else { false }
    }
}

/// Orders ids by age. Server ids come before local ids.
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

    /// Parses the format of `description`.
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
