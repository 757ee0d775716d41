import TambourProtocol
import TambourStore

/// Family `media`. The server stores no media yet, so all replies are empty. Apps send these
/// requests at every start. Wire: protocol-spec/opcodes/media.yaml
struct MediaHandler: Sendable {
    /// Answers `ASSETS_GET` (26): returns no sets.
    ///
    /// - Note: A query.
    func assetsGet(_: AssetsGetRequest, from _: Caller, in _: ReadTransaction) -> Answer {
        .reply(AssetsGetReply())
    }

    /// Answers `ASSETS_UPDATE` (27): reports no changes.
    ///
    /// - Note: A query.
    func assetsUpdate(
        _ request: AssetsUpdateRequest,
        from _: Caller,
        in _: ReadTransaction
    ) -> Answer {
        .reply(AssetsUpdateReply(sync: request.sync))
    }

    /// Answers `ASSETS_GET_BY_IDS` (28): returns no assets.
    ///
    /// - Note: A query.
    func assetsGetByIds(_: AssetsGetByIdsRequest, from _: Caller, in _: ReadTransaction) -> Answer {
        .reply(AssetsGetByIdsReply())
    }

    /// Answers `VIDEO_CHAT_HISTORY` (79): returns no calls.
    ///
    /// - Note: A query.
    func videoChatHistory(
        _: VideoChatHistoryRequest,
        from _: Caller,
        in _: ReadTransaction
    ) -> Answer {
        .reply(VideoChatHistoryReply())
    }

    /// Answers `STORIES_FEED` (208): returns no stories.
    ///
    /// - Note: A query.
    func storiesFeed(_: StoriesFeedRequest, from _: Caller, in _: ReadTransaction) -> Answer {
        .reply(StoriesFeedReply())
    }
}
