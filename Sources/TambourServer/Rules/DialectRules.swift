import TambourProtocol

/// By what a sign-in shows which dialect its client speaks.
///
/// Only what no client of the other dialect sends counts. A missing `type`, and what a client says of itself in
/// SESSION_INIT, show nothing: libraries leave out the one and make up the other.
enum DialectRules {
    /// The dialect of the client that sent a request; nil for a request that says nothing of it.
    static func clue(in request: CommandRequest) -> Capabilities? {
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
