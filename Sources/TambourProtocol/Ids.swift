/// A 64-bit id of one kind. Ids of different kinds do not mix, and integer literals do not convert
/// to ids.
package protocol WireID: WireValue, WireKey, Comparable {
    /// The number on the wire.
    var rawValue: Int64 { get }
    /// The id with this number.
    init(_ rawValue: Int64)
}

extension WireID {
    /// Reads an integer or a string of decimal digits, because clients send both forms.
    package static func read(
        from reader: inout MessagePackReader
    ) throws(PayloadError) -> Self {
        Self(try reader.readID())
    }

    package func write(to writer: inout MessagePackWriter) {
        writer.writeInt(rawValue)
    }

    package static func readKey(
        from reader: inout MessagePackReader
    ) throws(PayloadError) -> Self {
        try read(from: &reader)
    }

    package func writeKey(to writer: inout MessagePackWriter) {
        writer.writeDecimalKey(rawValue)
    }
}

/// The id of a user: a person or a bot.
public struct UserID: WireID, Hashable, Comparable, Sendable, CustomStringConvertible {
    public let rawValue: Int64

    public init(_ rawValue: Int64) { self.rawValue = rawValue }

    public var description: String { String(rawValue) }

    public static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}

/// The id of a chat. It is negative for groups and channels. For a dialog, it is the xor of the two
/// user ids.
///
/// A dialog therefore has the same id for both users. But the id is unique only among the chats of
/// one user, because `1 xor 2` equals `4 xor 7`. The saved messages are a user's dialog with
/// themselves, so their id is 0 for everybody.
public struct ChatID: WireID, Hashable, Comparable, Sendable, CustomStringConvertible {
    public let rawValue: Int64

    public init(_ rawValue: Int64) { self.rawValue = rawValue }

    public var description: String { String(rawValue) }

    public static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }

    /// The dialog of two users, or the saved messages of one user.
    public static func dialog(_ a: UserID, _ b: UserID) -> ChatID {
        ChatID(a.rawValue ^ b.rawValue)
    }

    /// Whether the id belongs to a group or a channel.
    public var isGroup: Bool { rawValue < 0 }

    /// The bit in the magnitude of an id that distinguishes channels from groups.
    package static let channelBit: Int64 = 2_048

    /// Whether the id belongs to a channel. Messages in a channel name no sender.
    public var isChannel: Bool { isGroup && rawValue.magnitude & UInt64(Self.channelBit) != 0 }

    /// Returns the partner of `user` in the dialog with this id. Returns `user` for saved messages,
    /// and nil for a group.
    public func partner(of user: UserID) -> UserID? {
        isGroup ? nil : UserID(rawValue ^ user.rawValue)
    }
}

/// The id of a message: globally unique, ascending in each chat.
///
///     63                                        16 15            0
///     ┌───────────────────────────────────────────┬──────────────┐
///     │ time of the message, Unix ms              │ counter      │
///     └───────────────────────────────────────────┴──────────────┘
///
/// Clients rely on the layout: they derive the time of a missing message from its id.
public struct MessageID: WireID, Hashable, Comparable, Sendable, CustomStringConvertible {
    public let rawValue: Int64

    public init(_ rawValue: Int64) { self.rawValue = rawValue }

    public var description: String { String(rawValue) }

    public static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }

    /// The times that fit into ids, in Unix milliseconds. They end in the year 6429.
    package static let times: ClosedRange<Int64> = 0...(.max >> 16)

    /// Makes the id of a message at the time `timeMs`. If the time does not fit into an id, uses
    /// the nearest time that fits.
    package init(timeMs: Int64, counter: UInt16) {
        let timeMs = min(max(timeMs, .min >> 16), Self.times.upperBound)
        rawValue = timeMs << 16 | Int64(counter)
    }

    /// The time of the message, in Unix milliseconds.
    public var timeMs: Int64 { rawValue >> 16 }

    /// The next larger id. For the largest id, it is the largest id itself, because the sum
    /// saturates. Clients may send any 64-bit number.
    package var next: MessageID { MessageID(rawValue + 1) }

    /// The next smaller id. For the smallest id, it is the smallest id itself.
    package var before: MessageID { MessageID(rawValue - 1) }
}
