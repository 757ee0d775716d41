import Foundation
import TambourProtocol

/// Parses the days that users type.
enum DateWords {
    /// Returns the start of a day in Unix milliseconds; nil when the text is not a day.
    ///
    /// Accepts `2026-11-23`, `23.11.2026`, `23.11`, `11-23`, `today`, `yesterday` and weekdays. A
    /// weekday, or a date without a year, means the latest such day that is not after `now`.
    static func time(of text: String, now: Date, calendar: Calendar) -> Int64? {
        let word = text.trimmingCharacters(in: .whitespaces).lowercased()
        guard !word.isEmpty else { return nil }
        let today = calendar.startOfDay(for: now)
        guard let day = day(word, today, calendar, isComing: false) else { return nil }
        return Int64(exactly: (day.timeIntervalSince1970 * 1000).rounded())
    }

    private static let weekdays = [
        "sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday",
    ]

    /// Returns the start of a day; nil if the text is not a day. The day is `today` or later,
    /// unless the text contains a year.
    ///
    /// Accepts the same texts as `time`, but `tomorrow` instead of `yesterday`. A weekday, or a
    /// date without a year, means the first such day that is not before `today`.
    static func comingDay(_ text: String, _ today: Date, _ calendar: Calendar) -> Date? {
        day(text.lowercased(), today, calendar, isComing: true)
    }

    /// Returns whether a text names a day of the week.
    static func isWeekday(_ text: String) -> Bool { weekday(text.lowercased()) != nil }

    private static func weekday(_ word: String) -> Int? {
        word.count >= 3 ? weekdays.firstIndex { $0.hasPrefix(word) } : nil
    }

    private static func day(
        _ word: String,
        _ today: Date,
        _ calendar: Calendar,
        isComing: Bool
    ) -> Date? {
        switch word {
        case "today": return today
        case "yesterday" where !isComing:
            return calendar.date(byAdding: .day, value: -1, to: today)
        case "tomorrow" where isComing: return calendar.date(byAdding: .day, value: 1, to: today)
        default: break
        }
        if let index = weekday(word) {
            let passed = (calendar.component(.weekday, from: today) - 1 - index + 7) % 7
            let days = isComing ? (7 - passed) % 7 : -passed
            return calendar.date(byAdding: .day, value: days, to: today)
        }
        let isDotted = word.contains(".")
        let parts = word.split(separator: isDotted ? "." : "-")
        guard (2...3).contains(parts.count) else { return nil }
        var numbers = parts.compactMap { Int($0) }
        guard numbers.count == parts.count else { return nil }
        if isDotted { numbers.reverse() }
        let year = numbers.count == 3 ? numbers.removeFirst() : nil
        return date(
            year: year,
            month: numbers[0],
            day: numbers[1],
            today,
            calendar,
            isComing: isComing
        )
    }

    private static func date(
        year: Int?,
        month: Int,
        day: Int,
        _ today: Date,
        _ calendar: Calendar,
        isComing: Bool
    ) -> Date? {
        let thisYear = calendar.component(.year, from: today)
        let parts = DateComponents(year: year ?? thisYear, month: month, day: day)
        guard parts.isValidDate(in: calendar), let date = calendar.date(from: parts) else {
            return nil
        }
        guard year == nil, isComing ? date < today : date > today else { return date }
        return calendar.date(byAdding: .year, value: isComing ? 1 : -1, to: date)
    }
}
