import Testing

/// Devices that edit offline finally have the same state as the server. No work of a user is lost
/// silently.
@Suite("Entities of several devices")
struct ConvergenceTests {
    @Test("come together after offline edits, lost requests and replies, stale pages and restarts")
    func comeTogether() {
        var census: [String: Int] = [:]
        RandomRun.play(
            count: 500,
            soak: 5_000,
            make: { EntityWorld.makeCase(steps: 5...25, &$0) },
            check: { setting, steps in
                var world = EntityWorld(setting)
                for step in steps { try world.play(step) }
                try world.comeTogether()
                try world.checkAgreement()
                census.merge(world.census, uniquingKeysWith: +)
            }
        )
        if RandomRun.isWhole { #expect(census.count == 15, "\(census)") }
    }

    @Test("come together after 91 days offline, when replies and tombstones are forgotten")
    func comeTogetherAfterMonths() {
        RandomRun.play(
            count: 70,
            soak: 700,
            make: { EntityWorld.makeCase(steps: 5...25, &$0) },
            check: { setting, steps in
                var world = EntityWorld(setting)
                for step in steps { try world.play(step) }
                try world.returnAfterMonths()
                try world.comeTogether()
                try world.checkAgreement()
            }
        )
    }

    @Test("come together after the server is restored from a backup")
    func comeTogetherAfterRestoring() {
        RandomRun.play(
            count: 70,
            soak: 700,
            make: { EntityWorld.makeCase(steps: 5...25, &$0) },
            check: { setting, steps in
                var world = EntityWorld(setting)
                for step in steps.prefix(steps.count / 2) { try world.play(step) }
                let backup = world
                for step in steps.dropFirst(steps.count / 2) { try world.play(step) }
                try world.restoreBackup(backup)
                try world.comeTogether()
                try world.checkAgreement(isComplete: false)
            }
        )
    }
}
