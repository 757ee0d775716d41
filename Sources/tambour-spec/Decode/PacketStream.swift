/// Converts packets to text while their bytes arrive in pieces of any size.
///
/// An invalid header stops the decoding, because the next header cannot be found. After an invalid
/// payload, decoding continues with the next packet.
struct PacketStream {
    let text: PacketText
    /// Receives each line as soon as its packet is complete.
    let line: (String) -> Void
    /// Receives each failure: why the bytes at a position are not a valid packet.
    let failure: (PacketText.Failure) -> Void

    /// The bytes of a packet that is not complete yet. After each piece, they are fewer than the
    /// bytes of the longest legal packet.
    private(set) var held: [UInt8] = []
    /// The position in the stream of the first byte of `held`.
    private var offset = 0
    /// Whether decoding has stopped because the next packet cannot be found.
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

    /// Processes the next bytes.
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

    /// Ends the stream and reports an incomplete packet.
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
