/// What a task of a photo has its host do: it takes longer than a transaction may.
package struct PhotoWork: Sendable {
    package enum Step: Sendable {
        /// Copy a file, as `PhotoFile.keep` does.
        case keep(source: String, path: String)
        /// Upload a copy, as `PhotoUpload` says.
        case upload(PhotoFile, path: String, key: String, offset: Int64)
    }

    package let run: TaskRun
    package let step: Step
}

/// How such work goes.
package enum PhotoReport: Sendable {
    /// The copy is there.
    case kept(PhotoFile)
    /// An upload that breaks off now goes on from this byte.
    case reached(Int64)
    case uploaded(PhotoToken)
    case failed(PhotoError)
}
