/// A 64-bit id of one kind. Ids of different kinds do not mix, and none is an integer literal.
package protocol WireID: WireValue, Hashable, Comparable, CustomStringConvertible {
    /// The number as it travels.
    var rawValue: Int64 { get }
    /// The id with this number.
    init(_ rawValue: Int64)
}

extension WireID {
    /// Reads an integer or a string of decimal digits: existing clients send both.
    package static func read(
        from reader: inout MessagePackReader
    ) throws(PayloadError) -> Self {
        Self(try reader.readID())
    }

    package func write(to writer: inout MessagePackWriter) {
        writer.writeInt(rawValue)
    }
}

/// Who: a person or a bot.
public struct UserID: WireID, Hashable, Comparable, Sendable, CustomStringConvertible {
    public let rawValue: Int64

    public init(_ rawValue: Int64) { self.rawValue = rawValue }

    public var description: String { String(rawValue) }

    public static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}

/// Where: groups and channels are negative, a dialog is named by both its users (`A xor B`).
///
/// So a dialog's id is the same number for both, but unique only for the user who asks: `1 xor 2` is
/// `4 xor 7`. The dialog with oneself, the saved messages, is 0 for everybody.
public struct ChatID: WireID, Hashable, Comparable, Sendable, CustomStringConvertible {
    public let rawValue: Int64

    public init(_ rawValue: Int64) { self.rawValue = rawValue }

    public var description: String { String(rawValue) }

    public static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }

    /// The dialog of two users, or the saved messages of one.
    public static func dialog(_ a: UserID, _ b: UserID) -> ChatID {
        ChatID(a.rawValue ^ b.rawValue)
    }

    /// Whether it names a group or a channel, whoever asks.
    public var isGroup: Bool { rawValue < 0 }

    /// The bit that tells the ids of channels from those of groups, in their magnitude.
    package static let channelBit: Int64 = 2_048

    /// Whether it names a channel: its messages name no sender.
    public var isChannel: Bool { isGroup && rawValue.magnitude & UInt64(Self.channelBit) != 0 }

    /// Who is on the other side of the dialog that this id means to `user`: the user itself in saved
    /// messages, nil where it names a group.
    public func partner(of user: UserID) -> UserID? {
        isGroup ? nil : UserID(rawValue ^ user.rawValue)
    }
}

/// Which message: unique everywhere, rising per chat.
///
///     63                                        16 15            0
///     ┌───────────────────────────────────────────┬──────────────┐
///     │ time of the message, Unix ms              │ counter      │
///     └───────────────────────────────────────────┴──────────────┘
///
/// Clients rely on the layout: they take the time of a message they do not hold from its id.
public struct MessageID: WireID, Hashable, Comparable, Sendable, CustomStringConvertible {
    public let rawValue: Int64

    public init(_ rawValue: Int64) { self.rawValue = rawValue }

    public var description: String { String(rawValue) }

    public static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }

    /// The times that ids have room for, Unix milliseconds: until the year 6429.
    package static let times: ClosedRange<Int64> = 0...(.max >> 16)

    /// The id of a message of that millisecond; a time that ids have no room for becomes the nearest one.
    package init(timeMs: Int64, counter: UInt16) {
        let timeMs = min(max(timeMs, .min >> 16), Self.times.upperBound)
        rawValue = timeMs << 16 | Int64(counter)
    }

    /// The time of the message, Unix milliseconds.
    public var timeMs: Int64 { rawValue >> 16 }

    /// The smallest id above this one; the largest id stays, as clients may name any 64-bit number.
    package var next: MessageID { MessageID(rawValue + 1) }

    /// The largest id below this one; the smallest id stays.
    package var before: MessageID { MessageID(rawValue - 1) }
}
