/// The rules for types, fields and entities.
extension CompatibilityRule {
    // MARK: Types

    static let types = [
        CompatibilityRule(
            "enum-removed",
            .enumeration,
            .removed,
            "fields of clients have this type"
        ),
        CompatibilityRule(
            "enum-closed",
            .enumeration,
            .changed(.open),
            "what clients send beside the listed values was let through, and would be refused",
            where: { $0.becomes(.open) == "false" }
        ),
        CompatibilityRule(
            "enum-opened",
            .enumeration,
            .changed(.open),
            "clients of today refuse values they do not know",
            where: { $0.becomes(.open) == "true" && $0.isReceived }
        ),
        CompatibilityRule(
            "value-removed",
            .value,
            .removed,
            "clients send it or look for it; stop writing it and say so in its text"
        ),
        CompatibilityRule(
            "value-added-to-closed",
            .value,
            .added,
            "clients of today refuse values they do not know; send it in a new field that needs a capability",
            where: { added in
                guard let type = added.new?.owner.flatMap({ added.before[$0] }) else {
                    return false
                }
                return type[.open] == "false" && type.flow.contains(.toClient)
            }
        ),
        CompatibilityRule(
            "value-capability",
            .value,
            .changed(.capability),
            "clients of today get it, or something else, by what they named so far"
        ),
        CompatibilityRule(
            "value-fallback",
            .value,
            .changed(.fallback),
            "clients that cannot read it know the old one in its place"
        ),
        CompatibilityRule(
            "struct-removed",
            .object,
            .removed,
            "fields of clients have this type"
        ),
    ]

    // MARK: Fields

    static let fields = [
        CompatibilityRule(
            "field-removed-from-server",
            .field,
            .removed,
            "clients send it, and what they mean by it would be skipped; deprecate it first",
            where: { $0.isSent && !$0.isPastSunset }
        ),
        CompatibilityRule(
            "field-removed-from-clients",
            .field,
            .removed,
            "clients read it; deprecate it first",
            where: { $0.isReceived && !$0.isPastSunset }
        ),
        CompatibilityRule(
            "field-added-required",
            .field,
            .added,
            "the other side may be older and not send it; make it optional or give it a default",
            where: { $0.becomes(.presence) == "required" }
        ),
        CompatibilityRule(
            "field-type-from-clients",
            .field,
            .changed(.type),
            "what clients send as the old type would be refused or read as something else",
            where: { $0.isSent && !$0.typeIsReadAlike(.toServer) }
        ),
        CompatibilityRule(
            "field-type-to-clients",
            .field,
            .changed(.type),
            "clients of today read the old type",
            where: { $0.isReceived && !$0.typeIsReadAlike(.toClient) }
        ),
        CompatibilityRule(
            "field-made-required",
            .field,
            .changed(.presence),
            "the other side may be older and leave it out",
            where: { $0.becomes(.presence) == "required" }
        ),
        CompatibilityRule(
            "field-no-longer-sure",
            .field,
            .changed(.presence),
            "clients count on its being there",
            where: { $0.becomes(.presence) == "optional" && $0.isReceived }
        ),
        CompatibilityRule(
            "field-default",
            .field,
            .changed(.default),
            "to an older side its absence means what it meant",
            // A field that was required was never absent, so its default had no effect.
            where: { $0.was(.presence) != "required" }
        ),
        CompatibilityRule(
            "field-limit",
            .field,
            .changed(.limit),
            "clients of today send more",
            where: { $0.isSent && $0.narrows(.limit) }
        ),
        CompatibilityRule(
            "field-limit-bytes",
            .field,
            .changed(.limitBytes),
            "clients of today send more",
            where: { $0.isSent && $0.narrows(.limitBytes) }
        ),
        CompatibilityRule(
            "field-limit-items",
            .field,
            .changed(.limitItems),
            "clients of today send more",
            where: { $0.isSent && $0.narrows(.limitItems) }
        ),
        CompatibilityRule(
            "field-duplicates",
            .field,
            .changed(.duplicates),
            "clients of today may name a thing twice",
            where: { $0.isSent && $0.becomes(.duplicates) == "refused" }
        ),
        CompatibilityRule(
            "field-checked-by",
            .field,
            .changed(.checkedBy),
            "clients of today send values that are then refused",
            where: {
                $0.isSent && ($0.becomes(.checkedBy) == nil || $0.was(.checkedBy) == "skipped")
            }
        ),
        CompatibilityRule(
            "field-sunset",
            .field,
            .changed(.sunset),
            "clients were told that they have until then",
            where: { $0.falls(.sunset) }
        ),
        CompatibilityRule(
            "field-capability",
            .field,
            .changed(.capability),
            "clients of today get it, or go without it, by what they named so far; a new meaning is a new field"
        ),
        CompatibilityRule(
            "field-form",
            .field,
            .changed(.form),
            "clients that speak the dialect read it as it is",
            where: \.changesKnownForm
        ),
    ]

    // MARK: Entities

    static let entities = [
        CompatibilityRule(
            "entity-removed",
            .entity,
            .removed,
            "devices hold such entities, and changes of them that they made offline"
        ),
        CompatibilityRule(
            "entity-rules-changed",
            .entity,
            .changed(.text),
            "devices of today decide by it what a change becomes before the server hears of it"
        ),
        CompatibilityRule(
            "entity-field-removed",
            .entityField,
            .removed,
            "devices hold values of it"
        ),
        CompatibilityRule(
            "entity-field-type",
            .entityField,
            .changed(.type),
            "devices hold values of it"
        ),
    ]
}
