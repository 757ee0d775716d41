package import TambourProtocol

extension Chat {
    /// The size of an empty chat on the wire, in bytes.
    package static let bareSize = 400

    /// An upper estimate of the chat's size on the wire, in bytes.
    package var wireSizeEstimate: Int {
        Self.bareSize + participants.count * 32 + (title?.bytes.count ?? 0)
            + (lastMessage?.wireSizeEstimate ?? 0) + (pinnedMessage?.wireSizeEstimate ?? 0)
            + (description?.bytes.count ?? 0) + (admins?.count ?? 0) * 64
            + (reactions?.bytes.count ?? 0)
    }
}

extension RoleTable.Options {
    /// The options that are set, by name, as the wire shows them.
    package var onWire: NameMap<Bool> {
        NameMap(Self.named.filter { contains($0.value) }.map { (Text($0.name), true) })
    }
}

extension RoleTable.Permissions {
    /// The rights of an owner on the wire. Recorded traffic of the service contains the same value.
    package static let ofOwner = Self(rawValue: 2047)
    /// The rights of a new administrator if the request names no rights. They contain all rights
    /// except the right to appoint administrators.
    package static let ofNewAdmin: Self = [.members, .info, .pin, .post, .edit, .delete]
}

extension WireMap where Key == UserID, Value == AnyValue {
    /// Returns a map with the rights of each administrator. The owner gets all rights.
    package static func admins(
        _ admins: [Admin],
        owner: UserID
    ) -> Self {
        let all = [(id: owner, permissions: RoleTable.Permissions.ofOwner)] + admins
        return Self(
            all.map { admin in
                let fields: [(Text, Int64)] = [
                    ("id", admin.id.rawValue), ("permissions", admin.permissions.rawValue),
                ]
                return (admin.id, AnyValue(NameMap(fields)))
            }
        )
    }
}
