import ArgumentParser
import Foundation

struct Decode: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Tells what packets say, checked against the specification.",
        discussion: """
            Reads hexadecimal digits with blanks, colons, commas or 0x between them, any number of packets one after
            the other. Unknown keys and what the schema refuses are marked with #. Fails when bytes are no packet.
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
        text.decode(
            try bytes(),
            line: root.say,
            failure: { failure in
                isBad = true
                FileHandle.standardError.write(Data("\(failure)\n".utf8))
            }
        )
        if isBad { throw ExitCode.failure }
    }

    private func bytes() throws -> [UInt8] {
        guard hex.isEmpty || hex == ["-"] else {
            return try read(Data(hex.joined(separator: " ").utf8))
        }
        let input = try FileHandle.standardInput.readToEnd() ?? Data()
        return raw ? [UInt8](input) : try read(input)
    }

    private func read(_ digits: Data) throws -> [UInt8] {
        do throws(HexText.Failure) {
            return try HexText.bytes(digits)
        } catch {
            FileHandle.standardError.write(Data("\(error)\n".utf8))
            throw ExitCode.failure
        }
    }
}
