/// The code under test, which reads untrusted bytes, and the properties that must hold for every
/// input.
///
/// A target is a plain function, so tests can replay inputs without a fuzzer. If a property does
/// not hold, the target ends the process, because libFuzzer detects crashes.
package enum FuzzTarget: String, CaseIterable, Sendable {
    /// A stream of frames. The target reads it as a whole and in pieces.
    case frame
    /// An LZ4 block.
    case lz4
    /// One MessagePack value. The target skips it, keeps it as bytes, and reads it.
    case messagepack
    /// Two bytes that select an opcode, and then the payload of a request.
    case request
    /// A line for the admin socket. The target answers it with a small store.
    case admin
    /// A feature file.
    case features
    /// The file `digests` of a backup.
    case backup
    /// Changes to the bytes of a database file. Each change has four bytes: three for the position
    /// and one for the value.
    case store

    /// Runs one input through the target.
    package func run(_ input: [UInt8]) {
        switch self {
        case .frame: fuzzFrames(input)
        case .lz4: fuzzLZ4(input)
        case .messagepack: fuzzMessagePack(input)
        case .request: fuzzRequest(input)
        case .admin: AdminFixture.shared.run(input)
        case .features: fuzzFeatures(input)
        case .backup: fuzzManifest(input)
        case .store: StoreFixture.shared.run(input)
        }
    }
}

/// Ends the process because a property of the target does not hold.
func broken(_ property: String) -> Never {
    fatalError("fuzz target: \(property)")
}
