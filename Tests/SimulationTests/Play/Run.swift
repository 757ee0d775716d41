import Foundation

/// The result of one run.
struct Outcome: Sendable {
    let seed: UInt64
    let hash: UInt64
    /// The hash at the beginning of each event.
    let trace: [UInt64]
    let violations: [String]
    let faults: FaultCounts

    var events: Int { trace.count }
}

/// Plays plans until everything is at rest.
enum Run {
    static func play(_ plan: Plan, name: String = "run") -> Outcome {
        do {
            let world = try World(plan, name: name)
            defer { world.close() }
            world.loop.run(forMs: 1500)
            for move in plan.moves {
                world.loop.run(forMs: move.afterMs)
                world.play(move)
                if move.a % 4 == 0 { world.checkScreens() }
                if !world.violations.isEmpty { break }
            }
            world.heal()
            world.settle()
            world.resolveEverything()
            world.scrollEverything()
            world.checkAll(isFresh: false)
            world.logInAgain()
            world.settle()
            world.scrollEverything()
            world.checkAll(isFresh: true)
            return Outcome(
                seed: plan.seed,
                hash: world.loop.hash.value,
                trace: world.loop.trace,
                violations: world.violations,
                faults: world.faults
            )
        } catch {
            return Outcome(
                seed: plan.seed,
                hash: 0,
                trace: [],
                violations: ["\(error)"],
                faults: FaultCounts()
            )
        }
    }

    /// Leaves out as many moves as possible while the run still fails (delta debugging).
    static func shrink(_ plan: Plan, name: String, tries: Int = 150) -> Plan {
        var best = plan
        var chunk = max(1, plan.moves.count / 2)
        var left = tries
        while left > 0 {
            var start = 0
            var hasShrunk = false
            while start < best.moves.count, left > 0 {
                var moves = best.moves
                moves.removeSubrange(start..<min(start + chunk, moves.count))
                left -= 1
                let candidate = best.keeping(moves)
                if play(candidate, name: name).violations.isEmpty {
                    start += chunk
                } else {
                    best = candidate
                    hasShrunk = true
                }
            }
            if chunk == 1, !hasShrunk { break }
            chunk = max(1, chunk / 2)
        }
        return best
    }

    /// Returns a failure report: how to repeat the run, and the shortest failing plan that was
    /// found.
    static func report(_ outcome: Outcome, name: String) -> String {
        let least = shrink(Plan(seed: outcome.seed), name: name)
        let again = play(least, name: name)
        return """
            TAMBOUR_SEED=\(outcome.seed): \(outcome.violations.joined(separator: "\n  "))
            least: devices \(least.devices), limits \(least.limits), page \(least.historyPage), \
            chats \(least.chatsAtOnce)
              \(least.moves.map(\.description).joined(separator: "\n  "))
            comes to: \(again.violations.joined(separator: "\n  "))
            """
    }
}
