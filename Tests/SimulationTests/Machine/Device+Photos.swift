import TambourProtocol
import TambourTesting

@testable import TambourClient

/// Simulates the host's photo work outside the lane. No file is copied and no bytes are sent.
extension Device {
    func begin(_ work: PhotoWork) {
        photoRuns.insert(work.run)
        loop.hash.add("photo \(name)")
        switch work.step {
        case .keep(let source, _):
            guard let number = world.photos.number(ofSource: source) else {
                return world.violated("\(name) copies \(source)")
            }
            let file = world.photos.file(of: number)
            loop.after(loop.random.from(1000, to: 400_000)) { [weak self] in
                self?.tell(.kept(file), of: work.run)
            }
        case .upload(let file, _, let key, let offset):
            world.uploadBegins(file, key: key, from: offset)
            carry(file, key, from: offset, work.run)
        }
    }

    func giveUp(_ run: TaskRun) { photoRuns.remove(run) }

    private func tell(_ report: PhotoReport, of run: TaskRun) {
        guard photoRuns.contains(run) else { return }
        if case .reached = report {} else { photoRuns.remove(run) }
        _ = call { $0.photos.reported(report, by: run) }
    }

    /// Simulates the upload of a photo, one piece at a time.
    private func carry(_ file: PhotoFile, _ key: String, from offset: Int64, _ run: TaskRun) {
        loop.after(loop.random.from(10_000, to: 1_000_000)) { [weak self] in
            guard let self, photoRuns.contains(run) else { return }
            let lost = PhotoReport.failed(PhotoError(.later, "no network"))
            guard !isOffline else { return tell(lost, of: run) }
            let reached = min(file.bytes, offset + 1 + file.bytes / 3)
            world.photos.hold(reached, of: key)
            guard reached == file.bytes else {
                tell(.reached(reached), of: run)
                return carry(file, key, from: reached, run)
            }
            let token = world.photos.token(of: file, key: key, nowMs: loop.nowMs)
            // The server's answer is lost.
            if loop.random.chance(200, in: 1000) { return tell(lost, of: run) }
            if world.photos.uploads(of: file) == 1, loop.random.chance(400, in: 1000) {
                loseNetwork(forUs: loop.random.from(1_000_000, to: 30_000_000))
            }
            world.photos.told(key, of: file)
            tell(.uploaded(token), of: run)
        }
    }
}
