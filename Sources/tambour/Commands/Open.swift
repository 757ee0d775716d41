import ArgumentParser
import Foundation
import TambourClient

struct Open: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Opens the full-screen client; this is what `tambour` alone does."
    )

    @OptionGroup var account: AccountOptions

    @Option(help: "dark, light, mono or none; chosen by the terminal unless given.")
    var theme: String?

    @Flag(help: "Scrolls with the wheel; the terminal then selects text with shift only.")
    var mouse = false

    func run() async throws {
        let environment = ProcessInfo.processInfo.environment
        let client = try account.signedIn(tapsFrames: true)
        let depth = ColorDepth.detect(environment)
        let controller = ScreenController(
            client: client,
            theme: Theme.choose(named: theme, depth: depth)
        )
        var options = TerminalDevice.Options()
        options.renderer.depth = depth
        options.hasMouse = mouse
        options.environment = environment
        let code = try await controller.run(options)
        await client.stop()
        if code != 0 { throw ExitCode(code) }
    }
}
