import TambourProtocol
import TambourTesting
import Testing

@testable import TambourClient
@testable import TerminalKit
@testable import tambour

/// Changes the password, the phone and the list of devices with the keyboard.
@Suite("The account at the screen", .serialized)
struct ScreenAccountTests {
    @Test("a password is set, changed and removed, and never shown")
    func password() async throws {
        try await atDesk { desk in
            desk.type("/password\n")
            try await desk.display.waits(for: "A new password:")
            desk.type("correct horse")
            try await desk.display.waits(for: "•••••••••••••")
            #expect(!desk.display.lines.contains { $0.contains("horse") })
            desk.type("\n")
            try await desk.display.waits(for: "once more")
            desk.type("correct mule\n")
            #expect(desk.look(\.notice)?.isError == true)
            #expect(try await !desk.client.passwordDetails().isSet)

            desk.type("/password\n")
            try await desk.display.waits(for: "A new password:")
            desk.type("correct horse\ncorrect horse\nfour legs\n")
            try await desk.display.waits(for: "need the password besides the code")
            let details = try await desk.client.passwordDetails()
            #expect(details == Client.PasswordDetails(isSet: true, hint: "four legs"))

            desk.type("/password\n")
            try await desk.display.waits(for: "The present password:")
            desk.type("wrong password\n")
            try await desk.display.waits(for: "(empty removes it)")
            desk.type("\ny")
            try await desk.display.wait(for: "the refusal") { _ in
                desk.look { $0.notice?.isError == true }
            }
            #expect(try await desk.client.passwordDetails().isSet)

            desk.type("/password\n")
            try await desk.display.waits(for: "The present password:")
            desk.type("correct horse\n")
            try await desk.display.waits(for: "(empty removes it)")
            desk.type("\ny")
            try await desk.display.waits(for: "the password is removed")
            #expect(try await !desk.client.passwordDetails().isSet)
        }
    }

    @Test("another device is let in by its code")
    func approve() async throws {
        try await atDesk { desk in
            let device = try desk.server.connect()
            let code = try device.call(GetQrRequest())
            desk.type("/approve \(code.qrLink)\n")
            try await desk.display.waits(for: "use your account? (y/n)")
            desk.type("y")
            try await desk.display.waits(for: "the device signs in now")
            #expect(
                try device.call(GetQrStatusRequest(trackID: code.trackID)).status.loginAvailable
            )
            desk.type("/approve nonsense\n")
            try await desk.display.waits(for: "use your account? (y/n)")
            desk.type("y")
            try await desk.display.wait(for: "the refusal") { _ in
                desk.look { $0.notice?.isError == true }
            }
        }
    }
    @Test("one device of the list is signed out, and the others stay")
    func signOutOne() async throws {
        try await atDesk { desk in
            let phone = try #require(try await desk.client.sessions().first)
            let tablet = try desk.server.signIn(phoneOf: desk.alice, device: "tablet")
            let laptop = try desk.server.signIn(phoneOf: desk.alice, device: "laptop")
            desk.type("/sessions\n")
            try await desk.display.waits(for: "laptop")
            desk.type("x")
            #expect(desk.look(\.notice)?.isError == true)
            let items = desk.look { $0.panel?.items ?? [] }
            let row = try #require(items.firstIndex { $0.detail?.contains("tablet") == true })
            for _ in 0..<row { desk.press(KeyPress(.down)) }
            desk.type("x")
            try await desk.display.waits(for: "Sign out")
            desk.type("y")
            try await desk.display.waits(for: "signed out there")
            try tablet.waitForClose()
            try laptop.call(PingRequest())
            #expect(try await desk.client.sessions().contains { $0.id == phone.id })
        }
    }
}
