package import TambourProtocol

/// The rules that decide for which subjects each feature is on. A pure value.
///
/// The same rules make the same decision about a subject on every server and after every restart.
/// If an author raises a percentage, the feature stays on for its earlier subjects, and they keep
/// their variations. `init` refuses rules that would break this.
package struct FeatureRules: Sendable, Hashable {
    private let plans: [String: FeaturePlan]
    /// The features of the specification that are off for everybody, even for clients that do not
    /// name them.
    package let killed: Features

    /// The empty rules: every feature of the specification is on.
    package static let none = FeatureRules(plans: [:])

    /// - Parameter plans: the plan of each feature. A feature of the specification without a plan
    ///   is on.
    /// - Throws: the first `Mistake`, with its feature and rule.
    package init(_ plans: [FeaturePlan]) throws(FeaturePlan.Mistake) {
        var byName: [String: FeaturePlan] = [:]
        for plan in plans {
            try plan.check()
            guard byName.updateValue(plan, forKey: plan.name) == nil else {
                throw FeaturePlan.Mistake(feature: plan.name, reason: "is there twice")
            }
        }
        self.init(plans: byName)
    }

    private init(plans: [String: FeaturePlan]) {
        self.plans = plans
        killed = Features(names: plans.values.filter(\.isKilled).map(\.name))
    }

    /// The sorted names of all known features.
    package var names: [String] {
        Set(plans.keys).union(Features.table.map(\.name)).sorted()
    }

    /// One line for each known feature.
    package var summary: [String] {
        names.map { name in
            guard let plan = plans[name] else { return "\(name): on, no rules" }
            return "\(name): " + (plan.isKilled ? "killed" : "\(plan.rules.count) rules")
        }
    }

    /// Returns the decision about each known feature in `names`, in the same order.
    package func answers(to names: [String], for subject: FeatureSubject) -> [SessionFeature] {
        names.compactMap { answer(to: $0, for: subject) }
    }

    /// - Returns: nil for an unknown feature.
    package func answer(to name: String, for subject: FeatureSubject) -> SessionFeature? {
        guard let plan = plans[name] else {
            guard Features.table.contains(where: { $0.name == name }) else { return nil }
            return SessionFeature(type: name, enabled: true)
        }
        return plan.answer(for: subject)
    }
}

/// The rules of one feature.
package struct FeaturePlan: Sendable, Hashable {
    package var name: String
    /// Whether the feature is off for everybody, whatever the rules say.
    package var isKilled: Bool
    /// The salt of the buckets. A new salt assigns the subjects of this feature to different
    /// buckets.
    package var salt: String
    /// The variations of the feature, possibly none. Each subject of the feature gets one of them.
    /// They are sorted by name, so that the order in a file does not matter.
    package var variations: [Variation] {
        didSet { variations.sort { $0.name < $1.name } }
    }
    /// The first rule that fits decides. If no rule fits, the feature is off.
    package var rules: [FeatureRule]

    package struct Variation: Sendable, Hashable {
        package var name: String
        /// The variation's share of the sum of all weights.
        package var weight: Int

        package init(name: String, weight: Int) {
            self.name = name
            self.weight = weight
        }
    }

    /// A mistake in the rules.
    package struct Mistake: Error, Hashable, CustomStringConvertible {
        package let feature: String
        /// The rule's index, from 0; nil for a mistake that concerns the whole feature.
        package let rule: Int?
        package let reason: String

        init(feature: String, rule: Int? = nil, reason: String) {
            self.feature = feature
            self.rule = rule
            self.reason = reason
        }

        package var description: String {
            feature + (rule.map { ", rule \($0 + 1)" } ?? "") + ": \(reason)"
        }
    }

    private static let maxNameBytes = 64
    private static let maxWeight = 1_000_000

    package init(
        name: String,
        isKilled: Bool = false,
        salt: String = "",
        variations: [Variation] = [],
        rules: [FeatureRule] = []
    ) {
        self.name = name
        self.isKilled = isKilled
        self.salt = salt
        self.variations = variations.sorted { $0.name < $1.name }
        self.rules = rules
    }

    /// Returns whether the text is a valid name of a feature or variation: lower-case letters,
    /// digits and hyphens.
    package static func isName(_ name: String) -> Bool {
        guard let first = name.utf8.first, name.utf8.count <= maxNameBytes else { return false }
        let letters = UInt8(ascii: "a")...UInt8(ascii: "z")
        let digits = UInt8(ascii: "0")...UInt8(ascii: "9")
        return letters.contains(first)
            && name.utf8.allSatisfy {
                letters.contains($0) || digits.contains($0) || $0 == UInt8(ascii: "-")
            }
    }

    func check() throws(Mistake) {
        func mistake(_ reason: String, rule: Int? = nil) -> Mistake {
            Mistake(feature: name, rule: rule, reason: reason)
        }
        let pattern = "lower-case letters, digits and hyphens, at most \(Self.maxNameBytes)"
        guard Self.isName(name) else { throw mistake("a name is \(pattern)") }
        guard salt.isEmpty || Self.isName(salt) else { throw mistake("a salt is \(pattern)") }
        var names: Set<String> = []
        for variation in variations {
            guard Self.isName(variation.name) else {
                throw mistake("variation \"\(variation.name)\": a name is \(pattern)")
            }
            guard names.insert(variation.name).inserted else {
                throw mistake("variation \(variation.name) is there twice")
            }
            guard (1...Self.maxWeight).contains(variation.weight) else {
                throw mistake("variation \(variation.name): a weight is 1 to \(Self.maxWeight)")
            }
        }
        var hasPercent = false
        for (index, rule) in rules.enumerated() {
            if let percent = rule.percent {
                guard (0...Bucket.count).contains(percent) else {
                    throw mistake("percent is not 0 to 100", rule: index)
                }
                // Refuse a percentage together with a variation or with `enabled: false`. A higher
                // percentage would then change the variation of some subjects, or switch the
                // feature off for them.
                guard rule.isEnabled, rule.variation == nil else {
                    throw mistake(
                        "percent goes with neither \"enabled: false\" nor a variation",
                        rule: index
                    )
                }
                hasPercent = true
            }
            guard let variation = rule.variation else { continue }
            guard rule.isEnabled else {
                throw mistake("what is off has no variation", rule: index)
            }
            guard names.contains(variation) else {
                throw mistake("there is no variation \"\(variation)\"", rule: index)
            }
            guard !hasPercent else {
                throw mistake(
                    "a rule with a variation stands before those with percent",
                    rule: index
                )
            }
        }
    }

    func answer(for subject: FeatureSubject) -> SessionFeature {
        var bucket = Bucket(feature: name, salt: salt, subject: subject.name)
        guard !isKilled, let rule = rules.first(where: { $0.fits(subject, &bucket) }),
            rule.isEnabled
        else { return SessionFeature(type: name, enabled: false) }
        return SessionFeature(
            type: name,
            enabled: true,
            variation: rule.variation ?? bucket.share(of: variations)
        )
    }
}

/// One rule of a feature. The rule fits a subject when all conditions of the rule fit.
package struct FeatureRule: Sendable, Hashable {
    /// Whether the feature is on for the subjects that the rule fits.
    package var isEnabled: Bool
    /// The variation of the subjects that the rule fits; nil to choose by weight.
    package var variation: String?
    /// The share of subjects that the rule fits, in hundredths of a percent (0 to 10,000); nil for
    /// all subjects.
    package var percent: Int?
    /// Kinds of device as in SESSION_INIT, in upper case. An empty set means any kind.
    package var systems: Set<String>
    package var appVersion: AppVersionRange?
    /// Languages. For example, `de` also fits de-AT. An empty set means any language.
    package var locales: Set<LocaleName>
    /// Users. An empty set means any user. Before login the user is unknown, so a set with users
    /// fits no client.
    package var userIDs: Set<Int64>

    package init(
        isEnabled: Bool = true,
        variation: String? = nil,
        percent: Int? = nil,
        systems: [String] = [],
        appVersion: AppVersionRange? = nil,
        locales: [String] = [],
        userIDs: Set<Int64> = []
    ) {
        self.isEnabled = isEnabled
        self.variation = variation
        self.percent = percent
        self.systems = Set(systems.map { $0.uppercased() })
        self.appVersion = appVersion
        self.locales = Set(locales.map(LocaleName.init))
        self.userIDs = userIDs
    }

    func fits(_ subject: FeatureSubject, _ bucket: inout Bucket) -> Bool {
        if !systems.isEmpty, !systems.contains(subject.system) { return false }
        if let appVersion {
            guard let version = subject.appVersion, appVersion.contains(version) else {
                return false
            }
        }
        if !locales.isEmpty, !locales.contains(where: { $0.covers(subject.locale) }) {
            return false
        }
        if !userIDs.isEmpty {
            guard let user = subject.userID, userIDs.contains(user.rawValue) else { return false }
        }
        return percent.map { bucket.isWithin($0) } ?? true
    }
}
