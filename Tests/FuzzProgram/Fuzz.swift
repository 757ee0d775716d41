import FuzzTargets
import Glibc

/// Runs libFuzzer on the target that `TAMBOUR_FUZZ_TARGET` names. `scripts/fuzz` starts this
/// program.
@main
struct Fuzz {
    static func main() {
        guard let name = getenv("TAMBOUR_FUZZ_TARGET").map({ String(cString: $0) }),
            let target = FuzzTarget(rawValue: name)
        else {
            let names = FuzzTarget.allCases.map(\.rawValue).joined(separator: ", ")
            print("TAMBOUR_FUZZ_TARGET names one of \(names)")
            exit(2)
        }
        chosen = target
        var count = CommandLine.argc
        var arguments: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>? = CommandLine.unsafeArgv
        exit(
            runDriver(&count, &arguments) { bytes, count in
                chosen.run(Array(UnsafeBufferPointer(start: bytes, count: count)))
                return 0
            }
        )
    }
}

/// The target. It is set only once, before the first input.
nonisolated(unsafe) private var chosen = FuzzTarget.frame

private typealias Callback = @convention(c) (UnsafePointer<UInt8>?, Int) -> CInt

@_silgen_name("LLVMFuzzerRunDriver")
private func runDriver(
    _ count: UnsafeMutablePointer<CInt>,
    _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?>,
    _ callback: Callback
) -> CInt
