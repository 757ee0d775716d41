import TambourProtocol

/// The schemas for the tests. They cover every combination of three policies: for notes, for
/// profiles and for deletions. The policy of preferences varies too, and so does whether
/// preferences are deleted with their profile.
enum Schemas {
    struct Pair: Sendable {
        var title: String
        /// The schema of the devices. It allows longer texts than the server's schema, as the
        /// schema of an older app may.
        var client: EntitySchema
        var server: EntitySchema
    }

    static let policies: [EntitySchema.Policy] = [
        .cas, .lww, .merge(contested: .cas), .merge(contested: .lww),
    ]

    static let all: [Pair] = {
        var pairs: [Pair] = []
        for (index, note) in policies.enumerated() {
            for profile in policies {
                for deletion in [EntitySchema.Deletion.deleteWins, .updateWins] {
                    let preference = policies[(index + pairs.count) % policies.count]
                    let cascades = pairs.count % 4 != 3
                    let make = { maxBytes in
                        tree(
                            profile: profile,
                            note: note,
                            preference: preference,
                            deletion: deletion,
                            preferenceCascades: cascades,
                            maxBytes: maxBytes
                        )
                    }
                    pairs.append(
                        Pair(
                            title: "note \(note), profile \(profile), preference \(preference), "
                                + "\(deletion), preferences \(cascades ? "go" : "stay")",
                            client: make(4_000),
                            server: make(120)
                        )
                    )
                }
            }
        }
        return pairs
    }()

    /// account > profile > {note, preference, measurement}
    static func tree(
        account: EntitySchema.Policy = .lww,
        profile: EntitySchema.Policy = .merge(contested: .cas),
        note: EntitySchema.Policy = .cas,
        preference: EntitySchema.Policy = .lww,
        deletion: EntitySchema.Deletion = .deleteWins,
        preferenceCascades: Bool = true,
        maxBytes: Int = 4_000,
        maxOperations: Int = 200
    ) -> EntitySchema {
        EntitySchema(
            [
                .init(
                    type: .account,
                    parent: nil,
                    policy: account,
                    deletion: deletion,
                    fields: ["name": .string]
                ),
                .init(
                    type: .profile,
                    parent: .account,
                    policy: profile,
                    deletion: deletion,
                    fields: ["name": .string, "colour": .string],
                    maxBytes: maxBytes
                ),
                .init(
                    type: .note,
                    parent: .profile,
                    policy: note,
                    deletion: deletion,
                    fields: ["title": .string, "body": .string],
                    maxBytes: maxBytes
                ),
                .init(
                    type: .preference,
                    parent: .profile,
                    policy: preference,
                    deletion: deletion,
                    fields: ["key": .string, "value": .string],
                    naturalKey: ["key"],
                    maxBytes: maxBytes,
                    cascades: preferenceCascades
                ),
                .init(
                    type: .measurement,
                    parent: .profile,
                    policy: .append,
                    fields: ["at": .int]
                ),
            ],
            maxOperations: maxOperations
        )
    }
}
