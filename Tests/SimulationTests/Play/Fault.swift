/// The faults of a simulated play, with the numbers that docs/client-sync.md, section 8, uses.
///
/// A fault counts only when it happens. A move that tries to cause it is not enough.
enum Fault: String, CaseIterable {
    case cutAfterRequest = "F1 cut after a request was sent"
    case cutInReply = "F2 cut in the middle of an answer"
    case replyLostPushDelivered = "F3 answer lost, push to another device delivered"
    case crashBeforeCommit = "F4 server crash before COMMIT"
    case crashAfterCommit = "F4 server crash after COMMIT, before the answers"
    case wallBack = "F5 server clock an hour back"
    case wallForward = "F5 server clock a day ahead"
    case restored = "F6 a backup is restored"
    case loginsRacing = "F7 two logins of one session at once"
    case chatGoneUnderPage = "F8 chat deleted while its page is in flight"
    case slowReader = "F9 reader stalled until the session is closed"
    case away = "F10 away for 91 days"
    case entityConflict = "F11 delete of a parent, edit of its child"
    case parentRejected = "F12 parent and child made, parent rejected"
    case uploadExpired = "F13 upload expires before the send"
    case killedAtReply = "F14 killed between answer and commit"
    case wrongClock = "F15 device clock a year ahead (clock only)"
    case diskFull = "F16 disk full while something is applied"
    case codecChanged = "F17 task written by another version"
    case thresholdCrossed = "F18 chat crosses the fan-out threshold during a login"
    case clearedWhileScrolling = "F19 history cleared while it is scrolled"
    case olderPage = "F20 page older than a deletion arrives after it"
    case duplicatePush = "F21 push of what is held already"
    case loginCut = "F22 cut in the midst of a login's answer or its rest"
    case configFlip = "F23 settings flip during a login"
    case readded = "F24 removed and added again while away"
}

/// How often each fault was hit.
struct FaultCounts: Sendable {
    private(set) var counts: [String: Int] = [:]

    subscript(_ fault: Fault) -> Int { counts[fault.rawValue] ?? 0 }

    mutating func add(_ fault: Fault) { counts[fault.rawValue, default: 0] += 1 }

    mutating func add(_ other: FaultCounts) { counts.merge(other.counts, uniquingKeysWith: +) }

    var table: String {
        Fault.allCases.map { fault in
            "  \("\(self[fault])".padding(to: 9))  \(fault.rawValue)"
        }.joined(separator: "\n")
    }
}

extension String {
    fileprivate func padding(to length: Int) -> String {
        String(repeating: " ", count: max(0, length - count)) + self
    }
}
