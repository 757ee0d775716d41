import TambourClient
import TerminalKit

/// Changes the account's password and phone number, and lets other devices sign in.
extension ScreenController {
    // MARK: - Password

    func changePassword() {
        fetch {
            try await $0.passwordDetails()
        } then: { screen, details in
            guard details.isSet else { return screen.askForNewPassword(current: nil) }
            screen.ask("The present password:", isSecret: true) { screen, current in
                screen.askForNewPassword(current: current)
            }
        }
    }

    private func askForNewPassword(current: String?) {
        let question = current == nil ? "A new password:" : "A new password (empty removes it):"
        ask(question, emptyMeans: current == nil ? nil : "", isSecret: true) { screen, new in
            if new.isEmpty { return screen.removePassword(current) }
            screen.ask("The new password once more:", isSecret: true) { screen, again in
                guard again == new else {
                    screen.state.notice = ("the two differ, so the password is unchanged", true)
                    return
                }
                screen.ask("A hint, which everybody with the code sees:", emptyMeans: "") {
                    screen,
                    hint in
                    screen.set(new, current, hint: hint)
                }
            }
        }
    }

    private func set(_ password: String, _ current: String?, hint: String) {
        fetch {
            try await $0.setPassword(
                password,
                current: current,
                hint: hint.isEmpty ? nil : hint
            )
        } then: { screen, _ in
            screen.state.notice = ("sign-ins now need the password besides the code", false)
        }
    }

    private func removePassword(_ current: String?) {
        confirm("Remove the password?") { screen in
            screen.fetch {
                try await $0.setPassword(nil, current: current)
            } then: { screen, _ in
                screen.state.notice = ("the password is removed; the code alone signs in", false)
            }
        }
    }

    // MARK: - Other devices

    func approve(_ link: String) {
        confirm("Let the device with this QR code use your account?") { screen in
            screen.fetch {
                try await $0.approveSignIn(link)
            } then: { screen, _ in
                screen.state.notice = (
                    "the device signs in now; /sessions lists all devices", false
                )
            }
        }
    }

    // MARK: - Phone

    func changePhone(_ phone: String) {
        fetch {
            try await $0.requestPhoneChange(to: phone)
        } then: { screen, change in
            screen.ask("The code that \(phone) received:") { screen, code in
                screen.fetch {
                    try await $0.changePhone(change, code: code)
                } then: { screen, _ in
                    screen.state.notice = ("your account now belongs to \(phone)", false)
                }
            }
        }
    }
}
