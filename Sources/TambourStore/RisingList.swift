import TambourProtocol

extension Array where Element: Comparable {
    /// Where the first element of a rising list is that is no smaller than `bound`.
    package func firstPlace(notBelow bound: Element) -> Int {
        var (low, high) = (startIndex, endIndex)
        while low < high {
            let middle = low + (high - low) / 2
            if self[middle] < bound { low = middle + 1 } else { high = middle }
        }
        return low
    }
}
