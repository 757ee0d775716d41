import ArgumentParser
import Foundation

struct Decode: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Tells what packets say, checked against the specification.",
        discussion: """
            Reads hexadecimal digits with blanks, colons, commas or 0x between them, any number of packets one after
            the other; tells each as soon as it is whole. Unknown keys and what the schema refuses are marked with #. Fails when bytes are no packet.
            """
    )

    @OptionGroup var root: RootOption

    @Argument(help: "Hexadecimal digits; - or nothing reads them from the standard input.")
    var hex: [String] = []

    @Flag(help: "The standard input holds the bytes themselves.")
    var raw = false

    @Flag(help: "Show tokens, codes and phone numbers.")
    var secrets = false

    func validate() throws {
        if raw, !hex.isEmpty, hex != ["-"] {
            throw ValidationError("--raw reads the standard input and takes no digits.")
        }
    }

    func run() throws {
        var text = PacketText(specification: try root.load())
        text.showsSecrets = secrets
        var isBad = false
        func complain(_ failure: some CustomStringConvertible) {
            isBad = true
            FileHandle.standardError.write(Data("\(failure)\n".utf8))
        }
        var packets = PacketStream(text, line: root.say, failure: { complain($0) })
        do {
            var digits = HexText()
            func take(_ text: [UInt8]) throws(HexText.Failure) {
                var bytes: [UInt8] = []
                defer { packets.take(bytes) }
                try digits.read(text, into: &bytes)
            }
            if hex.isEmpty || hex == ["-"] {
                while !packets.isOver, let piece = try StandardInput.piece() {
                    if raw { packets.take(piece) } else { try take(piece) }
                }
            } else {
                try take(Array(hex.joined(separator: " ").utf8))
            }
            if !packets.isOver { try digits.end() }
            packets.end()
        } catch let failure as HexText.Failure {
            // After an invalid header, the rest of the input is not decoded, so invalid digits in
            // it are not reported.
            if !packets.isOver { complain(failure) }
        }
        if isBad { throw ExitCode.failure }
    }
}
