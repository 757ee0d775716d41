import TambourProtocol

/// The reasons that a report can give.
enum ReportReason: Int64, CaseIterable {
    case spam = 1
    case fraud
    case insult
    case violence
    case adult
    case illegal
    case impersonation
    case other

    /// The version of the English list. The version of the Russian list is one higher. When a list
    /// changes, increase this number by 2.
    static let version: Int64 = 1
    /// The numbers that clients use for the kinds of reported subjects.
    static let kinds: ClosedRange<Int64> = 1...8

    func title(in language: RequestError.Language) -> String {
        switch (self, language) {
        case (.spam, .en): "Spam"
        case (.spam, .ru): "Спам"
        case (.fraud, .en): "Fraud"
        case (.fraud, .ru): "Мошенничество"
        case (.insult, .en): "Insults or threats"
        case (.insult, .ru): "Оскорбления или угрозы"
        case (.violence, .en): "Violence"
        case (.violence, .ru): "Насилие"
        case (.adult, .en): "Adult content"
        case (.adult, .ru): "Материалы для взрослых"
        case (.illegal, .en): "Illegal goods or services"
        case (.illegal, .ru): "Запрещённые товары или услуги"
        case (.impersonation, .en): "Pretends to be somebody else"
        case (.impersonation, .ru): "Выдаёт себя за другого"
        case (.other, .en): "Something else"
        case (.other, .ru): "Другое"
        }
    }
}
