/// The page of buckets and request costs.
extension TablePages {
    func costs() -> SitePage {
        let prose = prose("costs")
        var page = SitePage(
            prose.page,
            title: "Costs",
            description: "What each request costs, and which bucket pays for it.",
            boost: 3
        )
        let lead = prose.html(
            "A bucket holds a burst of units and gets some back every minute. A request whose bucket has "
                + "too little left is refused with `too.many.requests` and a `retryAfter`."
        )
        page.html("<p class=\"lead\">\(lead)</p>")
        page.heading("Buckets", anchor: "buckets")
        var buckets = HTMLTable("buckets", ["Bucket", "Whose", "Holds", "A minute", "Pays for"])
        for bucket in specification.buckets {
            buckets.row(
                [
                    HTML.link(HTML.code(bucket.name), to: "#\(bucket.name)"),
                    HTML.escaped(bucket.owner.text),
                    value(of: bucket.burst, prose), value(of: bucket.perMinute, prose),
                    prose.html(bucket.doc),
                ],
                id: bucket.name
            )
        }
        page.html(buckets.html)
        page.heading("Requests", anchor: "requests")
        page.html(
            """
            <p>What one request does at its largest, in any store: the server's tests play it and count. Bytes told are those of each receiver.</p>
            """
        )
        var requests = HTMLTable(
            "requests",
            [
                "Request", "Paid from", "Rows read", "Rows written", "Bytes stored",
                "Bytes told", "Processor",
            ]
        )
        for opcode in specification.families.flatMap(\.opcodes) {
            guard let cost = opcode.cost else { continue }
            func count(_ value: Int) -> String { value == 0 ? "" : value.separated }
            let told =
                cost.bytesTold == 0
                ? "" : "\(cost.bytesTold.separated) to \(cost.tells.text)"
            requests.row([
                prose.code(opcode.name), cost.html(prose), count(cost.rowsRead),
                count(cost.rowsWritten), count(cost.bytesStored), told, cost.processor.rawValue,
            ])
        }
        page.html(requests.html)
        return page
    }

    private func value(of limit: String, _ prose: Prose) -> String {
        let value = specification.limit(named: limit).map { $0.value.separated } ?? ""
        return "\(value) <span class=\"reason\">\(prose.code(limit))</span>"
    }
}

extension RateBucketEntry.Owner {
    fileprivate var text: String {
        switch self {
        case .user: "the account's"
        case .anyone: "the account's; before login the address's"
        case .connection: "a connection's before login"
        case .address: "an address's before login"
        }
    }
}

extension CostEntry.Audience {
    fileprivate var text: String {
        switch self {
        case .nobody: "nobody"
        case .ownSessions: "own sessions"
        case .members: "members"
        case .contacts: "contacts"
        }
    }
}

extension CostEntry {
    /// The cost in words, with links to the buckets.
    func html(_ prose: Prose) -> String {
        func link(_ bucket: String) -> String { prose.link(HTML.code(bucket), to: .bucket(bucket)) }
        var parts: [String] = []
        if units > 0 { parts.append(units == 1 ? "1 unit" : "\(units.separated) units") }
        if !perItem.isEmpty {
            let fields = perItem.map { HTML.code($0) }.joined(separator: " and ")
            let most = maxPage.map { ", at most \(prose.code($0))," } ?? ""
            parts.append("\(itemUnits) for each of \(fields)\(most)")
        }
        let others =
            also.isEmpty ? "" : "; some forms from " + also.map(link).joined(separator: ", ")
        return "\(link(bucket)): \(parts.joined(separator: " and "))\(others)"
    }
}
