import TambourMessenger
import TambourProtocol

/// The features that one client named, and the server's decisions about them.
///
/// The decisions stay the same until the client logs in, repeats SESSION_INIT, or the rules change.
/// Only the session's lane touches this object. Clients that name no feature have no such object.
final class SessionFeatures {
    private let names: [String]
    private let device: FeatureSubject
    /// The decisions in the order of the feature names. Unknown features are omitted.
    private(set) var answers: [SessionFeature] = []
    /// The features of the specification that are off for this client.
    private(set) var off: Features = []

    /// - Returns: nil when SESSION_INIT contains no valid feature name.
    init?(_ hello: SessionInitRequest) {
        names = Set(hello.features ?? []).filter(FeaturePlan.isName).sorted()
        let agent = hello.userAgent
        device = FeatureSubject(
            deviceID: hello.deviceID ?? "",
            system: agent?.deviceType ?? "",
            appVersion: agent?.appVersion ?? "",
            locale: agent?.locale ?? agent?.deviceLocale ?? ""
        )
        if names.isEmpty { return nil }
    }

    /// Evaluates the rules.
    ///
    /// - Parameter user: nil before login.
    /// - Returns: whether a decision changed.
    @discardableResult
    func decide(by rules: FeatureRules, for user: UserID?) -> Bool {
        var subject = device
        subject.userID = user
        let answers = rules.answers(to: names, for: subject)
        guard answers != self.answers else { return false }
        self.answers = answers
        off = Features(names: answers.filter { !$0.enabled }.map(\.type))
        return true
    }
}
