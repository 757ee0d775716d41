package import TambourProtocol

/// Recognises a client's dialect by the requests of its sign-in.
///
/// Only requests that clients of the other dialect never send count as evidence. A missing `type`
/// and the self-description in SESSION_INIT prove nothing: libraries omit the `type` and invent the
/// self-description.
package enum DialectRules {
    /// Returns the dialect that a request proves; nil if the request proves neither dialect.
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
