import Foundation
import TambourProtocol

/// Parses the times that users type for scheduled messages.
enum LaterWords {
    /// The reason why a text does not name a future time. The user sees this text.
    struct Mistake: Error, Equatable, CustomStringConvertible {
        let description: String
    }

    static let examples = "18:30, tomorrow 9:00, 2h, 2026-12-24 18:00"

    private static let unknown = Mistake(description: "a time is needed, such as \(examples)")

    /// Splits a line into a time and the text after it.
    ///
    /// Accepts three forms: a time today, such as `18:30`; a day and a time, such as `tomorrow
    /// 9:00`, `monday 9:00`, `24.12. 18:00` or `2026-12-24 18:00`; and a delay, such as `30m`,
    /// `2h`, `1h30m` or `3d`. A weekday, or a date without a year, means the next such day.
    static func split(
        _ line: String,
        now: Date,
        calendar: Calendar
    ) throws(Mistake) -> (time: Date, text: String) {
        let (first, rest) = firstWord(of: line[...])
        if let wait = wait(String(first).lowercased()) {
            let day = calendar.date(byAdding: .day, value: wait.days, to: now) ?? now
            let time = day.addingTimeInterval(Double(wait.minutes) * 60)
            guard time > now else { throw unknown }
            return (time, String(rest))
        }
        let today = calendar.startOfDay(for: now)
        if let clock = clock(first) {
            let time = try self.time(clock, on: today, calendar)
            guard time > now else {
                throw Mistake(
                    description: "\(first) has passed today; tomorrow \(first) is the next"
                )
            }
            return (time, String(rest))
        }
        guard let day = DateWords.comingDay(String(first), today, calendar) else { throw unknown }
        let (second, text) = firstWord(of: rest)
        guard let clock = clock(second) else {
            throw Mistake(description: "a time of day is missing, as in \(first) 9:00")
        }
        let time = try self.time(clock, on: day, calendar)
        if time > now { return (time, String(text)) }
        // If the weekday is today and the time has passed, the text means the same day of the next
        // week.
        if DateWords.isWeekday(String(first)),
            let next = calendar.date(byAdding: .day, value: 7, to: day)
        {
            return (try self.time(clock, on: next, calendar), String(text))
        }
        throw Mistake(description: "\(first) \(second) has passed; name a time to come")
    }

    /// Returns the time that a text names. The text must contain nothing else.
    static func time(
        of text: String,
        now: Date,
        calendar: Calendar
    ) throws(Mistake) -> Date {
        let (time, rest) = try split(text, now: now, calendar: calendar)
        guard rest.allSatisfy(\.isWhitespace) else { throw unknown }
        return time
    }

    private static func firstWord(of line: Substring) -> (Substring, Substring) {
        let line = line.drop { $0.isWhitespace }
        let word = line.prefix { !$0.isWhitespace }
        return (word, line[word.endIndex...].drop { $0 == " " })
    }

    private static func clock(_ word: Substring) -> (hour: Int, minute: Int)? {
        guard let match = word.wholeMatch(of: /(\d{1,2}):(\d{2})/),
            let hour = Int(match.1), let minute = Int(match.2), hour < 24, minute < 60
        else { return nil }
        return (hour, minute)
    }

    private static func wait(_ word: String) -> (days: Int, minutes: Int)? {
        let parts = /(?:(\d{1,3})d)?(?:(\d{1,4})h)?(?:(\d{1,5})m(?:in)?)?/
        guard !word.isEmpty, let match = word.wholeMatch(of: parts) else { return nil }
        func number(_ part: Substring?) -> Int { part.flatMap { Int($0) } ?? 0 }
        return (number(match.1), number(match.2) * 60 + number(match.3))
    }

    private static func time(
        _ clock: (hour: Int, minute: Int),
        on day: Date,
        _ calendar: Calendar
    ) throws(Mistake) -> Date {
        let time = calendar.date(
            bySettingHour: clock.hour,
            minute: clock.minute,
            second: 0,
            of: day
        )
        guard let time else { throw unknown }
        return time
    }
}

extension Date {
    var unixMs: Int64 { Int64((timeIntervalSince1970 * 1000).rounded()) }
}
