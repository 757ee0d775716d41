/// Generates `RequestError` and its codes.
struct ErrorsSource {
    let specification: Specification

    func text() -> String {
        var source = SourceText(from: "protocol-spec/errors.yaml")
        source.doc("A refusal as it is answered: a code machines read and a message people read.")
        source.block(
            "package struct RequestError: Error, Hashable, Sendable, CustomStringConvertible"
        ) { source in
            source.line("package var code: Code")
            source.doc("English; sometimes read by machines, see `Code.loginToken`.")
            source.line("package var message: String")
            source.doc(
                "In how many milliseconds the same request may succeed; nil when nobody knows."
            )
            source.line("package var retryAfterMs: Int64?")
            source.line()
            source.block("package init(code: Code, message: String, retryAfterMs: Int64? = nil)") {
                source in
                source.line("self.code = code")
                source.line("self.message = message")
                source.line("self.retryAfterMs = retryAfterMs")
            }
            source.line()
            source.line("package var description: String { \"\\(code.rawValue): \\(message)\" }")
            source.line()
            source.doc("What the peer does next.")
            source.line("package enum Class: Sendable { case soft, hard }")
            source.doc("When the same request may be sent again.")
            source.line("package enum Retry: Sendable { case never, later, afterLogin, refresh }")
            source.line()
            let languages = Specification.ErrorCode.Texts.languages
            source.doc("A language that people are told in why something was refused.")
            source.line(
                "package enum Language: String, Sendable, CaseIterable { case \(languages.joined(separator: ", ")) }"
            )
            source.line()
            source.doc("Every code there is. A code is never reused.")
            source.block("package enum Code: String, Hashable, Sendable, CaseIterable") { source in
                for error in specification.errors {
                    source.doc(error.when)
                    source.line("case \(Names.escaped(error.swiftName)) = \(literal(error.code))")
                }
                source.line()
                let common = specification.errors.filter(\.isCommon).map { ".\($0.swiftName)" }
                source.doc("What any opcode may answer.")
                source.line(
                    "package static let common: [Code] = [\(common.joined(separator: ", "))]"
                )
                source.line()
                source.doc(
                    "Soft: answered, the connection carries on. Hard: answered if possible, then closed."
                )
                source.block("package var errorClass: Class") { source in
                    let hard = specification.errors.filter { $0.errorClass == .hard }.map {
                        ".\($0.swiftName)"
                    }
                    source.block("switch self") { source in
                        if !hard.isEmpty {
                            source.line("case \(hard.joined(separator: ", ")): .hard")
                        }
                        source.line("default: .soft")
                    }
                }
                source.line()
                source.doc("When the same request may be sent again.")
                source.block("package var retry: Retry") { source in
                    source.block("switch self") { source in
                        for retry in Specification.ErrorCode.Retry.allCases {
                            let codes = specification.errors.filter { $0.retry == retry }.map {
                                ".\($0.swiftName)"
                            }
                            let name = Names.camel(fromSeparated: retry.rawValue)
                            if !codes.isEmpty {
                                source.line("case \(codes.joined(separator: ", ")): .\(name)")
                            }
                        }
                    }
                }
            }
        }
        source.line()
        source.block("extension RequestError.Code") { source in
            words(
                "text",
                "What people read; nil where nothing was written for them.",
                \.texts,
                &source
            )
            source.line()
            words(
                "title",
                "What a dialog about it is headed; nil where none is worth it.",
                \.title,
                &source
            )
        }
        source.line()
        source.block("extension RequestError") { source in
            for error in specification.errors {
                let name = Names.escaped(error.swiftName)
                source.doc(error.when)
                if let message = error.message {
                    source.line(
                        "package static let \(name) = RequestError(code: .\(error.swiftName), message: \(literal(message)))"
                    )
                }
                source.block("package static func \(name)(_ message: String) -> RequestError") {
                    source in
                    source.line("RequestError(code: .\(error.swiftName), message: message)")
                }
            }
        }
        return source.text
    }
}

extension ErrorsSource {
    private func words(
        _ name: String,
        _ doc: String,
        _ texts: KeyPath<Specification.ErrorCode, Specification.ErrorCode.Texts?>,
        _ source: inout SourceText
    ) {
        source.doc(doc)
        source.block(
            "package func \(name)(in language: RequestError.Language) -> String?"
        ) { source in
            source.block("switch (self, language)") { source in
                for error in specification.errors {
                    guard let words = error[keyPath: texts]?.words else { continue }
                    for language in Specification.ErrorCode.Texts.languages {
                        let text = literal(words[language] ?? "")
                        source.line("case (.\(error.swiftName), .\(language)): \(text)")
                    }
                }
                source.line("default: nil")
            }
        }
    }
}
