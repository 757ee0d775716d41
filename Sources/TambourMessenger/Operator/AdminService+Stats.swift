import TambourProtocol
import TambourSQL
import TambourStore

extension AdminService {
    /// Prints the rows, bytes and growth of each table, and then the size of a message. Stores the
    /// sizes under today's date.
    ///
    /// - Parameter days: the period of the growth. The current sizes are compared with the newest
    ///   stored sizes that are at least this many days old. If none are that old, they are compared
    ///   with the oldest stored sizes.
    func stats(since days: Int, _ output: (String) throws -> Void) throws {
        guard days > 0 else { throw Failure(description: "since: a day or more") }
        let today = backend.environment.wallMs() / Self.dayMs
        let (sizes, kept, messages) = try backend.readApart { store in
            try store.read {
                (
                    try $0.tableSizes(), try $0.keptSizes(upTo: today - Int64(days)),
                    try $0.messageCount()
                )
            }
        }
        // Do not compare with sizes of the same day.
        let before = kept.flatMap { $0.day < today ? $0 : nil }
        try table(of: sizes, before, output)
        try perMessage(sizes, messages, output)
        try backend.write { tx in try tx.keep(sizes, of: today) }
    }

    private func table(
        of sizes: [TableSize],
        _ before: (day: Int64, sizes: [TableSize])?,
        _ output: (String) throws -> Void
    ) throws {
        var rows = [["table", "rows", "bytes"]]
        if let before {
            rows[0] += ["rows since \(AdminText.day(before.day))", "bytes since then"]
        }
        let sum = TableSize(
            table: "all",
            rows: sizes.reduce(0) { $0 + $1.rows },
            bytes: sizes.reduce(0) { $0 + ($1.bytes ?? 0) }
        )
        let sumBefore = before.map { kept in
            TableSize(
                table: "all",
                rows: kept.sizes.reduce(0) { $0 + $1.rows },
                bytes: kept.sizes.reduce(0) { $0 + ($1.bytes ?? 0) }
            )
        }
        for size in sizes + [sum] {
            var row = [size.table, "\(size.rows)", size.bytes.map { "\($0)" } ?? "-"]
            if let before {
                let old =
                    size.table == sum.table
                    ? sumBefore : before.sizes.first { $0.table == size.table }
                row.append(Self.growth(size.rows, old?.rows ?? 0))
                row.append(Self.growth(size.bytes ?? 0, old?.bytes ?? 0))
            }
            rows.append(row)
        }
        for line in Self.columns(rows) { try output(line) }
    }

    private static func growth(_ now: Int64, _ before: Int64) -> String {
        now < before ? "\(now - before)" : "+\(now - before)"
    }

    /// Aligns the first column left and the other columns right.
    private static func columns(_ rows: [[String]]) -> [String] {
        let widths = rows[0].indices.map { column in rows.map { $0[column].count }.max() ?? 0 }
        return rows.map { row in
            row.enumerated().map { column, text in
                let space = String(repeating: " ", count: widths[column] - text.count)
                return column == 0 ? text + space : space + text
            }.joined(separator: "  ")
        }
    }

    /// Prints three averages of the disk space of a message. The first is the row with all indexes
    /// of its table. The second adds the search index. The third is the whole store, divided by the
    /// number of messages.
    private func perMessage(
        _ sizes: [TableSize],
        _ messages: Int64,
        _ output: (String) throws -> Void
    ) throws {
        func bytes(_ tables: String...) -> Int64 {
            sizes.reduce(0) { tables.contains($1.table) ? $0 + ($1.bytes ?? 0) : $0 }
        }
        guard messages > 0 else { return try output("no message") }
        let rows = bytes("message") / messages
        let found = bytes("message", "search_part", "search_word") / messages
        let all = sizes.reduce(0) { $0 + ($1.bytes ?? 0) } / messages
        try output(
            "\(messages) messages: \(rows) bytes each, \(found) with the index of words, "
                + "\(all) with everything"
        )
    }

    /// Rewrites the store. Afterwards the file no longer contains deleted data.
    func vacuum(_ output: (String) throws -> Void) throws {
        do {
            let (before, after) = try backend.vacuum()
            try output("\(AdminText.bytes(before)) before, \(AdminText.bytes(after)) now")
        } catch let error as SQLError where error.kind == .busy {
            throw Failure(
                description: "somebody reads an old snapshot, as a backup does, and needs what was"
                    + " deleted: try again when that is done"
            )
        }
    }

    /// Prints the commit time of the last commit, in Unix milliseconds. Every acknowledged change
    /// has this commit time or an earlier one.
    func clock(_ output: (String) throws -> Void) throws {
        let clock = Box<Int64>(0)
        try backend.write { tx in clock.value = try tx.reader.lastCommit() }
        try output("\(clock.value)")
    }
}
