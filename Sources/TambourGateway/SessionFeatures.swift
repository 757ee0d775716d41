import TambourMessenger
import TambourProtocol

/// The features that one client named, and the answers it got.
///
/// Answers stay the same until the client logs in, sends SESSION_INIT again, or the rules change.
/// Touched only on the session's lane; clients that name no feature have none.
final class SessionFeatures {
    private let names: [String]
    private let device: FeatureSubject
    /// In the order of their names; unknown names are omitted.
    private(set) var answers: [SessionFeature] = []
    /// The features of the specification that are off for this client.
    private(set) var off: Features = []

    /// - Returns: nil when none of the names is a valid feature name.
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
    /// - Returns: whether an answer changed.
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
