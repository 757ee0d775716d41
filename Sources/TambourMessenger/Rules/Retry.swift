package import TambourProtocol

extension RequestError {
    /// Returns a copy that contains the delay before a retry.
    package func retrying(afterMs delay: Int64) -> RequestError {
        var error = self
        error.retryAfterMs = delay
        return error
    }
}
