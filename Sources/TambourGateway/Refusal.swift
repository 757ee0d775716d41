import TambourMessenger
import TambourProtocol

extension RequestError.Language {
    /// Russian for those who read it, English for all others; nil for clients that named no locale.
    init?(locale: String?) {
        guard let locale, !locale.isEmpty else { return nil }
        self = LocaleName("ru").covers(LocaleName(locale)) ? .ru : .en
    }
}

extension ErrorReply {
    /// A refusal as it goes out.
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
