/// The page of computed bounds.
extension TablePages {
    func bounds() -> SitePage {
        let prose = prose("bounds")
        var page = SitePage(
            prose.page,
            title: "Bounds",
            description: "How large and how deep every payload and object can be.",
            boost: 3
        )
        let lead = prose.html(
            "The largest payload of each packet and the largest form of each object, computed from types and "
                + "`limits.yaml`, with every optional field and for every set of capabilities. The largest "
                + "come first. A reply with pages holds at most `maxReplyBytes`: the server cuts the pages, and "
                + "an item that fills a page alone is still sent. The check of the specification refuses a "
                + "reply or push above `maxReplyBytes`, and nesting below which `maxDepth` ends."
        )
        page.html("<p class=\"lead\">\(lead)</p>")
        var table = HTMLTable(
            "bounds",
            ["What", "Kind", "Bytes", "Inflated", "Beside pages, with one item", "Levels"]
        )
        for row in BoundsTable(specification).rows {
            table.row([
                row.kind == .stored ? HTML.code(row.name) : prose.code(row.name),
                row.kind.rawValue,
                row.bytes.map(\.separated) ?? "no bound",
                row.inflated.map(\.separated) ?? "no bound",
                row.besidePages.map(\.separated) ?? "",
                "\(row.depth)",
            ])
        }
        page.html(table.html)
        return page
    }
}
