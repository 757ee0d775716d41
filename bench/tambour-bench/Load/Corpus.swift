import Foundation

/// The text of a message as sent.
typealias Bytes100 = [UInt8]

/// Texts of about a hundred bytes, written by people: Debian's `fortunes` and `fortunes-ru`.
///
/// A message is `#`, its number in eight hexadecimal digits, a space, and a text. If the packages
/// are not installed, two sentences replace the texts. The report names the texts used.
struct Corpus {
    static let numberLength = 10

    let texts: [[UInt8]]
    let source: String

    init(folder: String = "/usr/share/games/fortunes") {
        var texts: [[UInt8]] = []
        var sources: [String] = []
        // Takes at most 500 texts of each language. The file names are sorted, so the choice is
        // stable.
        for language in ["", "/ru"] {
            var found: [[UInt8]] = []
            let names =
                (try? FileManager.default.contentsOfDirectory(atPath: folder + language)) ?? []
            for name in names.sorted() where !name.hasSuffix(".dat") && !name.hasSuffix(".u8") {
                guard
                    let data = FileManager.default.contents(atPath: "\(folder)\(language)/\(name)")
                else { continue }
                for text in String(decoding: data, as: UTF8.self).components(separatedBy: "\n%\n") {
                    let line = text.split { $0.isWhitespace }.joined(separator: " ")
                    if (70...112).contains(line.utf8.count) { found.append(Array(line.utf8)) }
                }
            }
            let package = language.isEmpty ? "fortunes" : "fortunes-ru"
            let chosen = found.prefix(500)
            sources.append(chosen.isEmpty ? "no \(package)" : "\(chosen.count) of \(package)")
            texts += chosen
        }
        if texts.isEmpty {
            source = "two stand-in sentences (fortunes and fortunes-ru are not installed)"
            self.texts = [
                "Are we still meeting tonight at seven? Bring the book, please, and thank you.",
                "Встретимся сегодня в семь у метро? Захвати книгу.",
            ].map { Array($0.utf8) }
        } else {
            source = sources.joined(separator: ", ")
            self.texts = texts
        }
    }

    /// Returns the message with this number.
    func message(_ number: UInt32) -> Bytes100 {
        var bytes: [UInt8] = []
        let text = texts[Int(number) % texts.count]
        bytes.reserveCapacity(Self.numberLength + text.count)
        bytes.append(UInt8(ascii: "#"))
        var shift = 28
        while shift >= 0 {
            let digit = UInt8(truncatingIfNeeded: number >> UInt32(shift)) & 0xF
            bytes.append(digit < 10 ? 0x30 + digit : 0x57 + digit)
            shift -= 4
        }
        bytes.append(UInt8(ascii: " "))
        bytes.append(contentsOf: text)
        return bytes
    }

    /// Returns the number at the start of a text; nil if the corpus did not produce the text.
    static func number(in text: UnsafeRawBufferPointer) -> UInt32? {
        guard text.count >= numberLength, text[0] == UInt8(ascii: "#") else { return nil }
        var number: UInt32 = 0
        for position in 1...8 {
            let byte = text[position]
            let digit: UInt8
            switch byte {
            case 0x30...0x39: digit = byte - 0x30
            case 0x61...0x66: digit = byte - 0x57
            default: return nil
            }
            number = number << 4 | UInt32(digit)
        }
        return number
    }
}
