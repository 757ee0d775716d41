"""The actions and expectations of the harness, against a scripted server."""

from __future__ import annotations

import contextlib
import ssl
import subprocess
import time
from pathlib import Path

import pytest

from scripted import Script, connected
from tambour_conformance import wire
from tambour_conformance.connection import FOREIGN_GRACE, Closed, Error, Push, Reply
from tambour_conformance.verdict import Failed


def test_fence_passes_in_silence() -> None:
    with connected(Script.serve) as connection:
        connection.silence_by_fence()


def push_then_serve(script: Script) -> None:
    script.push("NOTIF_MESSAGE", {"chatId": 1})
    script.serve()


def test_fence_finds_a_push() -> None:
    with connected(push_then_serve) as connection, pytest.raises(Failed, match="push NOTIF_MESSAGE"):
        connection.silence_by_fence()


def test_fence_passes_when_the_push_was_taken() -> None:
    with connected(push_then_serve) as connection:
        connection.push("NOTIF_MESSAGE", lambda push: push["chatId"] == 1)
        connection.silence_by_fence()


def test_fence_of_other_pushes_passes() -> None:
    with connected(push_then_serve) as connection:
        connection.silence_by_fence(of=["NOTIF_TYPING"])


def test_fence_finds_a_second_reply() -> None:
    def twice(script: Script) -> None:
        while (frame := script.read()) is not None:
            script.reply(frame)
            script.reply(frame)

    with connected(twice) as connection:
        connection.call("LOG")
        with pytest.raises(Failed, match="reply LOG"):
            connection.silence_by_fence()


def test_presence_breaks_no_silence_unless_asked_for() -> None:
    def present(script: Script) -> None:
        script.push("NOTIF_PRESENCE", {"userId": 1, "presence": {}})
        script.serve()

    with connected(present) as connection:
        connection.silence_by_fence()
        with pytest.raises(Failed, match="NOTIF_PRESENCE"):
            connection.silence_by_fence(of=["NOTIF_PRESENCE"])


def test_fence_waits_at_a_foreign_server() -> None:
    """At a foreign server, the fence waits for late pushes, and notes that silence was not proved."""

    def late(script: Script) -> None:
        while (frame := script.read()) is not None:
            script.reply(frame)
            script.push("NOTIF_MESSAGE")

    with connected(late, foreign=True) as connection:
        with pytest.raises(Failed, match="NOTIF_MESSAGE"):
            connection.silence_by_fence()
        assert len(connection.log.notes) == 1


def test_foreign_server_is_waited_for_once() -> None:
    """All fences after one request share one wait, and fences without `grace` do not wait."""
    with connected(Script.serve, foreign=True) as connection:
        began = time.monotonic()
        for _ in range(8):
            connection.call("LOG")
            connection.fence(grace=False)
        assert time.monotonic() - began < FOREIGN_GRACE
        for _ in range(8):
            connection.silence_by_fence()
        assert FOREIGN_GRACE <= time.monotonic() - began < 3 * FOREIGN_GRACE


def test_fence_fails_when_the_ping_is_not_answered() -> None:
    def deaf(script: Script) -> None:
        while script.read() is not None:
            pass

    with connected(deaf) as connection, pytest.raises(Failed, match="nothing of the kind"):
        connection.silence_by_fence()


def test_refusal_fails_at_once_who_waits_for_success() -> None:
    def refuse(script: Script) -> None:
        while (frame := script.read()) is not None:
            script.refuse(frame, "not.allowed")

    with connected(refuse) as connection:
        began = time.monotonic()
        with pytest.raises(Failed, match="not.allowed"):
            connection.call("PING")
        assert time.monotonic() - began < 0.9
        connection.refused("not.", "PING")
        connection.refused("not.allowed", "PING")
        with pytest.raises(Failed, match="not.allowed"):
            connection.refused("not", "PING")


def test_success_fails_at_once_who_waits_for_a_refusal() -> None:
    with connected(Script.serve) as connection, pytest.raises(Failed, match="reply PING"):
        connection.refused("proto.state", "PING")


def test_end_fails_at_once_who_waits_for_anything() -> None:
    with connected(lambda script: None) as connection, pytest.raises(Failed, match="the server closed"):
        connection.push("NOTIF_MESSAGE")


def test_other_numbers_are_left_for_others() -> None:
    def backwards(script: Script) -> None:
        frames = [script.read() for _ in range(3)]
        for frame in reversed(frames):
            assert frame is not None
            script.reply(frame, {"n": frame.seq})
        script.serve()

    with connected(backwards) as connection:
        seqs = [connection.send("PING") for _ in range(3)]
        assert [connection.reply(seq)["n"] for seq in seqs] == [0, 1, 2]
        connection.silence_by_fence()


def test_either_takes_what_comes() -> None:
    with connected(push_then_serve) as connection:
        seq = connection.send("PING")
        first = connection.either(Reply(seq), Push("NOTIF_MESSAGE"))
        second = connection.either(Reply(seq), Error("", seq), Push("NOTIF_MESSAGE"))
        assert {first.opcode, second.opcode} == {128, 1}
    with connected(lambda script: None) as connection:
        assert connection.either(Push("NOTIF_MESSAGE"), Closed()) == "end"


def test_clean_close_is_clean() -> None:
    with connected(lambda script: script.push("NOTIF_TYPING")) as connection:
        connection.closed()
        assert connection.log.unclean == []
        assert [frame.opcode for frame in connection.unread] == [129]


def test_half_a_packet_before_the_end_is_unclean() -> None:
    with connected(lambda script: script.write(wire.packet(1, 1)[:-1])) as connection:
        connection.closed()
        assert "10 bytes of a packet" in connection.log.unclean[0]


def test_reset_is_unclean() -> None:
    def reset(script: Script) -> None:
        # Leaves a byte unread, because closing with unread bytes resets the connection.
        script.socket.recv(1)

    with connected(reset) as connection:
        connection.raw(b"12")
        connection.closed()
        assert "reset" in connection.log.unclean[0]


def test_no_close_is_unclean_or_fails() -> None:
    with connected(Script.serve) as connection:
        connection.closed(within=0.05)
        assert "still open" in connection.log.unclean[0]
        with pytest.raises(Failed, match="still open"):
            connection.ends(within=0.05)


def test_every_byte_is_in_the_log() -> None:
    with connected(Script.serve) as connection:
        seq, packet = connection.packet("PING", {"interactive": True})
        connection.chop(packet, size=7)
        connection.reply(seq)
        entries = connection.log.entries
        assert b"".join(each.data for each in entries if each.kind == "sent") == packet
        assert [len(each.data) for each in entries if each.kind == "sent"] == [7, 7, 7, 3]
        received = b"".join(each.data for each in entries if each.kind == "received")
        assert received == connection.received[0].packet
        assert all(one.ms <= other.ms for one, other in zip(entries, entries[1:], strict=False))


def test_sending_does_not_wait_for_reading() -> None:
    """Two sides that both send more bytes than the kernels can buffer do not block each other."""

    def echo(script: Script) -> None:
        while (frame := script.read()) is not None:
            script.reply(frame, frame.value)

    with connected(echo) as connection:
        packets = [connection.packet("PING", {"padding": bytes(100_000)}) for _ in range(200)]
        connection.coalesce(*(packet for _, packet in packets))
        for seq, _ in packets:
            connection.reply(seq)


def test_numbers_start_again_after_the_last() -> None:
    with connected(Script.serve) as connection:
        connection._next_seq = 0xFFFF
        assert [connection.send("PING") for _ in range(2)] == [0xFFFF, 0]


def test_foreign_server_may_serve_less() -> None:
    def refuse(script: Script) -> None:
        while (frame := script.read()) is not None:
            script.refuse(frame, "proto.opcode")

    with connected(refuse, foreign=True) as connection:
        with pytest.raises(pytest.skip.Exception, match="does not serve CHAT_SUBSCRIBE"):
            connection.call("CHAT_SUBSCRIBE")
        connection.refused("proto.opcode", 60_000)
    with connected(refuse) as connection, pytest.raises(Failed):
        connection.call("CHAT_SUBSCRIBE")


def test_tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Connections work over TLS, with a self-signed certificate that SSL_CERT_FILE names."""
    key, certificate = tmp_path / "key", tmp_path / "certificate"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
        + ["-keyout", key, "-out", certificate, "-days", "2", "-subj", "/CN=localhost"]
        + ["-addext", "subjectAltName=IP:127.0.0.1"],
        check=True, capture_output=True, timeout=60,
    )  # fmt: skip
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)

    def encrypted(script: Script) -> None:
        script.socket = context.wrap_socket(script.socket, server_side=True)
        script.push("NOTIF_MESSAGE", {"text": "a" * 100_000})
        script.serve()

    with connected(encrypted, tls=True) as connection:
        connection.call("PING", {"padding": bytes(300_000)})
        connection.push("NOTIF_MESSAGE", lambda push: len(push["text"]) == 100_000)
        connection.silence_by_fence()
        with pytest.raises(pytest.skip.Exception, match="TLS"):
            connection.half_close()


@pytest.mark.parametrize(
    "data",
    [bytes(1 << 16), wire.packet(1, 99, payload=bytes(1 << 22))],
    ids=["many packets", "many bytes"],
)
def test_flood_fails_and_is_not_kept(data: bytes) -> None:
    """A case fails at once if the server sends endlessly, and the log keeps only the first bytes."""

    def flood(script: Script) -> None:
        with contextlib.suppress(OSError):
            while True:
                script.socket.sendall(data)

    with connected(flood) as connection:
        with pytest.raises(Failed, match="more bytes than asked for"):
            connection.call("PING")
        assert connection.rest == 0 and not connection.received and connection.log.flooded
        assert sum(len(each.data) for each in connection.log.entries) < 10_000
