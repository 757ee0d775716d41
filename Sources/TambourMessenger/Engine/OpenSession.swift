package import TambourEvents
package import TambourProtocol
import TambourStore

/// A session as doors know it, with its user and its device.
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
