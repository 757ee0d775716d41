import TambourProtocol

/// The features that one client build named, and what it was answered about them.
///
/// Answers stay as they are until it logs in, says SESSION_INIT again, or other rules come. Touched
/// on the lane of its session only; clients that name nothing have none.
final class SessionFeatures {
    private let names: [String]
    private let device: FeatureSubject
    /// In the order of their names; names that nobody knows are left out.
    private(set) var answers: [SessionFeature] = []
    /// Those of the specification that are off for this client.
    private(set) var off: Features = []

    /// - Returns: nil when no feature could ever have such a name.
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

    /// Asks the rules.
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
