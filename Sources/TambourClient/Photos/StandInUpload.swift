/// Replaces the HTTP upload until the server accepts uploads. Invents a token and uploads nothing.
///
/// The server does not recognise this token, and refuses the message that contains it.
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
