import Foundation
import TambourProtocol
import TambourTesting
import Testing

@testable import TambourMessenger

/// Tests the rules without server or socket.
///
/// The tests try properties on random rules and subjects; `TAMBOUR_SEED` repeats a run.
@Suite("Feature rules")
struct FeatureRulesTests {
    private func rules(
        _ rules: [FeatureRule],
        name: String = "drafts",
        isKilled: Bool = false,
        salt: String = "",
        variations: [FeaturePlan.Variation] = []
    ) throws -> FeatureRules {
        try FeatureRules([
            FeaturePlan(
                name: name,
                isKilled: isKilled,
                salt: salt,
                variations: variations,
                rules: rules
            )
        ])
    }

    private func isOn(_ subject: FeatureSubject, _ rules: FeatureRules) throws -> Bool {
        try #require(rules.answer(to: "drafts", for: subject)).enabled
    }

    private func user(_ id: Int64) -> FeatureSubject { FeatureSubject(userID: UserID(id)) }

    // MARK: - Rules

    @Test("the first rule that fits decides; none that fits, and no rule at all, mean off")
    func order() throws {
        let some = try rules([
            FeatureRule(isEnabled: false, systems: ["web"]),
            FeatureRule(systems: ["WEB", "IOS"]),
        ])
        #expect(try !isOn(FeatureSubject(system: "WEB"), some))
        #expect(try isOn(FeatureSubject(system: "ios"), some))
        #expect(try !isOn(FeatureSubject(system: "ANDROID"), some))
        #expect(try !isOn(FeatureSubject(), rules([])))
        #expect(try isOn(FeatureSubject(), rules([FeatureRule()])))
    }

    @Test("a rule fits when everything in it does")
    func conditions() throws {
        let all = try rules([
            FeatureRule(
                systems: ["IOS"],
                appVersion: AppVersionRange(from: AppVersion("2.10"), below: AppVersion("3")),
                locales: ["de", "en-GB"],
                userIDs: [7]
            )
        ])
        func subject(
            _ user: Int64? = 7,
            _ system: String = "IOS",
            _ version: String = "2.10.1",
            _ locale: String = "de_AT"
        ) -> FeatureSubject {
            FeatureSubject(
                userID: user.map(UserID.init),
                system: system,
                appVersion: version,
                locale: locale
            )
        }
        #expect(try isOn(subject(), all))
        #expect(try isOn(subject(7, "ios", "2.10", "EN-gb"), all))
        for other in [
            subject(8), subject(nil), subject(7, "WEB"), subject(7, "IOS", "2.9.9"),
            subject(7, "IOS", "3.0"), subject(7, "IOS", ""), subject(7, "IOS", "beta"),
            subject(7, "IOS", "2.11", "en-US"), subject(7, "IOS", "2.11", "deu"),
            subject(7, "IOS", "2.11", ""),
        ] {
            #expect(try !isOn(other, all), "\(other)")
        }
    }

    @Test("versions are compared by their numbers")
    func versions() throws {
        let sorted = ["0", "1.9", "1.10", "2-beta", "2.0.1", "26.37.1 (6512)", "100"]
        let versions = try sorted.map { try #require(AppVersion($0)) }
        #expect(versions == versions.sorted())
        #expect(AppVersion("2") == AppVersion("2.0.0") && AppVersion("2.0") == AppVersion("2.x"))
        #expect(AppVersion("") == nil && AppVersion("x1") == nil && AppVersion(".1") == nil)
        #expect(AppVersion("99999999999999999999") != nil)
    }

    @Test("the kill switch wins over everything, for whoever asks")
    func kill() throws {
        let killed = try rules([FeatureRule()], isKilled: true)
        #expect(try !isOn(user(1), killed))
        #expect(try !isOn(FeatureSubject(), killed))
    }

    @Test("names that nobody knows are not answered")
    func unknown() throws {
        let some = try rules([FeatureRule()])
        #expect(some.answers(to: ["a", "drafts", "z"], for: user(1)).map(\.type) == ["drafts"])
        #expect(some.names.contains("drafts"))
    }

    // MARK: - Buckets

    @Test(
        "a bucket comes from SHA-256 of feature, salt and subject",
        arguments: [
            ("phone-lookup", "", "1001", 3313), ("phone-lookup", "", "1002", 2597),
            ("phone-lookup", "spring", "1001", 8918), ("drafts", "", "1001", 2246),
            ("phone-lookup", "", "0f1e2d3c4b5a6978", 3126),
        ]
    )
    func bucket(feature: String, salt: String, subject: String, number: Int) {
        var bucket = Bucket(feature: feature, salt: salt, subject: subject)
        let below = bucket.isWithin(number)
        let above = bucket.isWithin(number + 1)
        #expect(!below && above)
    }

    @Test("the device is asked about before login, the user after it")
    func subjects() throws {
        // Device 0f1e… is in bucket 3126 of phone-lookup, user 1001 in bucket 3313.
        let third = try rules([FeatureRule(percent: 32_00)], name: "phone-lookup")
        var subject = FeatureSubject(deviceID: "0f1e2d3c4b5a6978")
        #expect(third.answer(to: "phone-lookup", for: subject)?.enabled == true)
        subject.userID = UserID(1001)
        #expect(third.answer(to: "phone-lookup", for: subject)?.enabled == false)
    }

    @Test("who has no name is in the percentage of everybody only, and in no variation")
    func nameless() throws {
        let variations = [FeaturePlan.Variation(name: "a", weight: 1)]
        for percent in [0, 1, 9_999, 10_000] {
            let some = try rules([FeatureRule(percent: percent)], variations: variations)
            let answer = try #require(some.answer(to: "drafts", for: FeatureSubject()))
            #expect(answer.enabled == (percent == 10_000) && answer.variation == nil)
        }
    }

    @Test("a percentage is that share of all subjects, and variations share by weight")
    func shares() throws {
        let some = try rules(
            [FeatureRule(percent: 20_00)],
            variations: [.init(name: "a", weight: 1), .init(name: "b", weight: 3)]
        )
        let answers = (1...20_000).compactMap { some.answer(to: "drafts", for: user($0)) }
        let on = answers.filter(\.enabled)
        let second = on.filter { $0.variation == "b" }
        // Allow six standard deviations.
        #expect(abs(on.count - 4_000) < 340, "\(on.count)")
        #expect(abs(second.count - on.count * 3 / 4) < 165, "\(second.count) of \(on.count)")
        #expect(answers.allSatisfy { $0.enabled == ($0.variation != nil) })
    }

    @Test("two features, and two salts of one, do not depend on each other")
    func independence() throws {
        let plans = [("drafts", ""), ("drafts-2", ""), ("drafts-3", "spring")].map {
            FeaturePlan(name: $0, salt: $1, rules: [FeatureRule(percent: 50_00)])
        }
        let some = try FeatureRules(plans)
        let salted = try rules([FeatureRule(percent: 50_00)], salt: "autumn")
        var together = [0, 0, 0]
        for id in Int64(1)...20_000 {
            let answers = some.answers(to: plans.map(\.name), for: user(id)).map(\.enabled)
            let other = try isOn(user(id), salted)
            if answers[0] && answers[1] { together[0] += 1 }
            if answers[0] && answers[2] { together[1] += 1 }
            if answers[0] && other { together[2] += 1 }
        }
        #expect(together.allSatisfy { abs($0 - 5_000) < 370 }, "\(together)")
    }

    // MARK: - Raising a percentage

    /// Returns random rules that pass the check.
    private func randomPlan(_ random: inout SeededGenerator) -> FeaturePlan {
        func some<Value>(_ values: [Value]) -> [Value] {
            values.filter { _ in Int.random(in: 0..<3, using: &random) == 0 }
        }
        var plan = FeaturePlan(name: "drafts", salt: some(["spring"]).first ?? "")
        plan.variations = some(["a", "b", "c"]).map {
            .init(name: $0, weight: .random(in: 1...5, using: &random))
        }
        for _ in 0..<Int.random(in: 1...5, using: &random) {
            var rule = FeatureRule(
                systems: some(["IOS", "WEB"]),
                locales: some(["de", "en"]),
                userIDs: Set(some([1, 2, 3, 4]))
            )
            let hasPercent = plan.rules.contains { $0.percent != nil }
            switch Int.random(in: 0..<4, using: &random) {
            case 0: rule.isEnabled = false
            case 1 where !hasPercent: rule.variation = plan.variations.first?.name
            default: rule.percent = .random(in: 0...10_000, using: &random)
            }
            plan.rules.append(rule)
        }
        return plan
    }

    @Test("raising a percentage only adds subjects, and changes nobody's variation")
    func rise() throws {
        let named = ProcessInfo.processInfo.environment["TAMBOUR_SEED"].flatMap { UInt64($0) }
        let seed = named ?? .random(in: 0 ... .max)
        print("feature rules, a rise: TAMBOUR_SEED=\(seed)")
        var random = SeededGenerator(seed: seed)
        var added = 0
        for _ in 0..<300 {
            let plan = randomPlan(&random)
            var raised = plan
            for index in raised.rules.indices {
                guard let percent = raised.rules[index].percent, Bool.random(using: &random)
                else { continue }
                raised.rules[index].percent = .random(in: percent...10_000, using: &random)
            }
            let (before, after) = (try FeatureRules([plan]), try FeatureRules([raised]))
            for id in Int64(1)...100 {
                let subject = FeatureSubject(
                    userID: UserID(id),
                    system: ["IOS", "WEB", ""].randomElement(using: &random) ?? "",
                    locale: ["de", "en", ""].randomElement(using: &random) ?? ""
                )
                let old = try #require(before.answer(to: "drafts", for: subject))
                let new = try #require(after.answer(to: "drafts", for: subject))
                if old.enabled {
                    try #require(new == old, "seed \(seed): \(plan) raised to \(raised)")
                } else if new.enabled {
                    added += 1
                }
            }
        }
        #expect(added > 0)
    }

    @Test("the same rules from another file, in another process, answer the same")
    func stability() throws {
        let forward = [
            FeaturePlan(name: "drafts", rules: [FeatureRule(percent: 50_00)]),
            FeaturePlan(
                name: "stories",
                variations: [.init(name: "a", weight: 1), .init(name: "b", weight: 1)],
                rules: [FeatureRule()]
            ),
        ]
        var backward = Array(forward.reversed())
        backward[0].variations.reverse()
        backward[0] = FeaturePlan(
            name: backward[0].name,
            variations: backward[0].variations,
            rules: backward[0].rules
        )
        let (one, other) = (try FeatureRules(forward), try FeatureRules(backward))
        for id in Int64(1)...1_000 {
            let names = ["drafts", "stories"]
            #expect(
                one.answers(to: names, for: user(id)) == other.answers(to: names, for: user(id))
            )
        }
        // Never change these values: other answers would reassign the users of every running
        // experiment.
        let sample = (Int64(1)...8).map { one.answers(to: ["drafts", "stories"], for: user($0)) }
        #expect(
            sample.map { "\($0[0].enabled ? 1 : 0)\($0[1].variation ?? "-")" } == [
                "0b", "0b", "0a", "0b", "1a", "0b", "1a", "0a",
            ]
        )
    }

    // MARK: - Invalid rules

    @Test(
        "rules that break a promise are refused, naming feature and rule",
        arguments: [
            (FeaturePlan(name: "Drafts"), "Drafts: a name is lower-case"),
            (FeaturePlan(name: ""), ": a name is"),
            (FeaturePlan(name: "drafts", salt: "a|b"), "drafts: a salt is"),
            (
                FeaturePlan(name: "drafts", variations: [.init(name: "a", weight: 0)]),
                "variation a: a weight is 1 to"
            ),
            (
                FeaturePlan(
                    name: "drafts",
                    variations: [.init(name: "a", weight: 1), .init(name: "a", weight: 2)]
                ), "variation a is there twice"
            ),
            (
                FeaturePlan(
                    name: "drafts",
                    rules: [FeatureRule(), FeatureRule(isEnabled: false, percent: 1)]
                ), "drafts, rule 2: percent goes with neither"
            ),
            (
                FeaturePlan(
                    name: "drafts",
                    variations: [.init(name: "a", weight: 1)],
                    rules: [FeatureRule(variation: "a", percent: 1)]
                ), "drafts, rule 1: percent goes with neither"
            ),
            (
                FeaturePlan(
                    name: "drafts",
                    variations: [.init(name: "a", weight: 1)],
                    rules: [FeatureRule(percent: 1), FeatureRule(variation: "a")]
                ), "drafts, rule 2: a rule with a variation stands before"
            ),
            (
                FeaturePlan(name: "drafts", rules: [FeatureRule(variation: "a")]),
                "drafts, rule 1: there is no variation \"a\""
            ),
            (
                FeaturePlan(
                    name: "drafts",
                    variations: [.init(name: "a", weight: 1)],
                    rules: [FeatureRule(isEnabled: false, variation: "a")]
                ), "rule 1: what is off has no variation"
            ),
            (
                FeaturePlan(name: "drafts", rules: [FeatureRule(percent: 10_001)]),
                "rule 1: percent is not 0 to 100"
            ),
        ]
    )
    func mistakes(plan: FeaturePlan, says: String) throws {
        let mistake = #expect(throws: FeaturePlan.Mistake.self) { try FeatureRules([plan]) }
        #expect("\(try #require(mistake))".contains(says), "\(mistake as Any)")
    }

    @Test("a feature is there once")
    func twice() {
        let plan = FeaturePlan(name: "drafts")
        #expect(throws: FeaturePlan.Mistake.self) { try FeatureRules([plan, plan]) }
    }
}
