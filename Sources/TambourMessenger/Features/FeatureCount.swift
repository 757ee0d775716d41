/// The number of connections with each answer about a feature.
package struct FeatureCount: Sendable, Equatable {
    package var on = 0
    package var off = 0

    package init(on: Int = 0, off: Int = 0) {
        self.on = on
        self.off = off
    }
}
