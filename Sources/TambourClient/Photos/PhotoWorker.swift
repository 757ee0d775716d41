import Dispatch

/// Performs the long-running work of photo tasks: copies on its own queue, uploads as Swift tasks.
///
/// Its functions must be called on one lane. It reports on any thread.
final class PhotoWorker {
    private let upload: any PhotoUpload
    private let copying = DispatchQueue(label: "tambour.client.photos", qos: .utility)
    private var uploads: [TaskRun: Task<Void, Never>] = [:]

    init(_ upload: any PhotoUpload) { self.upload = upload }

    func begin(_ work: PhotoWork, report: @escaping @Sendable (PhotoReport) -> Void) {
        switch work.step {
        case .keep(let source, let path):
            copying.async {
                do throws(PhotoError) {
                    report(.kept(try PhotoFile.keep(source, as: path)))
                } catch {
                    report(.failed(error))
                }
            }
        case .upload(let file, let path, let key, let offset):
            let upload = upload
            uploads[work.run] = Task {
                do throws(PhotoError) {
                    let token = try await upload.upload(
                        file,
                        path: path,
                        key: key,
                        from: offset,
                        reached: { report(.reached($0)) }
                    )
                    report(.uploaded(token))
                } catch {
                    report(.failed(error))
                }
            }
        }
    }

    /// Drops a run, and cancels its upload if it is still running.
    func giveUp(_ run: TaskRun) {
        uploads.removeValue(forKey: run)?.cancel()
    }
}
