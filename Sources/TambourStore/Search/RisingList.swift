import TambourProtocol

extension Array where Element: Comparable {
    /// Returns the index of the first element that is not below `bound`. Returns `endIndex` if
    /// there is no such element. The array must be in ascending order.
    package func firstPlace(notBelow bound: Element) -> Int {
        var (low, high) = (startIndex, endIndex)
        while low < high {
            let middle = low + (high - low) / 2
            if self[middle] < bound { low = middle + 1 } else { high = middle }
        }
        return low
    }
}
