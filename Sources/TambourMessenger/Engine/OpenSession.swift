package import TambourEvents
package import TambourProtocol
import TambourStore

/// The part of a session that doors need: its id, its user, its device and its dialect.
package struct OpenSession: Sendable {
    package let id: SessionID
    package let userID: UserID
    package let deviceID: DeviceID
    /// The name of the client's dialect; empty for a client without a dialect.
    package let dialect: String

    init(_ record: SessionRecord) {
        id = record.id
        userID = record.userID
        deviceID = record.deviceID
        dialect = record.dialect
    }
}
