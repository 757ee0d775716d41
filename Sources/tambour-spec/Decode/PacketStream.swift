/// Packets as text while they come, in whatever pieces.
///
/// What is wrong with a header ends the work: nobody knows where the next one begins. What is wrong with a payload
/// does not.
struct PacketStream {
    let text: PacketText
    /// Takes each line as soon as its packet is whole.
    let line: (String) -> Void
    /// Takes every reason why bytes are no packet.
    let failure: (PacketText.Failure) -> Void

    /// What has come of a packet that is not whole: between two pieces less than the longest legal packet.
    private(set) var held: [UInt8] = []
    /// How many bytes came before those.
    private var offset = 0
    /// Whether nobody knows where a next packet begins.
    private(set) var isOver = false

    init(
        _ text: PacketText,
        line: @escaping (String) -> Void,
        failure: @escaping (PacketText.Failure) -> Void
    ) {
        self.text = text
        self.line = line
        self.failure = failure
    }

    /// Takes the bytes that come next.
    mutating func take(_ piece: [UInt8]) {
        guard !isOver else { return }
        held += piece
        var begin = 0
        while let header = header(at: begin) {
            if let reason = text.problem(of: header) {
                fail(at: offset + begin, reason)
                return
            }
            let end = begin + PacketText.headerSize + header.length
            guard end <= held.count else { break }
            do throws(PacketText.Failure) {
                let payload = Array(held[(begin + PacketText.headerSize)..<end])
                try text.decode(header, payload, at: offset + begin, line: line)
            } catch {
                failure(error)
            }
            begin = end
        }
        held.removeFirst(begin)
        offset += begin
    }

    /// Says that no more comes.
    mutating func end() {
        guard !isOver, !held.isEmpty else { return }
        guard let header = header(at: 0) else {
            let size = PacketText.headerSize
            fail(at: offset, "cut short: a header has \(size) bytes, \(held.count) left")
            return
        }
        let left = held.count - PacketText.headerSize
        fail(at: offset, "cut short: the payload has \(header.length) bytes, \(left) left")
    }

    private func header(at begin: Int) -> PacketText.Header? {
        let bytes = held[begin...].prefix(PacketText.headerSize)
        return bytes.count == PacketText.headerSize ? PacketText.Header(bytes) : nil
    }

    private mutating func fail(at offset: Int, _ reason: String) {
        isOver = true
        held = []
        failure(PacketText.Failure(offset: offset, reason: reason))
    }
}
