/// The number of connections for which a feature is on, and the number for which it is off.
package struct FeatureCount: Sendable, Equatable {
    package var on = 0
    package var off = 0

    package init(on: Int = 0, off: Int = 0) {
        self.on = on
        self.off = off
    }
}
