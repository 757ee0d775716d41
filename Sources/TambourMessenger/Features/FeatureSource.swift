/// The source of the feature rules.
package struct FeatureSource: Sendable {
    /// The rules at startup.
    package var rules: FeatureRules
    /// Reloads the rules. The server calls it on the admin queue. It is nil when the rules do not
    /// come from a file.
    ///
    /// Throws an error whose text is written for the author of the rules.
    package var reload: (@Sendable () throws -> FeatureRules)?

    package static let none = FeatureSource(rules: .none)

    package init(rules: FeatureRules, reload: (@Sendable () throws -> FeatureRules)? = nil) {
        self.rules = rules
        self.reload = reload
    }
}
