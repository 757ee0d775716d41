import TambourMessenger
import TambourProtocol
import TambourServer

/// Checks that a feature file either parses or fails with an error that names the file.
func fuzzFeatures(_ input: [UInt8]) {
    let path = Scratch.directory + "/features.yaml"
    Scratch.write(input, to: path)
    do {
        _ = try FeatureFile(path: path, limits: .standard).rules().summary
    } catch {
        guard "\(error)".hasPrefix(path) else { broken("a mistake without a place: \(error)") }
    }
}

/// The same type as in `tambourd`. `FeatureFile.swift` needs it, because it is a symbolic link to
/// the file in `tambourd`.
struct Failure: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}
