import TambourClient
import TambourTesting

/// Makes random plays.
///
/// Each play has a mood that makes some events frequent; otherwise three rare events would never
/// occur in a row.
struct TaskMoveGenerator {
    private typealias Mode = TaskDependency.Mode

    private enum Mood: CaseIterable {
        case mixed
        /// Outputs that several tasks need and that expire.
        case inputs
        /// One lane, in which newer tasks replace older ones.
        case keys
        /// Deadlines, pauses, clock jumps, and manual retries.
        case time
    }

    private enum Act {
        case queue, work, report, pass, conditions, wake, extend, release, cancel, logout, retry
        case discard, review, die
    }

    private var random: SeededGenerator
    private let mood: Mood
    private let acts: [Act]
    private let endings: [TaskMove.Ending]

    init(seed: UInt64) {
        random = SeededGenerator(seed: seed)
        mood = random.pick(Mood.allCases)
        acts = Self.acts(mood)
        endings = Self.endings(mood)
    }

    /// Returns the moves of the play.
    mutating func moves() -> [TaskMove] {
        // Prefer short plays: more of them run, and their faults are easier to read.
        let count = 2 + random.below(random.chance(mood == .inputs ? 40 : 65) ? 5 : 14)
        var moves = [move(.queue(drafts()))]
        for _ in 1..<count {
            // Work without a report leads nowhere, so a report usually follows at once.
            if random.chance(45) {
                moves.append(move(.work(4)))
                moves.append(move(.report(random.below(64), random.pick(endings))))
            } else {
                moves.append(move(step()))
            }
        }
        return moves
    }

    private static func acts(_ mood: Mood) -> [Act] {
        var weights: [(Act, Int)] = [
            (.queue, 8), (.work, 6), (.report, 14), (.pass, 8), (.conditions, 2), (.wake, 2),
            (.extend, 1), (.release, 1), (.cancel, 3), (.logout, 1), (.retry, 2), (.discard, 1),
            (.review, 1), (.die, 1),
        ]
        switch mood {
        case .mixed: weights += [(.review, 4), (.extend, 4), (.release, 2)]
        case .inputs: weights += [(.report, 16), (.work, 6), (.discard, 6), (.cancel, 2)]
        case .keys: weights += [(.queue, 16), (.retry, 8), (.release, 1)]
        case .time: weights += [(.pass, 16), (.retry, 6)]
        }
        return weights.flatMap { Array(repeating: $0, count: $1) }
    }

    private static func endings(_ mood: Mood) -> [TaskMove.Ending] {
        var weights: [(TaskMove.Ending, Int)] = [
            (.done, 18), (.expired, 7), (.failed(.never, retryAfterMs: nil), 2),
            (.failed(.later, retryAfterMs: nil), 2), (.failed(.networkLost, retryAfterMs: nil), 2),
            (.failed(.afterLogin, retryAfterMs: nil), 1), (.failed(.metered, retryAfterMs: nil), 1),
            (.failed(.unreadable, retryAfterMs: nil), 1),
        ]
        switch mood {
        case .mixed: break
        case .inputs: weights += [(.expiredIfItCan, 50), (.failed(.never, retryAfterMs: nil), 14)]
        case .keys:
            weights += [(.failed(.networkLost, retryAfterMs: nil), 8)]
            weights += [(.failed(.never, retryAfterMs: nil), 8)]
        case .time:
            weights += [(.failed(.later, retryAfterMs: nil), 12)]
            for pauseMs: Int64 in [-5, 0, 700, 40_000, 1 << 40, .max] {
                weights.append((.failed(.later, retryAfterMs: pauseMs), 1))
            }
        }
        return weights.flatMap { Array(repeating: $0, count: $1) }
    }

    private mutating func move(_ step: TaskMove.Step) -> TaskMove {
        // One process does most of the work, so that it also finishes the work it has begun.
        TaskMove(owner: random.chance(25) ? 1 : 0, commits: !random.chance(4), step: step)
    }

    private mutating func step() -> TaskMove.Step {
        let number = random.below(64)
        switch random.pick(acts) {
        case .queue: return .queue(drafts())
        case .work: return .work(1 + random.below(4))
        case .report: return .report(number, random.pick(endings))
        case .pass:
            let ms = random.pick([1, 400, 1000, 5000, 31_000, 700_000, 86_400_000] as [Int64])
            return .pass(ms: random.chance(25) ? -ms : ms)
        case .conditions: return .conditions(conditions())
        case .wake: return .wake(conditions())
        case .extend: return .extend(number)
        case .release: return .release(number)
        case .cancel: return .cancel(random.chance(70) ? [number] : [number, random.below(64)])
        case .logout: return .logout
        case .retry:
            return .retry(number, deadlineInMs: random.chance(60) ? nil : random.pick([1, 9000]))
        case .discard: return .discard(number)
        case .review: return .review(unknownKind: random.chance(50) ? nil : random.below(2))
        case .die: return .die
        }
    }

    private mutating func drafts() -> [TaskMove.Draft] {
        if random.chance(mood == .inputs ? 60 : 5) { return sharedInput() }
        var drafts: [TaskMove.Draft] = []
        for _ in 0..<1 + random.below(random.chance(50) ? 1 : 4) { drafts.append(draft()) }
        return drafts
    }

    private mutating func draft() -> TaskMove.Draft {
        var dependencies: [(back: Int, mode: Mode)] = []
        for _ in 0..<random.pick([0, 0, 1, 1, 2]) {
            let back = random.chance(95) ? random.below(3) : -1 - random.below(3)
            let mode = random.pick([.needs, .needs, .refresh, .refresh, .after] as [Mode])
            dependencies.append((back, mode))
        }
        let lane = mood == .keys ? 1 : random.pick([0, 0, 1, 2])
        let isKeyed = random.chance(lane == 0 ? 1 : mood == .keys ? 60 : 20)
        return TaskMove.Draft(
            kind: random.below(2),
            lane: lane,
            coalescing: isKeyed ? 1 : 0,
            requires: random.chance(80) ? [] : conditions(),
            deadlineInMs: random.chance(mood == .time ? 50 : 10)
                ? random.pick([500, 2000, 60_000]) : nil,
            dependencies: dependencies
        )
    }

    /// Returns one task and two tasks that need its output, such as a photo for two chats.
    private mutating func sharedInput() -> [TaskMove.Draft] {
        var drafts: [TaskMove.Draft] = []
        for number in 0..<3 {
            drafts.append(
                TaskMove.Draft(
                    kind: number == 0 ? 0 : 1,
                    lane: random.chance(80) ? 0 : 1,
                    coalescing: 0,
                    requires: [],
                    deadlineInMs: nil,
                    dependencies: number == 0 ? [] : [(number - 1, .refresh)]
                )
            )
        }
        return drafts
    }

    private mutating func conditions() -> TaskConditions {
        TaskConditions(rawValue: random.below(8))
    }
}
