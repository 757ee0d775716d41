import TambourMessenger
import TambourProtocol

extension RequestError.Language {
    /// Chooses Russian for locales whose users read Russian, and English for all other locales.
    /// Returns nil for clients without a locale.
    init?(locale: String?) {
        guard let locale, !locale.isEmpty else { return nil }
        self = LocaleName("ru").covers(LocaleName(locale)) ? .ru : .en
    }
}

extension ErrorReply {
    /// Creates the wire form of a refusal.
    init(_ error: RequestError, in language: RequestError.Language?) {
        self.init(
            error: Text(error.code.rawValue),
            message: Text(error.message),
            localizedMessage: language.flatMap { error.code.text(in: $0) }.map { Text($0) },
            title: language.flatMap { error.code.title(in: $0) }.map { Text($0) },
            retryAfter: error.retryAfterMs
        )
    }
}
