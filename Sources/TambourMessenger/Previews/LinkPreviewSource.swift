/// Fetches the pages to which links lead, through a separate program. The server itself does not
/// access the web.
package struct LinkPreviewSource: Sendable {
    /// The description that a page gives of itself.
    package struct Page: Sendable, Equatable {
        /// The page's own address, if it differs from the link.
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
        /// The width in pixels. `height` is also in pixels.
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
        /// The lookup failed. The text is for the operator and does not contain the link.
        case failure(String)
    }

    /// Starts the lookup of a link and returns at once. The source receives only the link.
    ///
    /// Calls `done` once, on any thread, within the source's time limit.
    /// - Returns: a closure that cancels the lookup. Even then, `done` is called once.
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
