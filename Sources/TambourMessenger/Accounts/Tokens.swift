import Crypto
import TambourProtocol

/// Tokens are 256 random bits in hex; the store holds only their SHA-256.
package enum Tokens {
    static func make(_ environment: Environment) -> String {
        hex(environment.randomBytes(32))
    }

    package static func hash(_ token: String) -> [UInt8] {
        var sha = SHA256()
        var token = token
        token.withUTF8 { sha.update(bufferPointer: UnsafeRawBufferPointer($0)) }
        return Array(sha.finalize())
    }

    /// Hashes a code together with the token of its request. Equal codes of different requests
    /// therefore have different hashes.
    static func hash(code: String, request token: String) -> [UInt8] {
        hash("\(token) \(code)")
    }

    /// Compares two hashes. The comparison always takes the same time, so timing does not reveal
    /// where the hashes first differ.
    static func areEqual(_ a: [UInt8], _ b: [UInt8]) -> Bool {
        guard a.count == b.count else { return false }
        var difference: UInt8 = 0
        for index in a.indices { difference |= a[index] ^ b[index] }
        return difference == 0
    }

    /// Returns a random decimal code. All values are equally likely.
    static func makeCode(digits: Int, _ environment: Environment) -> String {
        var code = ""
        while code.count < digits {
            // 250 is the largest multiple of 10 below 256. If bytes from 250 up counted, the digits
            // 0 to 5 would be more likely.
            for byte in environment.randomBytes(digits) where byte < 250 && code.count < digits {
                code.append(String(byte % 10))
            }
        }
        return code
    }

    package static func hex(_ bytes: [UInt8]) -> String {
        let digits = Array("0123456789abcdef".utf8)
        var text: [UInt8] = []
        text.reserveCapacity(bytes.count * 2)
        for byte in bytes {
            text.append(digits[Int(byte >> 4)])
            text.append(digits[Int(byte & 15)])
        }
        return String(decoding: text, as: UTF8.self)
    }
}
