package import TambourProtocol

/// What an error says; what was read if there was none.
package func complaint<Value>(_ body: () throws(PayloadError) -> Value) -> String {
    do throws(PayloadError) {
        return "no error: \(try body())"
    } catch {
        return error.description
    }
}
