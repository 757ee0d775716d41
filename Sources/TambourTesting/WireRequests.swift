package import TambourProtocol

extension PingRequest: WireRequest {
    package typealias Reply = PingReply
    package static var opcode: Opcode { .ping }
}

extension LogRequest: WireRequest {
    package typealias Reply = LogReply
    package static var opcode: Opcode { .log }
}

extension SessionInitRequest: WireRequest {
    package typealias Reply = SessionInitReply
    package static var opcode: Opcode { .sessionInit }
}

extension Login2Request: WireRequest {
    package typealias Reply = Login2Reply
    package static var opcode: Opcode { .login2 }
}

extension AuthRequestRequest: WireRequest {
    package typealias Reply = AuthRequestReply
    package static var opcode: Opcode { .authRequest }
}

extension AuthCodeRequest: WireRequest {
    package typealias Reply = AuthCodeReply
    package static var opcode: Opcode { .auth }
}

extension LoginRequest: WireRequest {
    package typealias Reply = LoginReply
    package static var opcode: Opcode { .login }
}

extension LogoutRequest: WireRequest {
    package typealias Reply = LogoutReply
    package static var opcode: Opcode { .logout }
}

extension AuthConfirmRequest: WireRequest {
    package typealias Reply = AuthConfirmReply
    package static var opcode: Opcode { .authConfirm }
}

extension ContactInfoRequest: WireRequest {
    package typealias Reply = ContactInfoReply
    package static var opcode: Opcode { .contactInfo }
}

extension ContactInfoByPhoneRequest: WireRequest {
    package typealias Reply = ContactInfoByPhoneReply
    package static var opcode: Opcode { .contactInfoByPhone }
}

extension ChatInfoRequest: WireRequest {
    package typealias Reply = ChatInfoReply
    package static var opcode: Opcode { .chatInfo }
}

extension ChatHistoryRequest: WireRequest {
    package typealias Reply = ChatHistoryReply
    package static var opcode: Opcode { .chatHistory }
}

extension ChatMarkRequest: WireRequest {
    package typealias Reply = ChatMarkReply
    package static var opcode: Opcode { .chatMark }
}

extension ChatsListRequest: WireRequest {
    package typealias Reply = ChatsListReply
    package static var opcode: Opcode { .chatsList }
}

extension MsgSendRequest: WireRequest {
    package typealias Reply = MsgSendReply
    package static var opcode: Opcode { .msgSend }
}

extension MsgTypingRequest: WireRequest {
    package typealias Reply = MsgTypingReply
    package static var opcode: Opcode { .msgTyping }
}

extension MsgDeleteRequest: WireRequest {
    package typealias Reply = MsgDeleteReply
    package static var opcode: Opcode { .msgDelete }
}

extension MsgEditRequest: WireRequest {
    package typealias Reply = MsgEditReply
    package static var opcode: Opcode { .msgEdit }
}

extension MsgGetRequest: WireRequest {
    package typealias Reply = MsgGetReply
    package static var opcode: Opcode { .msgGet }
}

extension ChatSubscribeRequest: WireRequest {
    package typealias Reply = ChatSubscribeReply
    package static var opcode: Opcode { .chatSubscribe }
}

extension SessionsInfoRequest: WireRequest {
    package typealias Reply = SessionsInfoReply
    package static var opcode: Opcode { .sessionsInfo }
}

extension SessionsCloseRequest: WireRequest {
    package typealias Reply = SessionsCloseReply
    package static var opcode: Opcode { .sessionsClose }
}

extension MsgDeliveryRequest: WireRequest {
    package typealias Reply = MsgDeliveryReply
    package static var opcode: Opcode { .msgDelivery }
}
