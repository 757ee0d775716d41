/// A diagram of a conversation. Each device and the server have a vertical line, and each packet is
/// an arrow.
///
/// The diagram uses the page's colours, so it is also readable in dark mode.
struct SequenceDiagram {
    /// One step of the diagram, from top to bottom.
    enum Row {
        enum Style: String {
            case request, reply, error, push
        }

        /// A packet. `detail` is the text for its contents; the drawing truncates it to the
        /// available width.
        case packet(
            number: Int?,
            from: String,
            to: String,
            Style,
            title: String,
            detail: String,
            address: String?
        )
        /// A device connects or disconnects.
        case event(number: Int, lane: String, text: String, isEnd: Bool)
        case note(String)
    }

    /// The available width.
    enum Width: String, CaseIterable {
        case wide, narrow
    }

    let title: String
    /// The devices and the server, each of which has a lane, from left to right.
    let lanes: [String]
    let rows: [Row]

    func svg(_ width: Width) -> String {
        var drawing = Drawing(lanes: lanes, width: width)
        for row in rows { drawing.draw(row) }
        return drawing.svg(title: title, name: width.rawValue)
    }
}

/// Draws from top to bottom; all numbers are in pixels.
private struct Drawing {
    private let lanes: [String]
    private let canvas: Double
    private let margin: Double
    private var y = 52.0
    private var shapes = ""
    /// The vertical positions at which the lines of each lane start and end.
    private var spans: [String: [(from: Double, to: Double?)]] = [:]

    /// The average widths of a character in normal text and in small text.
    private static let advance = 7.4
    private static let smallAdvance = 6.4

    init(lanes: [String], width: SequenceDiagram.Width) {
        self.lanes = lanes
        switch width {
        case .wide:
            margin = 90
            canvas = Double(max(lanes.count - 1, 1)) * 250 + 180
        case .narrow:
            margin = 44
            canvas = 360
        }
    }

    private func x(of lane: String) -> Double {
        guard lanes.count > 1, let index = lanes.firstIndex(of: lane) else { return canvas / 2 }
        return margin + Double(index) * (canvas - 2 * margin) / Double(lanes.count - 1)
    }

    mutating func draw(_ row: SequenceDiagram.Row) {
        switch row {
        case .packet(let number, let from, let to, let style, let title, let detail, let address):
            packet(number, x(of: from), x(of: to), style, title, detail, address)
        case .event(let number, let lane, let text, let isEnd):
            event(number, lane, text, isEnd)
        case .note(let text): note(text)
        }
    }

    private mutating func packet(
        _ number: Int?,
        _ from: Double,
        _ to: Double,
        _ style: SequenceDiagram.Row.Style,
        _ title: String,
        _ detail: String,
        _ address: String?
    ) {
        y += style == .reply || style == .error ? 18 : 26
        let middle = (from + to) / 2
        let count = number.map { "\($0)".count + 1 } ?? 0
        let length = Double(title.count + count) * Self.advance
        var label = HTML.escaped(title)
        if let address { label = HTML.link(label, to: address) }
        if let number { label = "<tspan class=\"number\">\(number)</tspan> \(label)" }
        text(label, at: middle, length: length, name: "title \(style.rawValue)")
        if !detail.isEmpty {
            y += 14
            let most = Int((canvas - 8) / Self.smallAdvance)
            let short = detail.count > most ? detail.prefix(most - 1) + "…" : detail[...]
            text(
                HTML.escaped(short),
                at: middle,
                length: Double(short.count) * Self.smallAdvance,
                name: "detail"
            )
        }
        y += 7
        let direction = to > from ? 1.0 : -1
        let tip = to - direction * 2
        shapes += """
            <g class="\(style.rawValue)"><line x1="\(from.short)" y1="\(y.short)" x2="\((tip - direction * 6).short)" y2="\(y.short)"/>\
            <path d="M\(tip.short) \(y.short)l\((-direction * 8).short)-4v8z"/></g>

            """
        y += 6
    }

    private mutating func event(_ number: Int, _ lane: String, _ words: String, _ isEnd: Bool) {
        y += 26
        let place = x(of: lane)
        let length = Double("\(number) \(words)".count) * Self.advance
        let label = "<tspan class=\"number\">\(number)</tspan> \(HTML.escaped(words))"
        text(label, at: place, length: length, name: "title")
        y += 8
        if isEnd {
            shapes += """
                <path class="end" d="M\((place - 5).short) \((y - 5).short)l10 10m0-10l-10 10"/>

                """
            if let last = spans[lane]?.indices.last { spans[lane]?[last].to = y }
        } else {
            shapes += "<circle class=\"start\" cx=\"\(place.short)\" cy=\"\(y.short)\" r=\"4\"/>\n"
            spans[lane, default: []].append((from: y, to: nil))
        }
        y += 8
    }

    private mutating func note(_ words: String) {
        let most = Int((canvas - 32) / Self.smallAdvance)
        let lines = wrapped(words, at: most)
        y += 14
        let height = Double(lines.count) * 16 + 10
        shapes += """
            <rect class="note" x="8" y="\(y.short)" width="\((canvas - 16).short)" height="\(height.short)" rx="3"/>

            """
        for line in lines {
            y += 16
            shapes += """
                <text class="detail note" x="\((canvas / 2).short)" y="\(y.short)" text-anchor="middle">\(HTML.escaped(line))</text>

                """
        }
        y += 12
    }

    /// Writes a text centred at `middle`. Shifts the text if it would extend beyond the canvas.
    ///
    /// - Parameter content: SVG.
    private mutating func text(_ content: String, at middle: Double, length: Double, name: String) {
        let half = length / 2 + 4
        let place = min(max(middle, half), max(canvas - half, half))
        shapes += """
            <text class="\(name)" x="\(place.short)" y="\(y.short)" text-anchor="middle">\(content)</text>

            """
    }

    private func wrapped(_ words: String, at most: Int) -> [String] {
        var lines: [String] = []
        for word in words.split(separator: " ") {
            if let last = lines.last, last.count + 1 + word.count <= most {
                lines[lines.count - 1] = "\(last) \(word)"
            } else {
                lines.append(String(word))
            }
        }
        return lines
    }

    func svg(title: String, name: String) -> String {
        let bottom = y + 16
        var heads = ""
        for lane in lanes {
            let place = x(of: lane)
            let begins = spans[lane] ?? [(from: 38, to: nil)]
            heads += """
                <line class="lane idle" x1="\(place.short)" y1="38" x2="\(place.short)" y2="\(bottom.short)"/>

                """
            for span in begins {
                heads += """
                    <line class="lane" x1="\(place.short)" y1="\(span.from.short)" x2="\(place.short)" y2="\((span.to ?? bottom).short)"/>

                    """
            }
            // The name of the device is below the name of the person, because one line with both
            // names is too wide for a phone.
            let words = lane.split(separator: ".").map(String.init)
            let longest = words.map(\.count).max() ?? 0
            let width = max(Double(longest) * Self.advance + 12, 52)
            let left = min(max(place - width / 2, 1), canvas - width - 1)
            let middle = (left + width / 2).short
            heads += """
                <rect class="head" x="\(left.short)" y="2" width="\(width.short)" height="36" rx="4"/>

                """
            for (index, word) in words.enumerated() {
                let base = words.count == 1 ? 24 : 16 + index * 15
                heads += """
                    <text class="head" x="\(middle)" y="\(base)" text-anchor="middle">\(HTML.escaped(word))</text>

                    """
            }
        }
        return """
            <svg class="sequence \(name)" viewBox="0 0 \(canvas.short) \(bottom.short)" style="max-width:\(canvas.short)px" xmlns="http://www.w3.org/2000/svg">
            <title>\(HTML.escaped(title))</title>
            \(heads)\(shapes)</svg>
            """
    }
}

extension Double {
    /// The number rounded to one decimal place, without a trailing zero.
    fileprivate var short: String {
        let tenths = Int((self * 10).rounded())
        return tenths.isMultiple(of: 10) ? "\(tenths / 10)" : "\(Double(tenths) / 10)"
    }
}
