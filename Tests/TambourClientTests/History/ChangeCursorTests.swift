import Testing

@testable import TambourClient

/// Examples for docs/client-sync.md, section 6.6; `HistoryWorldTests` uses cursors too.
@Suite("The cursor of message changes never skips one")
struct ChangeCursorTests {
    private var cursor = ChangeCursor(sinceMs: 10)

    @Test("it moves on to where a reply ends, and stays in its millisecond while there is more")
    mutating func advances() {
        cursor.advance(past: MessageChanges(timeMs: 15, next: at(3)), asked: cursor)
        #expect(cursor == ChangeCursor(sinceMs: 15, behind: at(3)))
        cursor.advance(past: MessageChanges(timeMs: 20), asked: cursor)
        #expect(cursor == ChangeCursor(sinceMs: 20))
    }

    @Test("a reply to an earlier cursor does not move it back")
    mutating func doubled() {
        let asked = cursor
        let reply = MessageChanges(timeMs: 15, next: at(3))
        cursor.advance(past: reply, asked: asked)
        cursor.advance(past: MessageChanges(timeMs: 20), asked: cursor)
        cursor.advance(past: reply, asked: asked)
        #expect(cursor == ChangeCursor(sinceMs: 20))
    }

    @Test("a login that does not bring the chat moves it to the login's time")
    mutating func skips() {
        cursor.skip(unchangedSinceMs: 10, throughMs: 30)
        #expect(cursor == ChangeCursor(sinceMs: 30))
        cursor.skip(unchangedSinceMs: 5, throughMs: 20)
        #expect(cursor == ChangeCursor(sinceMs: 30), "never back")
    }

    @Test("a login's mark that is behind the cursor says nothing of what is between")
    mutating func doesNotSkip() {
        cursor.skip(unchangedSinceMs: 11, throughMs: 30)
        #expect(cursor == ChangeCursor(sinceMs: 10))
        var midway = ChangeCursor(sinceMs: 10, behind: at(3))
        midway.skip(unchangedSinceMs: 5, throughMs: 30)
        #expect(midway == ChangeCursor(sinceMs: 10, behind: at(3)))
    }
}
