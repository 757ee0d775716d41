import TambourProtocol

/// The history of the places that the user has visited. The user can step back and forward in it.
struct Places: Equatable {
    struct Place: Equatable {
        let chat: ChatID
        /// The message at this place; nil for the newest message.
        let message: MessageID?
    }

    private var back: [Place] = []
    private var forward: [Place] = []

    private static let kept = 100

    /// Records that the user leaves `place` for another place.
    mutating func leave(_ place: Place) {
        if back.last != place { back.append(place) }
        if back.count > Self.kept { back.removeFirst() }
        forward = []
    }

    /// Removes the places in a chat that no longer exists.
    mutating func forget(_ chat: ChatID) {
        back.removeAll { $0.chat == chat }
        forward.removeAll { $0.chat == chat }
    }

    /// - Parameter place: The current place.
    /// - Returns: The previous place; nil at the beginning.
    mutating func goBack(from place: Place) -> Place? {
        guard let last = back.popLast() else { return nil }
        forward.append(place)
        return last
    }

    mutating func goForward(from place: Place) -> Place? {
        guard let next = forward.popLast() else { return nil }
        back.append(place)
        return next
    }
}
