/// The text that change `number` of one play leaves in the store, in replies and in pushes, such as
/// `#7.42#`.
struct CommandMark {
    /// Identifies the play; no two plays of a world have the same number.
    let play: Int

    func callAsFunction(_ number: Int) -> String { "#\(play).\(number)#" }

    /// Returns the numbers of this play's marks, in the order of their positions.
    func numbers(in bytes: [UInt8]) -> [Int] {
        Self.all(in: bytes).filter { $0.play == play }.map(\.number)
    }

    func numbers(in text: String) -> [Int] { numbers(in: Array(text.utf8)) }

    /// Returns the marks of all plays. The bytes may be an undecoded payload, with other bytes
    /// around a mark.
    static func all(in bytes: [UInt8]) -> [(play: Int, number: Int)] {
        var found: [(play: Int, number: Int)] = []
        var index = 0
        func number(endingWith end: Character) -> Int? {
            var value: Int?
            while index < bytes.count {
                let byte = bytes[index]
                if byte == end.asciiValue { return value }
                guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte), value ?? 0 < 1 << 40
                else { return nil }
                value = (value ?? 0) * 10 + Int(byte - UInt8(ascii: "0"))
                index += 1
            }
            return nil
        }
        while let start = bytes[index...].firstIndex(of: UInt8(ascii: "#")) {
            index = start + 1
            guard let play = number(endingWith: ".") else { continue }
            index += 1
            guard let number = number(endingWith: "#") else { continue }
            index += 1
            found.append((play, number))
        }
        return found
    }
}
