import Foundation
import Testing

@testable import tambour

/// Tests how the client parses the times that users type for scheduled messages.
@Suite("Times of scheduled messages")
struct LaterWordsTests {
    /// Returns the time 2026-11-25 13:00 in Tokyo, a Wednesday, and a calendar with that time zone.
    private static func clock() throws -> (now: Date, calendar: Calendar) {
        var calendar = Calendar(identifier: .gregorian)
        calendar.timeZone = try #require(TimeZone(identifier: "Asia/Tokyo"))
        let parts = DateComponents(year: 2026, month: 11, day: 25, hour: 13)
        return (try #require(calendar.date(from: parts)), calendar)
    }

    @Test(
        "times are understood as people write them, and the text follows",
        arguments: [
            ("18:30 Dinner?", "2026-11-25 18:30", "Dinner?"),
            ("9:05  Dinner", nil, ""),
            ("tomorrow 9:00 Good morning\nall", "2026-11-26 09:00", "Good morning\nall"),
            ("Today 13:01 x", "2026-11-25 13:01", "x"),
            ("today 12:59 x", nil, ""),
            ("monday 9:00 x", "2026-11-30 09:00", "x"),
            ("wed 14:00 x", "2026-11-25 14:00", "x"),
            ("wed 9:00 x", "2026-12-02 09:00", "x"),
            ("2h", "2026-11-25 15:00", ""),
            ("1h30m x", "2026-11-25 14:30", "x"),
            ("45min x", "2026-11-25 13:45", "x"),
            ("3d 18:00 is a text", "2026-11-28 13:00", "18:00 is a text"),
            ("2026-12-24 18:00 x", "2026-12-24 18:00", "x"),
            ("24.12. 18:00 x", "2026-12-24 18:00", "x"),
            ("24.11 18:00 x", "2027-11-24 18:00", "x"),
            ("2026-11-24 18:00 x", nil, ""),
            ("yesterday 18:00 x", nil, ""), ("tomorrow x", nil, ""), ("Dinner", nil, ""),
            ("0m x", nil, ""), ("24:00 x", nil, ""), ("99999999999999999999h x", nil, ""),
            ("2026-02-30 9:00 x", nil, ""), ("", nil, ""),
        ] as [(String, String?, String)]
    )
    func split(line: String, time: String?, text: String) throws {
        let (now, calendar) = try Self.clock()
        let found = try? LaterWords.split(line, now: now, calendar: calendar)
        let parts = found.map {
            calendar.dateComponents([.year, .month, .day, .hour, .minute], from: $0.time)
        }
        let shown = parts.map {
            String(
                format: "%04d-%02d-%02d %02d:%02d",
                $0.year!,
                $0.month!,
                $0.day!,
                $0.hour!,
                $0.minute!
            )
        }
        #expect(shown == time)
        #expect(found?.text ?? "" == text)
    }

    @Test("a mistake says what to write instead")
    func mistakes() throws {
        let (now, calendar) = try Self.clock()
        func mistake(_ line: String) -> String? {
            do {
                _ = try LaterWords.split(line, now: now, calendar: calendar)
                return nil
            } catch {
                return error.description
            }
        }
        #expect(mistake("9:00 x") == "9:00 has passed today; tomorrow 9:00 is the next")
        #expect(mistake("tomorrow x") == "a time of day is missing, as in tomorrow 9:00")
        #expect(mistake("Dinner?")?.contains(LaterWords.examples) == true)
        #expect(throws: LaterWords.Mistake.self) {
            try LaterWords.time(of: "18:30 x", now: now, calendar: calendar)
        }
    }
}
