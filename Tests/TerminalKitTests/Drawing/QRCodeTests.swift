import Testing

@testable import TerminalKit

/// Tests QR codes that are drawn with block characters. The blocks are the light modules.
struct QRCodeTests {
    private static let link = "https://max.ru/:auth/0123456789abcdef0123456789abcdef0123456789a"

    /// Returns the modules of a drawing; true stands for a dark module.
    private func modules(_ code: QRCode) -> [[Bool]] {
        code.lines.flatMap { line in
            [line.map { " ▄".contains($0) }, line.map { " ▀".contains($0) }]
        }
    }

    @Test("the three finders stand in the corners, within a light margin")
    func finders() throws {
        let modules = modules(try #require(QRCode(Self.link)))
        let side = modules[0].count - 4
        for (row, column) in [(2, 2), (2, side - 5), (side - 5, 2)] {
            let finder = (0..<7).map { down in (0..<7).map { modules[row + down][column + $0] } }
            for down in 0..<7 {
                for right in 0..<7 {
                    let ring = max(abs(down - 3), abs(right - 3))
                    #expect(finder[down][right] == (ring != 2), "\(down) \(right)")
                }
            }
        }
        for index in modules.indices {
            let margin = [
                modules[index][0], modules[index][1], modules[index][side + 2],
                modules[index][side + 3],
            ]
            #expect(!margin.contains(true))
        }
        #expect(!modules[0].contains(true) && !modules[1].contains(true))
    }

    @Test("the longest text fits a terminal of 80 by 24, and longer texts have no code")
    func size() throws {
        let longest = try #require(QRCode(String(repeating: "é", count: 53)))
        #expect(longest.columns <= 80 && longest.lines.count <= 21)
        #expect(longest.lines.allSatisfy { $0.count == longest.columns })
        #expect(QRCode(String(repeating: "é", count: 53) + "a") == nil)
        #expect(QRCode("") == nil)
    }
}
