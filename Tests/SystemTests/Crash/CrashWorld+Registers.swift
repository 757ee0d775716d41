import Foundation
import TambourProtocol
import TambourTesting

/// What must hold for registers on a server that has come back.
extension CrashWorld {
    /// Compares each register with what was acknowledged, and retries what was never answered.
    func verifyRegisters(at address: String, reports: [String]) throws {
        for player in players {
            let client = try player.connect(address)
            defer { client.close() }
            let view = CrashView(client, reports: reports)
            for register in player.registers {
                try compare(register, with: try register.read(view))
            }
            for register in player.registers { try register.retry(on: client) }
        }
        for writer in writers { writer.forgetOtherPushes() }
    }

    /// Compares again after the retries: now each register must have one value.
    func verifyRetried(at address: String, reports: [String]) throws {
        for player in players {
            let client = try player.connect(address)
            defer { client.close() }
            let view = CrashView(client, reports: reports)
            for register in player.registers {
                let (stored, expected) = (try register.read(view), register.confirmedValue)
                try check(
                    stored == expected,
                    "\(register.name) of \(register.owner) is \(stored) after a retry, not \(expected)"
                )
                registersRead += 1
            }
            try compareMembers(view, player.place)
            try compareCounters(view, player.place)
        }
    }

    private func compare(_ register: CrashRegister, with stored: String) throws {
        if stored == register.attemptedValue { return }
        let name = "\(register.name) of \(register.owner)"
        let confirmed = register.confirmedValue
        if register.isOutdated(stored), stored != confirmed {
            throw lost("\(name) was acknowledged as \(confirmed), and is \(stored)")
        }
        try check(stored == confirmed, "\(name) is \(stored), not \(confirmed)")
        // A push leaves after the commit.
        let mark = Data(register.attemptedMark.utf8)
        if writers.contains(where: { $0.otherPushes.range(of: mark) != nil }) {
            throw lost("\(name) was pushed as \(register.attemptedValue), and is \(stored)")
        }
    }

    // MARK: - Figures

    /// Every command that writers or registers play.
    var playedCommands: Set<Opcode> {
        players[0].registers.reduce(into: CrashRegister.written) { played, register in
            played.formUnion(register.commands)
        }
    }

    private var steps: [Opcode: Int] {
        players.reduce(into: [:]) { $0.merge($1.acknowledged, uniquingKeysWith: +) }
    }

    var registerAcknowledgements: Int { steps.values.reduce(0, +) }

    /// Acknowledged commands of registers, as `PROFILE 12, CONFIG 25`.
    var stepsByCommand: String {
        steps.sorted { $0.key.rawValue < $1.key.rawValue }
            .map { "\($0.key.name ?? "\($0.key)") \($0.value)" }.joined(separator: ", ")
    }

    // MARK: - Counters

    /// The number of members is the number of those who are listed.
    private func compareMembers(_ view: CrashView, _ place: CrashPlace) throws {
        let count = try view.chat(place.yard.chat)?.participantsCount ?? 0
        let listed = try view.members(of: place.yard.chat).count
        try check(count == listed, "a group counts \(count) members and lists \(listed)")
    }

    /// Counters below a message and in a poll are the sums over the registers of all users.
    private func compareCounters(_ view: CrashView, _ place: CrashPlace) throws {
        func expected(_ name: String) -> [String: Int64] {
            let values = players.flatMap(\.registers).filter { $0.name == name }
                .flatMap { $0.confirmedValue.split(separator: "+") }.map { String($0) }
            return Dictionary(values.map { ($0, 1) }, uniquingKeysWith: +)
                .filter { $0.key != "none" }
        }
        let (chat, post) = (place.square.chat, place.square.post)
        let reactions = try view.client
            .call(MsgGetReactionsRequest(chatID: chat, messageIDs: [post]))
            .messagesReactions[post]
        let counters = (reactions?.counters ?? []).map { ("\($0.reaction)", $0.count) }
        try check(
            Dictionary(uniqueKeysWithValues: counters) == expected("reaction"),
            "the reactions are \(counters), not \(expected("reaction"))"
        )
        let message = try view.client
            .call(MsgGetRequest(chatID: chat, messageIDs: [post])).messages.first
        let state = message?.attaches.stored?.first { $0.type == .poll }?.state
        let votes = (state?.result ?? []).filter { $0.voteCount > 0 }
            .map { ("\($0.answerID)", $0.voteCount) }
        try check(
            Dictionary(uniqueKeysWithValues: votes) == expected("vote"),
            "the votes are \(votes), not \(expected("vote"))"
        )
    }
}
