import ArgumentParser
import Foundation
import TambourTLS
import TambourTesting

/// Compares the server's TLS layer with `bench/limits/tls`: the same handshakes and echoes in
/// memory.
///
/// It models the work of a lane without the system calls, because TLS does not change them. A full
/// handshake should cost about 380 us, and an idle session at most 18 KiB.
struct TLSCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "tls",
        abstract: "Measures the server's side of TLS next to its limit.",
        discussion: "Ends with 1 if a figure is more than --most times its limit."
    )

    @Option(help: "The program built from bench/limits/tls.c.")
    var limit = ".build/bench/tls"

    @Option(help: "The most that a figure may be, as a ratio to the limit.")
    var most = 1.2

    @Option(help: "Rounds; the median ratio counts.")
    var rounds = 5

    @Option(help: "Handshakes in each pass, of which there are five.")
    var count = 300

    @Option(help: "Idle sessions.")
    var sessions = 2000

    func run() async throws {
        #if TLS
            let authority = try TestAuthority()
            let pair = try authority.issue("server", ["DNS:localhost"])
            var ratios: [String: [Double]] = [:]
            var figures: [String: (ours: Double, limit: Double)] = [:]
            let names = [
                "idle_bytes", "handshake_us", "resumed_us", "echo_74_us", "echo_1024_us",
                "echo_16384_us",
            ]
            for round in 0..<rounds {
                let meter = try TLSMeter(pair, authority: authority.pem())
                // Memory is measured once, before the other measurements allocate memory.
                var ours = round == 0 ? ["idle_bytes": try meter.idle(sessions)] : [:]
                ours["handshake_us"] = try meter.handshakes(count, resumes: false)
                ours["resumed_us"] = try meter.handshakes(count, resumes: true)
                ours["echo_74_us"] = try meter.echoes(count * 20, bytes: 74)
                ours["echo_1024_us"] = try meter.echoes(count * 20, bytes: 1024)
                ours["echo_16384_us"] = try meter.echoes(count * 4, bytes: 16_384)
                let theirs = try await limits(pair)
                for (name, value) in ours {
                    guard let limit = theirs[name] else { continue }
                    ratios[name, default: []].append(value / limit)
                    figures[name] = (value, limit)
                }
            }
            var isTooMuch = false
            print("figure           ours      limit     ratio (median)")
            for name in names {
                guard let figure = figures[name], let all = ratios[name]?.sorted() else { continue }
                let ratio = all[all.count / 2]
                if name != "resumed_us", ratio > most { isTooMuch = true }
                let values = [figure.ours, figure.limit, ratio].map { String(format: "%.2f", $0) }
                let cells = [name] + values
                print(cells.map { $0.padding(toLength: 16, withPad: " ", startingAt: 0) }.joined())
            }
            if let full = figures["handshake_us"], let resumed = figures["resumed_us"] {
                print("resumed / full: \(String(format: "%.2f", resumed.ours / full.ours))")
            }
            if isTooMuch { throw ExitCode.failure }
        #else
            throw ValidationError("this program was built without TLS; build it with: --traits TLS")
        #endif
    }

    #if TLS
        /// Runs the limit and returns its figures by name.
        private func limits(_ pair: TLSPair) async throws -> [String: Double] {
            let child = try ChildProcess(
                URL(fileURLWithPath: limit),
                [
                    "--certificate", pair.certificate, "--key", pair.key, "--count", "\(count)",
                    "--sessions", "\(sessions)",
                ]
            )
            var figures: [String: Double] = [:]
            for await line in child.lines {
                let words = line.split(separator: " ")
                if words.count == 2 { figures[String(words[0])] = Double(words[1]) }
            }
            return figures
        }
    #endif
}
