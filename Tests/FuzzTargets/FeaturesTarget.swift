import TambourMessenger
import TambourProtocol
import TambourServer

/// A file of features is rules, or a mistake that says where it is.
func fuzzFeatures(_ input: [UInt8]) {
    let path = Scratch.directory + "/features.yaml"
    Scratch.write(input, to: path)
    do {
        _ = try FeatureFile(path: path, limits: .standard).rules().summary
    } catch {
        guard "\(error)".hasPrefix(path) else { broken("a mistake without a place: \(error)") }
    }
}

/// As the server's program has it; `FeatureFile.swift` is a link to the file there.
struct Failure: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}
