import TambourProtocol
import Testing

/// The schema defines the fields of a type and the types of its ancestors.
@Suite("Entity schema")
struct EntitySchemaTests {
    private let preference = EntitySchema.Kind(
        type: EntityType("preference"),
        parent: EntityType("account"),
        policy: .lww,
        fields: [
            "key": .string, "value": .bytes, "on": .bool, "count": .int, "share": .double,
            "list": .list, "map": .map,
        ],
        naturalKey: ["key"],
        maxBytes: 12
    )

    @Test("accepts declared fields with values of their kind, and null for each of them")
    func accepts() {
        let fields: [String: FieldValue] = [
            "key": .string(""), "value": .bytes([]), "on": .bool(true), "count": .int(1),
            "share": .double(1), "list": .list([]), "map": .map([:]),
        ]
        #expect(preference.flaw(in: fields) == nil)
        #expect(preference.flaw(in: fields.mapValues { _ in .null }) == nil)
        for name in fields.keys {
            let wrong = FieldValue.int(1) == fields[name] ? FieldValue.double(1) : .int(1)
            #expect(
                preference.flaw(in: [name: wrong])
                    == EntityRefusal(.wrongFieldKind, at: "/fields/\(name)")
            )
        }
        #expect(
            preference.flaw(in: ["colour": .null])
                == EntityRefusal(.unknownField, at: "/fields/colour")
        )
    }

    @Test("bounds the size of all fields together")
    func boundsSize() {
        #expect(preference.flaw(inWhole: ["key": .string("sixsix")]) == nil)
        #expect(
            preference.flaw(inWhole: ["key": .string("seven77")])
                == EntityRefusal(.tooLarge, at: "/fields")
        )
    }

    @Test("keeps the natural key as it is")
    func keepsKey() {
        let fields: [String: FieldValue] = ["key": .string("a")]
        #expect(preference.flaw(in: ["key": .string("a"), "count": .int(1)], on: fields) == nil)
        for value in [FieldValue.string("b"), .null] {
            #expect(
                preference.flaw(in: ["key": value], on: fields)
                    == EntityRefusal(.keyIsFixed, at: "/fields/key")
            )
        }
    }

    @Test("knows how deep a type stands")
    func knowsDepth() {
        let schema = EntitySchema([
            preference,
            .init(type: EntityType("account"), parent: nil, policy: .cas, fields: [:]),
        ])
        #expect(schema.depth(of: EntityType("account")) == 0)
        #expect(schema.depth(of: EntityType("preference")) == 1)
        #expect(schema[EntityType("note")] == nil)
    }

    @Test("ids are read as they are written")
    func ids() {
        for id in [EntityID.server(42), .server(-1), .local(7)] {
            #expect(EntityID(id.description) == id)
        }
        #expect(EntityID.local(7).description == "#l7")
        for text in ["", "#l", "#x7", "l7", "7a"] { #expect(EntityID(text) == nil) }
    }
}
