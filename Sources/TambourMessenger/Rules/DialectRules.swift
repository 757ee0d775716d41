package import TambourProtocol

/// Recognises the dialect of a client from its requests during sign-in.
///
/// A request is evidence for one dialect only if clients of the other dialect never send it. A
/// missing `type` proves nothing, because libraries omit it. The self-description in SESSION_INIT
/// proves nothing either, because libraries invent it.
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
