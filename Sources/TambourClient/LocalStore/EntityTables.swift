import Foundation
import GRDB
import TambourProtocol

/// The rows of entities.
extension StoreTransaction {
    /// Writes the changed rows that a call of `LocalEntities` returned.
    func apply(_ changed: [EntityRowChange]) throws {
        if !changed.isEmpty { changes.entities = true }
        for change in changed {
            switch change {
            case .putEntity(let row):
                try execute(
                    "INSERT OR REPLACE INTO entity VALUES (?, ?, ?, ?, ?)",
                    [
                        "\(row.id)", row.type.rawValue, row.parent.map { "\($0)" }, row.uiKey,
                        row.server.map { $0.storedValue.storedData },
                    ]
                )
            case .removeEntity(let id):
                try execute("DELETE FROM entity WHERE id = ?", ["\(id)"])
            case .putUpdate(let update):
                try execute(
                    "INSERT OR REPLACE INTO entity_update VALUES (?, ?, ?, ?, ?)",
                    [
                        "\(update.id)", update.slot.storedText, update.sequence,
                        update.change.storedValue.storedData, update.state.storedValue.storedData,
                    ]
                )
            case .removeUpdate(let id, let slot):
                try execute(
                    "DELETE FROM entity_update WHERE id = ? AND slot = ?",
                    ["\(id)", slot.storedText]
                )
            case .putAlias(let alias):
                try execute(
                    "INSERT OR REPLACE INTO entity_alias VALUES (?, ?, ?)",
                    ["\(alias.local)", "\(alias.server)", alias.since]
                )
            case .removeAlias(let id):
                try execute("DELETE FROM entity_alias WHERE local = ?", ["\(id)"])
            case .putCounters(let counters):
                try set(.entityCounters, counters.storedValue.storedData)
            }
        }
    }

    /// Loads all rows for a new `LocalEntities`.
    ///
    /// - Parameter random: generates the first operation id of a new installation.
    func entityRows(random: () -> UInt64) throws -> EntityRows {
        let counters: Data? = try value(of: .entityCounters)
        var rows = EntityRows(
            counters: try counters.map { try EntityCounters(.stored($0)) }
                ?? EntityCounters(firstOpID: Int64(random() >> 2))
        )
        rows.entities = try self.rows("SELECT * FROM entity").map { row in
            let server: Data? = row["server"]
            return EntityRow(
                id: try EntityID(stored: row["id"]),
                type: EntityType(row["type"]),
                parent: try (row["parent"] as String?).map { try EntityID(stored: $0) },
                uiKey: row["uiKey"],
                server: try server.map { try Entity(.stored($0)) }
            )
        }
        rows.updates = try self.rows("SELECT * FROM entity_update").map { row in
            LocalUpdate(
                id: try EntityID(stored: row["id"]),
                change: try EntityChange(.stored(row["change"])),
                state: try LocalUpdate.State(.stored(row["state"])),
                sequence: row["sequence"]
            )
        }
        rows.aliases = try self.rows("SELECT * FROM entity_alias").map { row in
            EntityAlias(
                local: try EntityID(stored: row["local"]),
                server: try EntityID(stored: row["server"]),
                since: row["sinceHere"]
            )
        }
        return rows
    }
}

// MARK: - Values in columns

/// The content of a column is corrupt.
private struct Damaged: Error {}

extension FieldValue {
    fileprivate var storedData: Data {
        var writer = MessagePackWriter()
        write(to: &writer)
        return Data(writer.finish())
    }

    fileprivate static func stored(_ data: Data) throws -> FieldValue {
        try MessagePackReader.readStored(Bytes([UInt8](data))) { (reader) throws(PayloadError) in
            try FieldValue.read(from: &reader)
        }
    }

    /// Creates a map without the nil values.
    fileprivate static func some(_ values: [String: FieldValue?]) -> FieldValue {
        .map(values.compactMapValues(\.self))
    }

    fileprivate subscript(name: String) -> FieldValue? {
        if case .map(let values) = self { values[name] } else { nil }
    }

    fileprivate func int(_ name: String) throws -> Int64 {
        guard case .int(let value) = self[name] else { throw Damaged() }
        return value
    }

    fileprivate func string(_ name: String) throws -> String {
        guard case .string(let value) = self[name] else { throw Damaged() }
        return value
    }

    fileprivate func fields(_ name: String) throws -> [String: FieldValue] {
        guard case .map(let values) = self[name] else { throw Damaged() }
        return values
    }
}

extension EntityID {
    fileprivate init(stored text: String) throws {
        guard let id = EntityID(text) else { throw Damaged() }
        self = id
    }
}

extension Entity {
    fileprivate var storedValue: FieldValue {
        .some([
            "id": .string("\(id)"), "type": .string(type.rawValue),
            "parent": parent.map { .string("\($0)") }, "version": .int(version),
            "modified": .int(modified), "createdBy": createdBy.map { .int($0) },
            "isDeleted": isDeleted ? .bool(true) : nil, "fields": .map(fields),
        ])
    }

    fileprivate init(_ value: FieldValue) throws {
        self.init(
            id: try EntityID(stored: value.string("id")),
            type: EntityType(try value.string("type")),
            parent: try value["parent"].map { _ in
                try EntityID(stored: value.string("parent"))
            },
            version: try value.int("version"),
            modified: try value.int("modified"),
            createdBy: try value["createdBy"].map { _ in try value.int("createdBy") },
            isDeleted: value["isDeleted"] == .bool(true),
            fields: try value.fields("fields")
        )
    }
}

extension EntityChange {
    fileprivate var storedValue: FieldValue {
        .some([
            "kind": .int(Int64(kind.rawValue)), "base": base?.storedValue,
            "fields": .map(fields), "modified": .int(modified),
        ])
    }

    fileprivate init(_ value: FieldValue) throws {
        guard let kind = EntityChangeKind(rawValue: Int(clamping: try value.int("kind"))) else {
            throw Damaged()
        }
        self.init(
            kind: kind,
            base: try value["base"].map { try Entity($0) },
            fields: try value.fields("fields"),
            modified: try value.int("modified")
        )
    }
}

extension LocalUpdate.Slot {
    fileprivate var storedText: String {
        switch self {
        case .sent: "sent"
        case .open: "open"
        }
    }
}

extension LocalUpdate.State {
    fileprivate var storedValue: FieldValue {
        switch self {
        case .pending: .some(["is": .string("pending")])
        case .inFlight(let opID, let position):
            .some([
                "is": .string("inFlight"), "opID": .int(opID), "position": .int(Int64(position)),
            ])
        case .conflict(.version): .some(["is": .string("version")])
        case .conflict(.parentDeleted): .some(["is": .string("parentDeleted")])
        case .conflict(.duplicate(let theirs)):
            .some(["is": .string("duplicate"), "theirs": theirs.storedValue])
        case .conflict(.rejected(let refusal)):
            .some([
                "is": .string("rejected"), "error": .string("\(refusal.error.name)"),
                "path": .string(refusal.path),
            ])
        }
    }

    fileprivate init(_ value: FieldValue) throws {
        switch try value.string("is") {
        case "pending": self = .pending
        case "inFlight":
            self = .inFlight(
                opID: try value.int("opID"),
                position: Int(count: try value.int("position"))
            )
        case "version": self = .conflict(.version)
        case "parentDeleted": self = .conflict(.parentDeleted)
        case "duplicate":
            guard let theirs = value["theirs"] else { throw Damaged() }
            self = .conflict(.duplicate(theirs: try Entity(theirs)))
        case "rejected":
            let error = ObjectError(name: Text(try value.string("error")))
            self = .conflict(.rejected(EntityRefusal(error, at: try value.string("path"))))
        default: throw Damaged()
        }
    }
}

extension EntityCounters {
    fileprivate var storedValue: FieldValue {
        .some([
            "localID": .int(nextLocalID), "uiKey": .int(nextUIKey), "opID": .int(nextOpID),
            "sequence": .int(nextSequence),
        ])
    }

    fileprivate init(_ value: FieldValue) throws {
        self.init(firstOpID: try value.int("opID"))
        nextLocalID = try value.int("localID")
        nextUIKey = try value.int("uiKey")
        nextSequence = try value.int("sequence")
    }
}
