package import TambourProtocol

extension Chat {
    /// The wire size of an empty chat.
    package static let bareSize = 400

    /// An upper estimate of the chat's bytes on the wire.
    package var wireSizeEstimate: Int {
        Self.bareSize + participants.count * 32 + (title?.bytes.count ?? 0)
            + (lastMessage?.wireSizeEstimate ?? 0) + (pinnedMessage?.wireSizeEstimate ?? 0)
            + (description?.bytes.count ?? 0) + (admins?.count ?? 0) * 64
            + (reactions?.bytes.count ?? 0)
    }
}

extension RoleTable.Options {
    /// The names of the options that are set.
    package var onWire: NameMap<Bool> {
        NameMap(Self.named.filter { contains($0.value) }.map { (Text($0.name), true) })
    }
}

extension RoleTable.Permissions {
    /// The rights that the wire shows for an owner, as in captures of the service.
    package static let ofOwner = Self(rawValue: 2047)
    /// The rights of a new administrator if the request names no rights: all except appointing
    /// administrators.
    package static let ofNewAdmin: Self = [.members, .info, .pin, .post, .edit, .delete]
}

extension WireMap where Key == UserID, Value == AnyValue {
    /// Returns the rights of each administrator, and all rights for the owner.
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
