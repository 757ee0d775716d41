package import TambourProtocol

extension RequestError {
    /// Returns a copy that says when to retry.
    package func retrying(afterMs delay: Int64) -> RequestError {
        var error = self
        error.retryAfterMs = delay
        return error
    }
}
