#if TLS
    import COpenSSL
    import Synchronization

    /// The keys that encrypt session tickets. They exist only in memory.
    ///
    /// The current key encrypts new tickets. If a ticket was encrypted with the previous key, the
    /// server accepts it and sends the client a new ticket. A key encrypts for one lifetime and
    /// decrypts for two lifetimes.
    ///
    /// `@unchecked Sendable`: `state` is a `Mutex`, and all other properties are constant.
    final class TicketKeys: @unchecked Sendable {
        static let nameBytes = 16
        static let secretBytes = 32

        /// A key. The memory of the key is overwritten before it is freed.
        ///
        /// `@unchecked Sendable`: never changed after its initialization.
        private final class Key: @unchecked Sendable {
            private let bytes: UnsafeMutablePointer<UInt8>
            private static let count = nameBytes + 2 * secretBytes
            let createdMs: Int64

            init(createdMs: Int64) {
                self.createdMs = createdMs
                bytes = .allocate(capacity: Self.count)
                bytes.initialize(repeating: 0, count: Self.count)
                precondition(RAND_bytes(bytes, Int32(Self.count)) == 1, "no random numbers")
            }

            deinit {
                OPENSSL_cleanse(bytes, Self.count)
                bytes.deallocate()
            }

            var name: UnsafeMutablePointer<UInt8> { bytes }
            var cipher: UnsafeMutablePointer<UInt8> { bytes + nameBytes }
            var authentication: UnsafeMutablePointer<UInt8> { cipher + secretBytes }
        }

        private struct State: Sendable {
            var current: Key
            var previous: Key?
        }

        private let lifetimeMs: Int64
        private let nowMs: @Sendable () -> Int64
        private let state: Mutex<State>

        /// - Parameter nowMs: returns the time of a clock that is never set back.
        init(lifetimeMs: Int64, nowMs: @escaping @Sendable () -> Int64) {
            self.lifetimeMs = max(1, lifetimeMs)
            self.nowMs = nowMs
            state = Mutex(State(current: Key(createdMs: nowMs()), previous: nil))
        }

        /// The time for which a ticket is valid, in seconds.
        var ticketSeconds: Int { Int(min(2 * lifetimeMs / 1000, 604_800)) }

        /// Replaces and removes keys that are too old.
        func rotate() {
            _ = keys()
        }

        /// Returns the current and the previous key. First replaces or removes a key that is too
        /// old.
        private func keys() -> State {
            let now = nowMs()
            return state.withLock { state in
                if now - state.current.createdMs >= lifetimeMs {
                    state.previous = state.current
                    state.current = Key(createdMs: now)
                }
                if let previous = state.previous, now - previous.createdMs >= 2 * lifetimeMs {
                    state.previous = nil
                }
                return state
            }
        }

        /// Prepares OpenSSL to encrypt a ticket.
        func encrypt(
            name: UnsafeMutablePointer<UInt8>,
            vector: UnsafeMutablePointer<UInt8>,
            _ cipher: OpaquePointer,
            _ authentication: OpaquePointer
        ) -> Int32 {
            let key = keys().current
            name.update(from: key.name, count: Self.nameBytes)
            guard RAND_bytes(vector, EVP_CIPHER_get_iv_length(EVP_aes_256_cbc())) == 1,
                EVP_EncryptInit_ex(cipher, EVP_aes_256_cbc(), nil, key.cipher, vector) == 1,
                tambour_mac_set_key(authentication, key.authentication, Self.secretBytes) == 1
            else { return -1 }
            return 1
        }

        /// Prepares OpenSSL to decrypt a ticket.
        ///
        /// - Parameter isUsedOnce: whether each connection gives the client a new ticket, as in TLS
        ///   1.3.
        /// - Returns: the result that OpenSSL expects: 0 for an unknown key, 2 for a ticket that
        ///   OpenSSL must renew.
        func decrypt(
            name: UnsafeMutablePointer<UInt8>,
            vector: UnsafeMutablePointer<UInt8>,
            _ cipher: OpaquePointer,
            _ authentication: OpaquePointer,
            isUsedOnce: Bool
        ) -> Int32 {
            let keys = keys()
            func isNamed(_ key: Key) -> Bool {
                CRYPTO_memcmp(key.name, name, Self.nameBytes) == 0
            }
            let isCurrent = isNamed(keys.current)
            guard let key = isCurrent ? keys.current : keys.previous, isNamed(key) else {
                return 0
            }
            guard EVP_DecryptInit_ex(cipher, EVP_aes_256_cbc(), nil, key.cipher, vector) == 1,
                tambour_mac_set_key(authentication, key.authentication, Self.secretBytes) == 1
            else { return -1 }
            return isCurrent && !isUsedOnce ? 1 : 2
        }
    }
#endif
