import CQRencode

/// A QR code (ISO/IEC 18004) as text. Cameras read it from the screen of a terminal.
package struct QRCode: Sendable {
    /// The lines of the drawing, top to bottom. Each line shows two rows of modules. The block
    /// characters are the light modules, so the caller must draw the lines in a light colour on a
    /// dark one.
    package let lines: [String]

    /// The number of columns of every line.
    package var columns: Int { side + 2 * Self.margin }

    /// The number of modules in a row.
    private let side: Int

    /// The light margin around the code, in modules. The standard requires four, but QR readers
    /// need only two, and four would not fit a terminal of 24 rows.
    private static let margin = 2

    /// The maximum length of the text in bytes. The code of such a text fits a terminal of 80
    /// columns and 24 rows.
    private static let maxBytes = 106

    /// - Returns: nil if the text is empty or has more than 106 bytes in UTF-8, or if memory runs
    ///   out.
    package init?(_ text: String) {
        let bytes = Array(text.utf8)
        guard !bytes.isEmpty, bytes.count <= Self.maxBytes,
            let code = QRcode_encodeData(Int32(bytes.count), bytes, 0, QR_ECLEVEL_L)
        else { return nil }
        defer { QRcode_free(code) }
        let side = Int(code.pointee.width)
        let modules = UnsafeBufferPointer(start: code.pointee.data, count: side * side)
        func isDark(_ row: Int, _ column: Int) -> Bool {
            guard 0..<side ~= row, 0..<side ~= column else { return false }
            return modules[row * side + column] & 1 == 1
        }
        let shown = -Self.margin..<side + Self.margin
        lines = stride(from: shown.lowerBound, to: shown.upperBound, by: 2).map { row in
            String(
                shown.map { column in
                    switch (isDark(row, column), isDark(row + 1, column)) {
                    case (false, false): "█"
                    case (false, true): "▀"
                    case (true, false): "▄"
                    case (true, true): " "
                    }
                }
            )
        }
        self.side = side
    }
}
