import TambourProtocol

/// Decodes exactly one value.
func decode<Value: WireValue>(
    _ type: Value.Type = Value.self,
    _ bytes: [UInt8],
    limits: Limits = .standard
) throws(PayloadError) -> Value {
    try MessagePackReader.read(Bytes(bytes), limits: limits) {
        (reader: inout MessagePackReader) throws(PayloadError) -> Value in
        try Value.read(from: &reader)
    }
}

/// Skips exactly one value.
func skip(_ bytes: [UInt8], limits: Limits = .standard) throws(PayloadError) {
    try MessagePackReader.read(Bytes(bytes), limits: limits) {
        (reader: inout MessagePackReader) throws(PayloadError) in
        try reader.skip()
    }
}

/// Returns the bytes of one value.
func encode(_ value: some WireValue) -> [UInt8] {
    var writer = MessagePackWriter()
    value.write(to: &writer)
    return writer.finish()
}
