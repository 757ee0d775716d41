/// The source of the feature rules.
package struct FeatureSource: Sendable {
    /// The rules at startup.
    package var rules: FeatureRules
    /// Reads the rules again, on the admin queue; nil without a file.
    ///
    /// Throws an error in words for the person who wrote the rules.
    package var reload: (@Sendable () throws -> FeatureRules)?

    package static let none = FeatureSource(rules: .none)

    package init(rules: FeatureRules, reload: (@Sendable () throws -> FeatureRules)? = nil) {
        self.rules = rules
        self.reload = reload
    }
}
