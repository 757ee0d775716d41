import TambourTesting

/// The moves and settings of one run. All follow from the seed, and any move can be left out.
struct Plan {
    let seed: UInt64
    var devices: [(user: Int, index: Int)] = []
    var limits: [String: Int] = [:]
    var chatsAtOnce = 40
    var historyPage = 50
    /// The longest time, in microseconds, until the server notices a connection that its device
    /// gave up.
    var serverLagUs: Int64 = 1_000_000
    /// Whether the first user also writes entities.
    var hasEntities = false
    var moves: [Move] = []

    /// Lower seeds play no moves of `addMore`, which adds entities and rare moves.
    static let firstWithEntities: UInt64 = 4_000_000
    /// Lower seeds send no photos and play no simultaneous moves.
    static let firstWithPhotos: UInt64 = 6_000_000
    /// Lower seeds never let two devices of one person change the same contact, profile, draft or
    /// setting at once.
    static let firstWithOwnTogether: UInt64 = 7_000_000
    /// Lower seeds have no comments.
    static let firstWithComments: UInt64 = 8_000_000
    /// The first seed that plays everything.
    static let first = firstWithComments

    init(seed: UInt64) {
        self.seed = seed
        var random = SeededGenerator(seed: seed)
        let users = 2 + random.below(2)
        for user in 0..<users { devices.append((user, 0)) }
        if devices.count < 4, random.chance(700, in: 1000) { devices.append((0, 1)) }
        if devices.count < 4, random.chance(300, in: 1000) { devices.append((1, 1)) }
        chatsAtOnce = [1, 2, 5, 40][random.below(4)]
        historyPage = [3, 7, 20, 50][random.below(4)]
        serverLagUs = [1000, 1_000_000, 60_000_000][random.below(3)]
        limits["fanOutMembers"] = [2, 3, 32][random.below(3)]
        limits["maxBatchCommands"] = [1, 4, 256][random.below(3)]
        if random.chance(250, in: 1000) { limits["maxOutboundPushBytes"] = 1500 }
        // In a calm run, one move in ten is a fault; in other runs, one in three.
        let isCalm = random.chance(150, in: 1000)
        let count = 12 + random.below(50)
        // Most runs begin with a group of all users.
        if random.chance(850, in: 1000) {
            moves.append(Move(kind: .createChat, afterMs: 0, a: 0, b: users - 2, c: 1))
        }
        for _ in 0..<count {
            let kind =
                random.chance(isCalm ? 100 : 350, in: 1000)
                ? Move.Kind.faults[random.below(Move.Kind.faults.count)]
                : Move.Kind.wishes[random.below(Move.Kind.wishes.count)]
            moves.append(
                Move(
                    kind: kind,
                    afterMs: random.chance(600, in: 1000)
                        ? random.from(0, to: 30)
                        : random.from(0, to: random.chance(900, in: 1000) ? 800 : 20_000),
                    a: random.below(1 << 20),
                    b: random.below(1 << 20),
                    c: random.below(1 << 20)
                )
            )
        }
        if hasMoreMoves { addMore() }
        if seed >= Self.firstWithPhotos {
            addPhotos()
            addTogether()
        }
        if seed >= Self.firstWithOwnTogether { addOwnTogether() }
        if seed >= Self.firstWithComments { addComments() }
    }

    var hasMoreMoves: Bool { seed >= Self.firstWithEntities }

    /// Inserts entity moves and more of the rare moves.
    private mutating func addMore() {
        // Use a separate generator, so that the seed's other moves stay the same.
        var random = SeededGenerator(seed: ~seed)
        var kinds = [Move.Kind](repeating: .deleteDuringPage, count: 2)
        hasEntities = random.chance(600, in: 1000)
        if hasEntities {
            if !devices.contains(where: { $0 == (0, 1) }) { devices.append((0, 1)) }
            if random.chance(200, in: 1000) { limits["maxObjects"] = 3 + random.below(8) }
            if random.chance(300, in: 1000) { limits["objectsPageSize"] = 1 + random.below(4) }
            for _ in 0..<(10 + random.below(40)) {
                let kind = Move.Kind.entities[random.below(Move.Kind.entities.count)]
                kinds.insert(kind, at: random.below(kinds.count + 1))
            }
            kinds.insert(.account, at: 0)
        }
        spread(kinds, &random)
    }

    /// Inserts photo moves.
    private mutating func addPhotos() {
        var random = SeededGenerator(seed: seed.byteSwapped)
        guard random.chance(400, in: 1000) else { return }
        let photos = [Move.Kind](repeating: .photo, count: 1 + random.below(4))
        let changes = (0..<random.below(4)).map { _ in
            Move.Kind.photos[random.below(Move.Kind.photos.count)]
        }
        spread(photos + changes, &random)
    }

    private mutating func addTogether() {
        var random = SeededGenerator(seed: ~seed.byteSwapped)
        let kinds = (0..<random.below(6)).map { _ in
            Move.Kind.together[random.below(Move.Kind.together.count)]
        }
        spread(kinds, &random)
    }

    private mutating func addOwnTogether() {
        var random = SeededGenerator(seed: seed.byteSwapped &+ 1)
        let kinds = (0..<random.below(8)).map { _ in
            Move.Kind.ownTogether[random.below(Move.Kind.ownTogether.count)]
        }
        spread(kinds, &random)
    }

    /// Adds a channel to some runs, with comments of its readers.
    private mutating func addComments() {
        var random = SeededGenerator(seed: seed.byteSwapped &+ 2)
        guard random.chance(500, in: 1000) else { return }
        let users = devices.map(\.user).max() ?? 0
        moves.insert(Move(kind: .createChat, afterMs: 0, a: 0, b: users - 1, c: 5), at: 0)
        let kinds = (0..<(4 + random.below(16))).map { _ in
            Move.Kind.comments[random.below(Move.Kind.comments.count)]
        }
        spread([.openComments] + kinds, &random)
    }

    /// Inserts moves among the existing moves, in the given order.
    private mutating func spread(_ kinds: [Move.Kind], _ random: inout SeededGenerator) {
        var place = 0
        for (number, kind) in kinds.enumerated() {
            let left = kinds.count - number
            place = min(moves.count, place + random.below(1 + 2 * (moves.count - place) / left))
            let move = Move(
                kind: kind,
                afterMs: random.from(0, to: random.chance(800, in: 1000) ? 30 : 800),
                a: random.below(1 << 20),
                b: random.below(1 << 20),
                c: random.below(1 << 20)
            )
            moves.insert(move, at: place)
            place += 1
        }
    }

    /// Returns the same plan with only some of the moves.
    func keeping(_ moves: [Move]) -> Plan {
        var plan = self
        plan.moves = moves
        return plan
    }
}

/// An action to try. The numbers of a move select from the objects that exist when the move runs.
struct Move: CustomStringConvertible {
    enum Kind: String {
        case send, burst, reply, forward, edit, delete, deleteForMe, react, unreact, markRead
        case markUnread, draft, createChat, title, pin, addMember, removeMember, leave, hide, mute
        case favourite, contact, profile, look, scrollBack, lookAway, cancel, retry
        case clear, clearForAll, deleteChat, editAndDelete
        case cut, cutQuietly, stall, slow, offline, networkChanged, kill, killAtCommit
        case killAfterCommit, diskFull, crash, crashAtCommit, crashAfterCommit, wallBack
        case wallForward, deviceClock, backup, restore, awayForMonths, otherCodec, raceLogins
        case deleteUnderPage, clearUnderPage, crossThreshold, flipDuringLogin, readdWhileAway
        case manyChats, newsDuringLogin, deleteDuringPage
        case account, makeProfile, makeFamily, editProfile, deleteProfile, note, editNote
        case deleteNote, preference, editPreference, deletePreference, measure, resolve
        case photo, cancelPhoto, retryPhoto
        case reactTogether, editTogether, readTogether, leaveTogether
        case comment, openComments, deleteComments
        case contactTogether, profileTogether, draftTogether, muteTogether

        /// Actions of people; repeated entries are more frequent.
        static let wishes: [Kind] = [
            .send, .send, .send, .send, .send, .send, .burst, .reply, .forward, .edit, .edit,
            .delete, .delete, .deleteForMe, .react, .react, .unreact, .markRead, .markRead,
            .markUnread, .draft, .draft, .createChat, .title, .pin, .addMember, .removeMember,
            .leave, .hide, .mute, .favourite, .contact, .profile, .look, .look, .scrollBack,
            .lookAway, .cancel, .retry, .clear, .clearForAll, .deleteChat, .editAndDelete,
        ]
        /// Actions on entities.
        static let entities: [Kind] = [
            .account, .makeProfile, .makeProfile, .makeFamily, .makeFamily, .editProfile,
            .deleteProfile, .deleteProfile, .note, .note, .note, .note, .editNote, .editNote,
            .editNote, .editNote, .editNote, .deleteNote, .deleteNote, .preference, .preference,
            .editPreference, .editPreference, .deletePreference, .measure, .measure, .resolve,
            .resolve,
        ]
        /// Actions on photos.
        static let photos: [Kind] = [.photo, .cancelPhoto, .retryPhoto]
        /// Actions of two users at once.
        static let together: [Kind] = [
            .reactTogether, .editTogether, .readTogether, .leaveTogether,
        ]
        /// Actions on comments.
        static let comments: [Kind] = [
            .comment, .comment, .comment, .comment, .openComments, .deleteComments,
        ]
        /// Simultaneous actions of two devices of one person.
        static let ownTogether: [Kind] = [
            .contactTogether, .profileTogether, .draftTogether, .muteTogether,
        ]
        /// Faults of devices, network and server.
        static let faults: [Kind] = [
            .cut, .cut, .cut, .cutQuietly, .stall, .slow, .offline, .offline, .networkChanged,
            .kill, .killAtCommit, .killAtCommit, .killAfterCommit, .diskFull, .crash,
            .crashAtCommit, .crashAtCommit, .crashAfterCommit, .crashAfterCommit, .wallBack,
            .wallForward, .deviceClock, .backup, .backup, .restore, .awayForMonths, .otherCodec,
            .raceLogins, .deleteUnderPage, .clearUnderPage, .crossThreshold, .crossThreshold,
            .flipDuringLogin, .readdWhileAway, .readdWhileAway, .readdWhileAway, .manyChats,
            .newsDuringLogin, .newsDuringLogin, .deleteDuringPage, .deleteDuringPage,
        ]
    }

    let kind: Kind
    /// The delay after the previous move, in milliseconds.
    let afterMs: Int64
    let a: Int
    let b: Int
    let c: Int

    var description: String { "+\(afterMs) \(kind.rawValue) \(a) \(b) \(c)" }
}
