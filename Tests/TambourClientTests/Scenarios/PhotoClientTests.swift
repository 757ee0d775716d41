import Foundation
import Synchronization
import TambourProtocol
import TambourTesting
import Testing

@testable import TambourClient

/// Photos with the real server, which does not accept them yet.
@Suite("A client that sends a photo")
struct PhotoClientTests {
    private func photo(in world: World) throws -> String {
        let path = "\(world.directory)/photo.jpg"
        try Data([0xFF, 0xD8, 0xFF] + [UInt8](repeating: 7, count: 1000)).write(
            to: URL(filePath: path)
        )
        return path
    }

    private func copies(in world: World) -> [String] {
        let folder = "\(world.directory)/tambour.db.photos"
        return (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
    }

    @Test("is told that the server takes none, and keeps it until it is dropped")
    func refused() async throws {
        try await withWorld { world in
            let (alice, bob, chat) = try world.aliceAndBob()
            let client = try await world.onlineClient(of: alice)
            let photo = try await client.sendPhoto(
                at: try photo(in: world),
                caption: "look",
                to: chat
            )
            #expect(try client.waiting().map(\.kind) == [.message("look [photo]")])
            try await client.send("behind", to: chat)
            let push = try bob.next(.notifMessage, as: NotifMessage.self)
            #expect("\(push.message.text)" == "behind")
            try await client.until("refused") { try $0.failure(of: photo) != nil }
            let reason = try client.failure(of: photo)
            let row = try client.history(of: chat).rows.first { $0.outgoing == photo }
            #expect(row?.text == "look" && row?.state == .failed(reason: reason ?? ""))
            #expect(try client.waiting().map(\.failure) == [reason])
            #expect(copies(in: world).count == 1)

            try await client.retry(photo)
            try await client.until("refused again") { client in
                try client.queueLength() == 0 && client.failure(of: photo) == reason
            }
            try await client.cancel(photo)
            #expect(try client.waiting().isEmpty)
            try await client.until("sent") { try $0.history(of: chat).rows.map(\.state) == [.sent] }
            #expect(copies(in: world).isEmpty)
        }
    }

    /// An upload that makes no progress until it is cancelled.
    private final class EndlessUpload: PhotoUpload {
        enum Step { case begun, brokenOff }

        let steps: AsyncStream<Step>
        private let log: AsyncStream<Step>.Continuation

        init() { (steps, log) = AsyncStream.makeStream() }

        func upload(
            _ file: PhotoFile,
            path: String,
            key: String,
            from offset: Int64,
            reached: @escaping @Sendable (Int64) -> Void
        ) async throws(PhotoError) -> PhotoToken {
            log.yield(.begun)
            let (never, end) = AsyncStream<Void>.makeStream()
            await withTaskCancellationHandler {
                for await _ in never {}
            } onCancel: {
                end.finish()
            }
            log.yield(.brokenOff)
            throw PhotoError(.networkLost, "broken off")
        }
    }

    @Test("breaks the upload off when the message is taken back")
    func brokenOff() async throws {
        try await withWorld { world in
            let (alice, bob, chat) = try world.aliceAndBob()
            let upload = EndlessUpload()
            let client = try await world.onlineClient(of: alice) { $0.photoUpload = upload }
            let photo = try await client.sendPhoto(at: try photo(in: world), to: chat)
            var steps = upload.steps.makeAsyncIterator()
            #expect(await steps.next() == .begun)
            try await client.send("behind", to: chat)
            try await client.cancel(photo)
            #expect(await steps.next() == .brokenOff)
            let push = try bob.next(.notifMessage, as: NotifMessage.self)
            #expect("\(push.message.text)" == "behind")
            try await client.until("done") { try $0.queueLength() == 0 }
            #expect(copies(in: world).isEmpty)
        }
    }
}
