package import TambourProtocol

/// Recognises a client's dialect by the requests of its sign-in.
///
/// Only what no client of the other dialect sends counts as evidence. A missing `type` and the
/// self-description in SESSION_INIT prove nothing: libraries omit the first and invent the second.
package enum DialectRules {
    /// Returns the dialect that a request proves; nil if it proves none.
    package static func clue(in request: CommandRequest) -> Capabilities? {
        switch request {
        case .authRequest(let request):
            if request.type != nil { return .classic }
            return request.requestType == nil ? nil : tamtam
        case .auth(let request):
            return request.authTokenType.map { $0 == "PHONE" ? tamtam : .classic }
        case .authConfirm(let request):
            return request.tokenType.map { ["AUTH", "NEW"].contains($0) ? tamtam : .classic }
        default:
            return nil
        }
    }

    private static let tamtam: Capabilities = [.classic, .tamtam]
}
