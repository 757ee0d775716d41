/// Stands in for HTTP until the server takes uploads: it makes up a token and carries no byte anywhere.
///
/// A server does not know such a token, and refuses the message that names it.
package struct StandInUpload: PhotoUpload {
    package init() {}

    package func upload(
        _ file: PhotoFile,
        path: String,
        key: String,
        from offset: Int64,
        reached: @escaping @Sendable (Int64) -> Void
    ) async throws(PhotoError) -> PhotoToken {
        reached(file.bytes)
        return PhotoToken("stand-in\(key)", goodFor: .seconds(3600))
    }
}
