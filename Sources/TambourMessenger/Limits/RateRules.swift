package import TambourProtocol

/// Determines the price of a request and the bucket that pays it. Both come from the
/// specification's table. For some requests they also depend on the content.
package enum RateRules {
    package struct Charge: Equatable, Sendable {
        package let bucket: RateBucket
        package let units: Int

        package init(bucket: RateBucket, units: Int) {
            self.bucket = bucket
            self.units = units
        }
    }

    /// One or two charges. The second charge is made only if the first succeeded.
    package typealias Charges = (first: Charge, second: Charge?)

    package static func charges(for request: CommandRequest, limits: Limits) -> Charges {
        let items = request.items(in: limits)
        switch request {
        case .msgSend(let request) where request.chatID == nil && request.userID == nil:
            let invited = request.message.attaches.first?.userIDs?.count ?? 0
            let invitation = invited > 0 ? Charge(bucket: .invite, units: invited) : nil
            return (Charge(bucket: .create, units: 1), invitation)
        case .chatMembersUpdate(let request)
        where request.operation == .add && (request.type ?? .member) == .member:
            return (Charge(bucket: .invite, units: max(1, items)), nil)
        default: return (declared(request.opcode, items: items), nil)
        }
    }

    package static func charges(for request: QueryRequest, limits: Limits) -> Charges {
        (declared(request.opcode, items: request.items(in: limits)), nil)
    }

    package static func charges(for request: SessionRequest, limits: Limits) -> Charges {
        (declared(request.opcode, items: request.items(in: limits)), nil)
    }

    /// Returns the price of a reply's bytes, in units of `read`. Doors charge this price when they
    /// know the size of the reply.
    ///
    /// - Parameter bytes: the payload size before compression.
    package static func units(forReplyOf bytes: Int, limits: Limits) -> Int {
        bytes / max(1, limits.replyBytesPerRow)
    }

    /// Returns the additional price of a query in units of `read`. It is due if the query has read
    /// more rows than its base price covers.
    ///
    /// The base price of a search covers all the rows that the search may read.
    package static func units(
        forReading rows: Int,
        by query: QueryRequest,
        limits: Limits
    ) -> Int {
        let price = declared(query.opcode, items: query.items(in: limits))
        let paid: Int
        switch price.bucket {
        case .read: paid = price.units
        case .people: paid = 0
        default: return 0
        }
        return max(0, rows / max(1, limits.rowsPerReadUnit) - paid)
    }

    /// Returns the price that the specification declares for an opcode.
    private static func declared(_ opcode: Opcode, items: Int) -> Charge {
        guard let cost = opcode.info?.cost else {
            preconditionFailure("the check lets no request pass without a cost")
        }
        return Charge(bucket: cost.bucket, units: max(1, cost.units + cost.itemUnits * items))
    }
}
