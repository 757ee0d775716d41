import Foundation
import TambourProtocol
import Testing

@testable import TambourClient

/// The core with a simulated network, server and uploads that the test controls.
@Suite("A photo that is sent")
struct PhotoTests {
    private let desk: PhotoDesk

    init() throws { desk = try PhotoDesk() }

    @Test("is copied offline, uploaded when logged in, named by its message, and then forgotten")
    func journey() throws {
        desk.isReachable = false
        desk.start()
        try desk.sendPhoto(desk.photo(), caption: "look")
        let row = try #require(try desk.rows().last)
        #expect(row.text == "look")
        #expect(row.attachments == ["[photo]"])
        #expect(row.state == .waiting)
        #expect(desk.works.count == 1)
        try desk.keepPhoto()
        #expect(desk.copies().count == 1)
        #expect(desk.works.isEmpty)

        desk.isReachable = true
        desk.pass(ms: 120_000)
        #expect(desk.uploads.map(\.offset) == [0])
        #expect(desk.sendings == 0)
        #expect(try desk.preview() == "look [photo]")
        try desk.finishUpload(.uploaded(PhotoToken("t1", goodFor: .seconds(60))))
        #expect(desk.messages.map(\.token) == ["t1"])
        #expect(desk.messages.map { $0.request.message.attaches.first?.type } == [.photo])
        #expect("\(desk.messages[0].message.text)" == "look")
        let sent = try desk.rows()
        #expect(sent.map(\.id) == [row.id])
        #expect(sent.map(\.state) == [.sent])
        #expect(sent.map(\.attachments) == [["[photo]"]])
        #expect(try desk.taskCount() == 0)
        #expect(desk.copies().isEmpty)
    }

    @Test("is copied for its owner's eyes alone")
    func modes() throws {
        desk.start()
        let source = try desk.photo(bytes: 200_000)
        try desk.sendPhoto(source)
        try desk.keepPhoto()
        let folder = "\(desk.directory)/account.db.photos"
        let copy = "\(folder)/\(try #require(desk.copies().first))"
        let manager = FileManager.default
        #expect(manager.contentsEqual(atPath: copy, andPath: source))
        let modes = try [folder, copy].map {
            try manager.attributesOfItem(atPath: $0)[.posixPermissions] as? Int
        }
        #expect(modes == [0o700, 0o600])
    }

    @Test("is not overtaken by what is written behind it, and holds up no other chat")
    func order() throws {
        desk.start()
        try desk.sendPhoto(desk.photo(), caption: "first")
        try desk.sendText("second", to: desk.chat)
        try desk.sendText("elsewhere", to: desk.other)
        try desk.keepPhoto()
        #expect(desk.messages.map { "\($0.message.text)" } == ["elsewhere"])
        try desk.finishUpload(.uploaded(PhotoToken("t1", goodFor: .seconds(60))))
        let texts = desk.messages.map { "\($0.message.text)" }
        #expect(texts == ["elsewhere", "first", "second"])
    }

    @Test("is uploaded after the one before it, so that others may do what they like meanwhile")
    func oneAtATime() throws {
        desk.start()
        for number in 1...5 {
            try desk.sendPhoto(desk.photo("\(number).jpg"), caption: "\(number)")
            try desk.keepPhoto()
        }
        try desk.sendText("elsewhere", to: desk.other)
        for number in 1...5 {
            #expect(desk.uploads.count == 1)
            let token = PhotoToken("t\(number)", goodFor: .seconds(60))
            try desk.finishUpload(.uploaded(token))
        }
        let texts = desk.messages.map { "\($0.message.text)" }
        #expect(texts == ["elsewhere", "1", "2", "3", "4", "5"])
        #expect(desk.messages.map(\.token) == [nil, "t1", "t2", "t3", "t4", "t5"])
    }

    @Test("goes on where the upload was when the process was killed")
    func resumed() throws {
        try desk.startWithPhoto()
        try desk.reachUpload(40)
        let first = desk.uploads.map(\.key)
        try desk.restart()
        #expect(desk.uploads.map(\.offset) == [40])
        #expect(desk.uploads.map(\.key) == first)
        try desk.reachUpload(70)
        try desk.finishUpload(.failed(PhotoError(.networkLost, "it broke")))
        #expect(desk.works.isEmpty)
        desk.pass(ms: 1000)
        #expect(desk.uploads.map(\.offset) == [70])
        try desk.finishUpload(.uploaded(PhotoToken("t1", goodFor: .seconds(60))))
        #expect(desk.messages.count == 1)
    }

    @Test("survives a death before each of its steps")
    func killed() throws {
        desk.start()
        try desk.sendPhoto(desk.photo())
        try desk.restart()
        try desk.keepPhoto()
        try desk.restart()
        desk.losesAnswers = true
        try desk.finishUpload(.uploaded(PhotoToken("t1", goodFor: .seconds(60))))
        #expect(desk.messages.count == 1)
        #expect(try desk.lastState() == .waiting)
        desk.losesAnswers = false
        try desk.restart()
        #expect(desk.sendings == 2)
        #expect(desk.messages.map(\.token) == ["t1"])
        #expect(try desk.rows().map(\.state) == [.sent])
        #expect(try desk.taskCount() == 0)
        #expect(desk.copies().isEmpty)
    }

    @Test(
        "is uploaded again, from its beginning, when the token expired before the message was sent"
    )
    func expired() throws {
        try desk.startWithPhoto()
        try desk.reachUpload(100)
        let first = try #require(desk.uploads.first?.key)
        desk.isReachable = false
        desk.loseConnection()
        try desk.finishUpload(.uploaded(PhotoToken("t1", goodFor: .seconds(60))))
        desk.isReachable = true
        desk.pass(ms: 60_000)
        #expect(desk.sendings == 0)
        #expect(desk.uploads.map(\.offset) == [0])
        #expect(desk.uploads.map(\.key) != [first])
        try desk.finishUpload(.uploaded(PhotoToken("t2", goodFor: .seconds(60))))
        #expect(desk.messages.map(\.token) == ["t2"])
        #expect(desk.sendings == 1)
        #expect(try desk.taskCount() == 0)
    }

    @Test("is uploaded again when it was refused and its token had expired by then")
    func expiredOnTheWay() throws {
        desk.start()
        desk.refusal = .errorMessageInvalid
        try desk.sendPhoto(desk.photo())
        try desk.keepPhoto()
        desk.beforeAnswer = { [unowned desk] in desk.nowMs += 5 }
        try desk.finishUpload(.uploaded(PhotoToken("t2", goodFor: .milliseconds(3))))
        #expect(try desk.lastState() == .waiting)
        desk.beforeAnswer = nil
        desk.refusal = nil
        try desk.finishUpload(.uploaded(PhotoToken("t3", goodFor: .seconds(60))))
        #expect(desk.messages.map(\.token) == ["t3"])
    }

    @Test("stays in the chat when the server refuses it, can be tried again, and dropped")
    func refused() throws {
        desk.start()
        desk.refusal = .errorMessageInvalid
        let photo = try desk.sendPhoto(desk.photo())
        try desk.sendText("behind", to: desk.other)
        try desk.upload()
        #expect(try desk.lastState() == .failed(reason: "no"))
        #expect(desk.copies().count == 1)
        let before = desk.sendings
        try desk.wish { core, tx in try core.retry(photo, tx) }
        #expect(desk.sendings == before + 1)
        #expect(desk.uploads.isEmpty)
        #expect(try desk.lastState() == .failed(reason: "no"))
        try desk.wish { core, tx in try core.cancel(photo, tx) }
        #expect(try desk.rows().isEmpty)
        #expect(desk.copies().isEmpty)

        desk.refusal = nil
        let again = try desk.sendPhoto(desk.photo())
        desk.refusal = .errorMessageInvalid
        try desk.upload()
        desk.refusal = nil
        try desk.wish { core, tx in try core.retry(again, tx) }
        #expect(try desk.rows().map(\.state) == [.sent])
        #expect(desk.messages.map(\.token) == ["t1"])
        #expect(desk.copies().isEmpty)
    }

    @Test("that is none fails its message, and lets pass what is behind")
    func noPhoto() throws {
        desk.start()
        let path = "\(desk.directory)/letter.txt"
        try Data("hello".utf8).write(to: URL(filePath: path))
        let photo = try desk.sendPhoto(path)
        try desk.sendText("behind", to: desk.chat)
        try desk.keepPhoto()
        let reason = "\(path) is no photo: JPEG, PNG, GIF and WebP are"
        #expect(try desk.lastState() == .failed(reason: reason))
        #expect(desk.messages.map { "\($0.message.text)" } == ["behind"])
        #expect(desk.copies().isEmpty)

        _ = try desk.photo("letter.txt")
        try desk.wish { core, tx in try core.retry(photo, tx) }
        try desk.upload()
        #expect(desk.messages.map(\.token) == [nil, "t1"])
        #expect(try desk.taskCount() == 0)
    }

    @Test("that cannot be uploaded fails its message, and is dropped whole")
    func notUploaded() throws {
        let photo = try desk.startWithPhoto()
        try desk.finishUpload(.failed(PhotoError(.never, "too large")))
        #expect(try desk.lastState() == .failed(reason: "too large"))
        #expect(desk.copies().count == 1)
        try desk.wish { core, tx in try core.cancel(photo, tx) }
        #expect(try desk.taskCount() == 0)
        #expect(try desk.rows().isEmpty)
        #expect(desk.copies().isEmpty)
    }

    @Test("can be taken back at every step", arguments: 0...3)
    func cancelled(step: Int) throws {
        desk.isReachable = step > 1
        desk.start()
        let photo = try desk.sendPhoto(desk.photo())
        try desk.sendText("behind", to: desk.chat)
        if step > 0 { try desk.keepPhoto() }
        if step > 2 { try desk.reachUpload(40) }
        let works = desk.works
        try desk.wish { core, tx in try core.cancel(photo, tx) }
        #expect(try desk.rows().map(\.text) == ["behind"])
        #expect(desk.works.isEmpty)
        #expect(desk.givenUp.isSuperset(of: works.map(\.run)))
        #expect(desk.copies().isEmpty)
        // Work that was in progress may still finish.
        for work in works {
            desk.keep(work)
            desk.finish(work, .uploaded(PhotoToken("t1", goodFor: .seconds(60))))
        }
        #expect(desk.copies().isEmpty)
        desk.isReachable = true
        desk.pass(ms: 120_000)
        #expect(desk.messages.map { "\($0.message.text)" } == ["behind"])
        #expect(try desk.taskCount() == 0)
    }

    @Test("whose upload is silent for long is given up and taken up again")
    func stalled() throws {
        try desk.startWithPhoto()
        for _ in 0..<4 { desk.pass(ms: 25_000) }
        try desk.reachUpload(40)
        let stalled = try #require(desk.works.first)
        for _ in 0..<4 { desk.pass(ms: 25_000) }
        #expect(desk.works.map(\.run) == [stalled.run])
        desk.pass(ms: 25_000)
        #expect(desk.givenUp == [stalled.run])
        #expect(desk.uploads.map(\.offset) == [40])
        desk.finish(stalled, .uploaded(PhotoToken("late", goodFor: .seconds(60))))
        #expect(desk.messages.isEmpty)
        try desk.finishUpload(.uploaded(PhotoToken("t1", goodFor: .seconds(60))))
        #expect(desk.messages.map(\.token) == ["t1"])
    }

    @Test("is given back when the client stops, and nothing of it outlives signing out")
    func stopped() throws {
        try desk.startWithPhoto()
        try desk.reachUpload(40)
        let run = try #require(desk.works.first?.run)
        desk.core?.stop()
        desk.settle()
        #expect(desk.givenUp == [run])
        #expect(desk.works.isEmpty)
        desk.start()
        #expect(desk.uploads.map(\.offset) == [40])
        try desk.core?.signOut()
        desk.settle()
        #expect(desk.works.isEmpty)
        #expect(desk.copies().isEmpty)
    }

    @Test("leaves no copy behind though the process died before it could remove it")
    func strays() throws {
        try desk.startWithPhoto()
        let folder = "\(desk.directory)/account.db.photos"
        let kept = desk.copies()
        for stray in ["-17", "-17.part", "\(try #require(kept.first)).part"] {
            try Data([1]).write(to: URL(filePath: "\(folder)/\(stray)"))
        }
        try desk.restart()
        #expect(desk.copies() == kept)
    }

    @Test("of a kind that another version wrote is kept and waits")
    func otherVersion() throws {
        desk.isReachable = false
        try desk.startWithPhoto()
        try desk.wish { _, tx in try tx.execute("UPDATE task SET codecVersion = 9") }
        try desk.restart()
        #expect(try desk.rows().count == 1)
        #expect(desk.copies().count == 1)
        try desk.wish { _, tx in try tx.execute("UPDATE task SET codecVersion = 1") }
        desk.isReachable = true
        try desk.restart()
        try desk.finishUpload(.uploaded(PhotoToken("t1", goodFor: .seconds(60))))
        #expect(desk.messages.map(\.token) == ["t1"])
    }
}
