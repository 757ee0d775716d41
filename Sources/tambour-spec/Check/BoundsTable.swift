/// The computed bounds of every payload, object and stored value, largest first.
struct BoundsTable {
    struct Row: Equatable {
        enum Kind: String, CaseIterable {
            case request, reply, push, object, stored
        }

        var kind: Kind
        /// The opcode or the type.
        var name: String
        /// The maximum number of bytes of the payload on the wire, or of the object within a
        /// payload; nil if unbounded.
        var bytes: Int?
        /// The maximum number of bytes after decompression.
        var inflated: Int?
        /// The maximum nesting of lists and maps.
        var depth: Int
        /// The maximum number of bytes if each page has only one item; nil if there are no pages.
        var besidePages: Int?
    }

    let rows: [Row]

    init(_ specification: Specification) {
        var bounds = Bounds(specification)
        var rows: [Row] = []
        for opcode in specification.families.flatMap(\.opcodes) {
            if let request = opcode.request {
                // The frame limit is lower before login.
                let isForStrangers = opcode.states.allSatisfy { $0 != "loggedIn" }
                let frame = bounds.limit(
                    isForStrangers ? "maxFrameBytesBeforeLogin" : "maxFrameBytes"
                )
                let extent = bounds.extent(of: request)
                rows.append(
                    Row(
                        kind: .request,
                        name: opcode.name,
                        bytes: extent.capped(at: frame).bytes,
                        inflated: extent.capped(at: bounds.limit("maxInflatedBytes")).bytes,
                        depth: extent.depth
                    )
                )
            }
            for (kind, type) in [(Row.Kind.reply, opcode.reply), (.push, opcode.push)] {
                guard let type else { continue }
                rows.append(Self.row(kind, opcode.name, type, &bounds))
            }
        }
        for type in specification.structs {
            let extent = bounds.extent(of: type)
            let bytes = extent.failure == nil ? extent.bytes : nil
            rows.append(
                Row(
                    kind: type.role == .payload ? .reply : .object,
                    name: type.name,
                    bytes: bytes,
                    inflated: bytes,
                    depth: extent.depth
                )
            )
        }
        for entity in specification.entities {
            let bytes = bounds.limit(entity.limitBytes)
            rows.append(
                Row(
                    kind: .stored,
                    name: entity.documented.name,
                    bytes: bytes,
                    inflated: bytes,
                    depth: 1 + (bounds.limit("maxAnyDepth") ?? 0)
                )
            )
        }
        self.rows = rows.sorted { first, second in
            let bytes = [first, second].map { $0.inflated ?? .max }
            if bytes[0] != bytes[1] { return bytes[0] > bytes[1] }
            return (first.name, first.kind.rawValue) < (second.name, second.kind.rawValue)
        }
    }

    private static func row(
        _ kind: Row.Kind,
        _ name: String,
        _ type: StructType,
        _ bounds: inout Bounds
    ) -> Row {
        let whole = bounds.extent(of: type)
        let rest = bounds.extent(of: type, oneItem: true)
        let hasPages = rest.bytes < whole.bytes
        // A page may fill the rest of a reply.
        let most = hasPages ? max(rest.bytes, bounds.limit("maxReplyBytes") ?? 0) : whole.bytes
        let bytes = rest.failure == nil ? most : nil
        return Row(
            kind: kind,
            name: name,
            bytes: bytes,
            inflated: bytes,
            depth: whole.depth,
            besidePages: hasPages ? rest.bytes : nil
        )
    }
}
