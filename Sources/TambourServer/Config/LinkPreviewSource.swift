/// Who knows what is behind a link: somebody else, for the server fetches nothing from the web.
package struct LinkPreviewSource: Sendable {
    /// What a page says of itself.
    package struct Page: Sendable, Equatable {
        /// Its address, if it is another one than the link.
        package var url: String?
        package var title: String?
        package var description: String?
        package var image: Image?

        package init(
            url: String? = nil,
            title: String? = nil,
            description: String? = nil,
            image: Image? = nil
        ) {
            self.url = url
            self.title = title
            self.description = description
            self.image = image
        }
    }

    package struct Image: Sendable, Equatable {
        package var url: String
        /// Pixels.
        package var width: Int64?
        package var height: Int64?

        package init(url: String, width: Int64? = nil, height: Int64? = nil) {
            self.url = url
            self.width = width
            self.height = height
        }
    }

    package enum Finding: Sendable {
        case page(Page)
        case nothing
        /// In words for the operator, without the link.
        case failure(String)
    }

    /// Begins to look at a link, which is all it is told, and returns at once.
    ///
    /// Calls `done` once, on any thread and within a time of its own.
    /// - Returns: what ends it before that; `done` is called all the same.
    package var look:
        @Sendable (_ link: String, _ done: @escaping @Sendable (Finding) -> Void)
            -> @Sendable () -> Void

    package init(
        look:
            @escaping @Sendable (_ link: String, _ done: @escaping @Sendable (Finding) -> Void)
            -> @Sendable () -> Void
    ) {
        self.look = look
    }
}
