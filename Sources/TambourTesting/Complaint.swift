package import TambourProtocol

/// Returns the text of the error that `body` throws. If `body` throws no error, returns a text with
/// the value that it returns.
package func complaint<Value>(_ body: () throws(PayloadError) -> Value) -> String {
    do throws(PayloadError) {
        return "no error: \(try body())"
    } catch {
        return error.description
    }
}
