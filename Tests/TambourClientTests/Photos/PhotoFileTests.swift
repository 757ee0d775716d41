import Foundation
import Synchronization
import TambourTesting
import Testing

@testable import TambourClient

@Suite("The copy of a photo")
struct PhotoFileTests {
    private static let signatures: [(PhotoFile.Kind, [UInt8])] = [
        (.jpeg, [0xFF, 0xD8, 0xFF, 0xE0]),
        (.png, [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]),
        (.gif, Array("GIF89a".utf8)),
        (.webp, Array("RIFF\u{1}\u{2}\u{3}\u{4}WEBP".utf8)),
    ]

    private func inDirectory(_ body: (String) throws -> Void) throws {
        let directory = try TestServer.temporaryDirectory()
        defer { try? FileManager.default.removeItem(atPath: directory) }
        try body(directory)
    }

    @Test("knows kinds by their first bytes, whatever the name")
    func kinds() {
        for (kind, bytes) in Self.signatures {
            #expect(PhotoFile.Kind(firstBytes: bytes + [0, 0]) == kind)
            #expect(PhotoFile.Kind(firstBytes: bytes.dropLast()) != kind || kind == .jpeg)
        }
        #expect(PhotoFile.Kind(firstBytes: [0xFF, 0xD8]) == nil)
        #expect(PhotoFile.Kind(firstBytes: Array("RIFF\u{1}\u{2}\u{3}\u{4}WAVE".utf8)) == nil)
        #expect(PhotoFile.Kind(firstBytes: []) == nil)
    }

    @Test("says what it is and how large, and replaces a half one of before")
    func kept() throws {
        try inDirectory { directory in
            let bytes = Self.signatures[1].1 + [UInt8](repeating: 3, count: 150_000)
            try Data(bytes).write(to: URL(filePath: "\(directory)/a"))
            let copy = "\(directory)/copies/1"
            try FileManager.default.createDirectory(
                atPath: "\(directory)/copies",
                withIntermediateDirectories: false
            )
            try Data(repeating: 1, count: 300_000).write(to: URL(filePath: copy + ".part"))
            let file = try PhotoFile.keep("\(directory)/a", as: copy)
            #expect(file == PhotoFile(kind: .png, bytes: Int64(bytes.count)))
            #expect(try Data(contentsOf: URL(filePath: copy)) == Data(bytes))
            #expect(!FileManager.default.fileExists(atPath: copy + ".part"))
        }
    }

    @Test("is not made of what is no photo, and waits for no pipe")
    func refused() throws {
        try inDirectory { directory in
            func check(_ name: String, _ words: String) {
                let copy = "\(directory)/copies/1"
                let error = #expect(throws: PhotoError.self) {
                    try PhotoFile.keep("\(directory)/\(name)", as: copy)
                }
                #expect(error?.retry == .never)
                #expect(error?.reason.contains(words) == true, "\(error?.reason ?? "")")
                let left = try? FileManager.default.contentsOfDirectory(
                    atPath: "\(directory)/copies"
                )
                #expect((left ?? []).isEmpty)
            }
            check("nothing", "No such file")
            check("", "is not a file")
            mkfifo("\(directory)/pipe", 0o600)
            check("pipe", "is not a file")
            try Data().write(to: URL(filePath: "\(directory)/empty"))
            check("empty", "is no photo")
            try Data("some words".utf8).write(to: URL(filePath: "\(directory)/words"))
            check("words", "is no photo")
            try Data(Self.signatures[0].1).write(to: URL(filePath: "\(directory)/large"))
            truncate("\(directory)/large", Int(PhotoFile.maxBytes) + 1)
            check("large", "larger than 32 MiB")
        }
    }

    @Test("is carried nowhere by the stand-in, which makes up a token")
    func standIn() async throws {
        let reached = Mutex<[Int64]>([])
        let token = try await StandInUpload().upload(
            PhotoFile(kind: .jpeg, bytes: 12),
            path: "/nowhere",
            key: "-5~1",
            from: 0,
            reached: { offset in reached.withLock { $0.append(offset) } }
        )
        #expect(token == PhotoToken("stand-in-5~1", goodFor: .seconds(3600)))
        #expect(reached.withLock { $0 } == [12])
    }
}
