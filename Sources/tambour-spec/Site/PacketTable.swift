/// A table of the bytes of a packet, and the fields that the bytes encode.
struct PacketTable {
    private let anatomy: PacketAnatomy
    private let prose: Prose

    init(_ anatomy: PacketAnatomy, _ prose: Prose) {
        self.anatomy = anatomy
        self.prose = prose
    }

    func html() -> String {
        var rows = ""
        for run in anatomy.runs { rows += row(run) + "\n" }
        return """
            <table class="packet" data-search-exclude>
            <thead><tr><th>At</th><th>Bytes</th><th>Field</th><th>Value</th></tr></thead>
            <tbody>
            \(rows)</tbody>
            </table>
            """
    }

    private func row(_ run: PacketAnatomy.Run) -> String {
        var bytes = ""
        if !run.key.isEmpty { bytes += "<i>\(Self.spaced(run.key))</i> " }
        bytes += "<b>\(Self.spaced(run.bytes))</b>"
        var value = HTML.escaped(run.meaning)
        if run.isUnknown { value += " <span class=\"form\">unknown key, skipped</span>" }
        if !run.encoding.isEmpty { value += " <span class=\"form\">\(run.encoding)</span>" }
        return "<tr class=\"\(run.part)\"><td>\(run.offset)</td><td><code>\(bytes)</code></td>"
            + "<td>\(field(run))</td><td>\(value)</td></tr>"
    }

    private func field(_ run: PacketAnatomy.Run) -> String {
        switch run.part {
        case .header: return HTML.escaped(run.place)
        case .unread: return "unread"
        case .payload:
            let place = HTML.code(run.place.isEmpty ? "/" : run.place)
            return run.field.map { prose.link(place, to: .field($0)) } ?? place
        }
    }

    /// Returns hex digits with a space between bytes.
    static func spaced(_ bytes: some Sequence<UInt8>) -> String {
        bytes.map { Hex.text([$0]) }.joined(separator: " ")
    }
}
