import TambourFraming
import TambourProtocol

/// Checks that the decoder returns the same frames, wherever the stream is cut into pieces. Also
/// checks that no payload inflates beyond its limit.
func fuzzFrames(_ input: [UInt8]) {
    guard let first = input.first else { return }
    let isStranger = first & 1 == 0
    let cut = Int(first >> 1)
    let stream = Array(input.dropFirst())
    var decoder = FrameDecoder(limits: .standard)
    decoder.authenticated = !isStranger

    let whole = frames(of: stream, cuts: [stream.count], decoder)
    let pieces = Array(stride(from: cut + 1, to: stream.count, by: cut + 1)) + [stream.count]
    guard whole == frames(of: stream, cuts: pieces, decoder) else {
        broken("the frames depend on where the stream was cut")
    }
    let limit =
        isStranger ? Limits.standard.maxFrameBytesBeforeLogin : Limits.standard.maxInflatedBytes
    for case .frame(_, let payload?) in whole where payload.count > limit {
        broken("\(payload.count) bytes inflated, limit \(limit)")
    }
}

private enum FrameEvent: Equatable {
    /// A frame and its payload. The payload is nil if the decoder has refused it.
    case frame(PacketHeader, [UInt8]?)
    case refused(String)
}

/// Returns the frames and errors of a stream that arrives in pieces. Each piece ends at a position
/// in `cuts`.
private func frames(of stream: [UInt8], cuts: [Int], _ decoder: FrameDecoder) -> [FrameEvent] {
    var events: [FrameEvent] = []
    var consumed = 0
    for cut in cuts {
        var offset = 0
        let isRefused = stream[consumed..<cut].withUnsafeBytes { bytes in
            do throws(FrameError) {
                while let frame = try decoder.next(in: bytes, from: &offset) {
                    let payload = try? frame.payload(
                        limits: .standard,
                        authenticated: decoder.authenticated
                    )
                    events.append(.frame(frame.header, payload))
                }
                return false
            } catch {
                events.append(.refused("\(error)"))
                return true
            }
        }
        if isRefused { return events }
        consumed += offset
    }
    return events
}

/// Checks that a block does not inflate beyond the limit. Also compresses the content, inflates it
/// again, and checks that the bytes are the same.
func fuzzLZ4(_ input: [UInt8]) {
    let limit = Limits.standard.maxInflatedBytes
    guard let bytes = try? input.withUnsafeBytes({ try LZ4.decompress($0, limit: limit) }) else {
        return
    }
    guard bytes.count <= limit else { broken("\(bytes.count) bytes inflated, limit \(limit)") }
    guard let block = bytes.withUnsafeBytes({ LZ4.compress($0) }) else { return }
    let again = try? block.withUnsafeBytes { try LZ4.decompress($0, limit: limit) }
    guard again == bytes else { broken("compressed bytes come back as others") }
}

/// Checks that `skip` accepts every value that `AnyValue` accepts, and that `AnyValue` keeps the
/// bytes of the input unchanged. A message that decodes must be the same after encoding and
/// decoding.
func fuzzMessagePack(_ input: [UInt8]) {
    let small = Limits.narrow
    for limits in [Limits.standard, small] {
        let isSkipped = (try? read(input, limits) { r throws(PayloadError) in try r.skip() }) != nil
        let kept = try? read(input, limits) { r throws(PayloadError) in try AnyValue.read(from: &r)
        }
        if let kept {
            guard isSkipped else { broken("a value is kept that cannot be stepped over") }
            guard kept.bytes.array == input else {
                broken("a kept value is not the bytes that came")
            }
            _ = (kept.isNil, kept.bool, kept.int, kept.text, kept.isScalar)
        }
        // Read the same bytes as each kind of container.
        _ = try? read(input, limits) { r throws(PayloadError) in try [AnyValue].read(from: &r) }
        _ = try? read(input, limits) { r throws(PayloadError) in
            try IDMap<ChatID, AnyValue>.read(from: &r)
        }
        _ = try? read(input, limits) { r throws(PayloadError) in
            try NameMap<AnyValue>.read(from: &r)
        }
        _ = try? read(input, limits) { r throws(PayloadError) in try FieldValue.read(from: &r) }
        if let text = try? read(input, limits, { r throws(PayloadError) in try r.readText() }) {
            guard Text(validating: text.bytes) != nil else { broken("a text that is not UTF-8") }
        }
        if let message = try? read(
            input,
            limits,
            { r throws(PayloadError) in
                try Message.read(from: &r)
            }
        ) {
            check(message)
        }
    }
}

/// Decodes a request, encodes it, decodes the result and encodes it again. Checks that both
/// encodings are equal.
func fuzzRequest(_ input: [UInt8]) {
    guard input.count >= 2 else { return }
    // Map the two bytes to a served opcode, because most numbers are not served.
    let number = Int(input[0]) << 8 | Int(input[1])
    let served = Opcode.served
    let opcode = served[number % served.count]
    let payload = Array(input.dropFirst(2))
    guard let request = try? ClientRequest.decode(opcode, payload, limits: .standard) else {
        return
    }
    guard request.opcode == opcode else { broken("\(opcode) decodes as \(request.opcode)") }
    guard let content = payloadInside(request) else { broken("\(opcode) has no payload") }
    check(content)
}

/// Encodes the value, decodes the result, and encodes it again. Checks that both encodings are
/// equal.
private func check<Value: WireValue>(_ value: Value) {
    let bytes = encode(value)
    let again: Value
    do throws(PayloadError) {
        // Uses wide limits on the whole payload. The first encoding contains the default values
        // that the sender has omitted, and may therefore exceed such a limit. It cannot exceed a
        // limit on a field.
        again = try read(bytes, .wide) { r throws(PayloadError) in try Value.read(from: &r) }
    } catch {
        broken("\(Value.self) does not read what it has written: \(error)")
    }
    guard encode(again) == bytes else { broken("\(Value.self) is written in two ways") }
    for capacity in capacities(for: bytes) {
        guard encode(value, capacity: capacity) == bytes else {
            broken("\(Value.self) is written in another way where its buffer grows")
        }
    }
}

/// Returns sizes for the initial buffer, all smaller than the size of `bytes`. With each size, the
/// buffer grows at different positions.
private func capacities(for bytes: [UInt8]) -> StrideTo<Int> {
    let step = max(1, bytes.count / 8)
    let first = Int(bytes.reduce(0 as UInt32) { $0 &* 31 &+ UInt32($1) }) % step
    return stride(from: first, to: bytes.count, by: step)
}

private func encode(_ value: some WireValue, capacity: Int = 512) -> [UInt8] {
    var writer = MessagePackWriter(capacity: capacity)
    value.write(to: &writer)
    return writer.finish()
}

/// Returns the payload that a case of `ClientRequest` wraps.
private func payloadInside(_ value: Any) -> (any WirePayload)? {
    var value = value
    for _ in 0..<4 {
        if let payload = value as? any WirePayload { return payload }
        guard let child = Mirror(reflecting: value).children.first else { return nil }
        value = child.value
    }
    return nil
}

private func read<Value>(
    _ bytes: [UInt8],
    _ limits: Limits,
    _ body: (inout MessagePackReader) throws(PayloadError) -> Value
) throws(PayloadError) -> Value {
    try MessagePackReader.read(Bytes(bytes), limits: limits, body)
}

extension Limits {
    /// Limits so small that short inputs reach them.
    static let narrow = with(["maxDepth": 3, "maxElements": 12, "maxTextUnits": 5])

    /// Limits on the whole payload that are so large that no input reaches them.
    static let wide = with(["maxDepth": 64, "maxElements": 1 << 24])

    private static func with(_ overrides: [String: Int]) -> Limits {
        guard let limits = try? Limits(overrides: overrides) else { broken("no such limits") }
        return limits
    }
}

extension Opcode {
    /// The opcodes that a client may send.
    static let served: [Opcode] = (0...UInt16.max).map(Opcode.init(rawValue:)).filter {
        // An empty payload decodes as an empty map. If decoding throws, the opcode is served but a
        // field is missing. If it returns nil, the opcode is not served.
        do throws(PayloadError) {
            return try ClientRequest.decode($0, [], limits: .standard) != nil
        } catch {
            return true
        }
    }
}
