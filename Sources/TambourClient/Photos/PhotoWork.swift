/// Work that a photo task leaves to the host, because it takes longer than a transaction may.
package struct PhotoWork: Sendable {
    package enum Step: Sendable {
        /// Copy a file, as `PhotoFile.keep` does.
        case keep(source: String, path: String)
        /// Upload a copy with `PhotoUpload`.
        case upload(PhotoFile, path: String, key: String, offset: Int64)
    }

    package let run: TaskRun
    package let step: Step
}

/// A report about `PhotoWork`.
package enum PhotoReport: Sendable {
    /// The copy is complete.
    case kept(PhotoFile)
    /// A later attempt can continue from this byte.
    case reached(Int64)
    case uploaded(PhotoToken)
    case failed(PhotoError)
}
