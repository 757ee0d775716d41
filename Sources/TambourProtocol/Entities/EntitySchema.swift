/// The types of entities, and the rules of each type.
///
/// The types form a tree. `protocol-spec/entities.yaml` defines them.
package struct EntitySchema: Sendable {
    /// The rule for a change whose base is not the server's current version.
    package enum Policy: Hashable, Sendable {
        /// Compare-and-set. The change is not applied, and the user chooses a version.
        case cas
        /// Last-writer-wins, by `modified`.
        case lww
        /// Applies the fields that only this change has changed. `contested` is the rule for fields
        /// that have changed on both sides.
        case merge(contested: Contest)
        /// A series. Elements are added and never changed. They are deleted only together with
        /// their parent.
        case append

        /// The rule for two concurrent changes.
        package var contest: Contest {
            switch self {
            case .cas, .append: .cas
            case .lww: .lww
            case .merge(let contested): contested
            }
        }
    }

    package enum Contest: Hashable, Sendable {
        case cas
        case lww
    }

    /// The rule for an update of a deleted entity.
    package enum Deletion: Hashable, Sendable {
        /// The update is a conflict. The entity stays deleted, and the user may create it again.
        case deleteWins
        /// The update restores the entity.
        case updateWins
    }

    package enum FieldKind: Hashable, Sendable {
        case bool
        case int
        case double
        case string
        case bytes
        case list
        case map
    }

    package struct Kind: Sendable {
        package var type: EntityType
        /// Nil for the top-level type.
        package var parent: EntityType?
        package var policy: Policy
        package var deletion: Deletion
        package var fields: [String: FieldKind]
        /// The fields of the natural key, which identifies an entity among its parent's live
        /// children. They never change. Empty if there is no natural key.
        package var naturalKey: [String]
        /// The field by which ranges select elements of a series. It is nil for other types.
        package var position: String?
        /// The maximum size of an entity's fields in MessagePack, in bytes.
        package var maxBytes: Int
        /// Whether the deletion of a parent also deletes its children of this type. If false, a
        /// parent with such a child cannot be deleted.
        package var cascades: Bool

        package init(
            type: EntityType,
            parent: EntityType?,
            policy: Policy,
            deletion: Deletion = .deleteWins,
            fields: [String: FieldKind],
            naturalKey: [String] = [],
            position: String? = nil,
            maxBytes: Int = 16_384,
            cascades: Bool = true
        ) {
            self.type = type
            self.parent = parent
            self.policy = policy
            self.deletion = deletion
            self.fields = fields
            self.naturalKey = naturalKey
            self.position = position
            self.maxBytes = maxBytes
            self.cascades = cascades
        }
    }

    /// The maximum number of operations in one `OBJ_PUSH`.
    package let maxOperations: Int
    /// The maximum total size of the fields of all operations, in bytes. It ensures that an
    /// `OBJ_PUSH` fits a frame.
    package let maxPushBytes: Int
    private let kinds: [EntityType: Kind]
    private let depths: [EntityType: Int]

    /// - Precondition: Every parent and every key field is declared, and no type is its own
    ///   ancestor.
    package init(_ kinds: [Kind], maxOperations: Int = 200, maxPushBytes: Int = .max) {
        self.maxOperations = maxOperations
        self.maxPushBytes = maxPushBytes
        self.kinds = Dictionary(uniqueKeysWithValues: kinds.map { ($0.type, $0) })
        var depths: [EntityType: Int] = [:]
        for kind in kinds {
            precondition(
                kind.naturalKey.allSatisfy { kind.fields[$0] != nil },
                "a natural key is made of declared fields"
            )
            var depth = 0
            var ancestor = kind.parent
            while let type = ancestor {
                guard let parent = self.kinds[type] else {
                    preconditionFailure("the parent type \(type.rawValue) is not declared")
                }
                depth += 1
                precondition(depth < kinds.count, "\(type.rawValue) is its own ancestor")
                ancestor = parent.parent
            }
            depths[kind.type] = depth
        }
        self.depths = depths
    }

    package subscript(type: EntityType) -> Kind? { kinds[type] }

    package var types: [EntityType] { Array(kinds.keys) }

    /// Whether entities of a type can have children.
    package func isParent(_ type: EntityType) -> Bool {
        kinds.values.contains { $0.parent == type }
    }

    /// Returns the child types of a type, in the order of their names.
    package func kinds(below type: EntityType) -> [Kind] {
        kinds.values.filter { $0.parent == type }
            .sorted { $0.type.rawValue < $1.type.rawValue }
    }

    /// The types whose `cascades` is false. A live entity of such a type prevents the deletion of
    /// its parent.
    package var remaining: [EntityType] { kinds.values.filter { !$0.cascades }.map(\.type) }

    /// Returns the number of ancestors of a type; 0 for unknown types.
    package func depth(of type: EntityType) -> Int { depths[type, default: 0] }
}

extension EntitySchema.Kind {
    /// Returns the first reason why these fields cannot be set; nil if they can be set. Checks each
    /// field separately. `null` is valid for every known field.
    package func flaw(in fields: [String: FieldValue]) -> EntityRefusal? {
        for (name, value) in fields.sorted(by: { $0.key < $1.key }) {
            guard let kind = self.fields[name] else {
                return EntityRefusal(.unknownField, at: "/fields/\(name)")
            }
            guard kind.allows(value) else {
                return EntityRefusal(.wrongFieldKind, at: "/fields/\(name)")
            }
            guard value.isModest else { return EntityRefusal(.tooLarge, at: "/fields/\(name)") }
        }
        return nil
    }

    /// Returns a refusal if all fields of an entity together exceed `maxBytes`, and nil otherwise.
    package func flaw(inWhole fields: [String: FieldValue]) -> EntityRefusal? {
        guard FieldValue.encodedSize(of: fields) <= maxBytes else {
            return EntityRefusal(.tooLarge, at: "/fields")
        }
        return nil
    }

    /// Returns the reason why `patch` cannot be applied to `fields`: an invalid value, or a changed
    /// natural key. Returns nil if it can be applied.
    package func flaw(
        in patch: [String: FieldValue],
        on fields: [String: FieldValue]
    ) -> EntityRefusal? {
        if let flaw = flaw(in: patch) { return flaw }
        for name in naturalKey {
            if let value = patch[name], value != fields[name, default: .null] {
                return EntityRefusal(.keyIsFixed, at: "/fields/\(name)")
            }
        }
        return nil
    }
}

extension EntitySchema.FieldKind {
    fileprivate func allows(_ value: FieldValue) -> Bool {
        switch (self, value) {
        case (_, .null), (.bool, .bool), (.int, .int), (.double, .double), (.string, .string),
            (.bytes, .bytes), (.list, .list), (.map, .map):
            true
        default: false
        }
    }
}
