"""QRL: signing in with a code that another device scans."""

from __future__ import annotations

from tambour_conformance.cases.test_tfa import PASSWORD, set_password
from tambour_conformance.connection import Connection
from tambour_conformance.fixtures import Limits, LogIn, Newcomer
from tambour_conformance.people import Device
from tambour_conformance.talk import LESS, time_out
from tambour_conformance.verdict import case, check, equal, skip
from tambour_conformance.wire import Frame

#: A case that must reach the limit of approvals is skipped if the limit is higher than this.
MOST = 100


def available(client: Connection, shown: Frame) -> bool:
    """Whether GET_QR_STATUS says that the login was approved."""
    status = client.call("GET_QR_STATUS", {"trackId": shown["trackId"]})["status"]
    equal(status["expiresAt"], shown["expiresAt"], "expiresAt")
    return status.get("loginAvailable", False)


@case("QRL-01")
def test_a_link(client: Connection, limits: Limits) -> None:
    """GET_QR returns a link and a track; the link does not contain the track."""
    shown = client.call("GET_QR", {})
    for key in ("pollingInterval", "ttl", "expiresAt"):
        check(type(shown[key]) is int and shown[key] > 0, f"{key}, a number", shown.value)
    equal(shown["ttl"], limits["qrLifetimeMs"], "ttl")
    check(shown["trackId"] and shown["qrLink"], "a track and a link", shown.value)
    check(shown["trackId"] not in shown["qrLink"], "a link without the track", shown["qrLink"])


@case("QRL-02", "QRL-05")
def test_an_approved_link(client: Connection, login: LogIn, newcomer: Newcomer) -> None:
    """After the approval, the track returns a token once."""
    nina = login(newcomer("nina"))
    shown = client.call("GET_QR", {})
    check(not available(client, shown), "nothing before the approval", "a login")
    for _ in range(2):
        equal(nina.call("AUTH_QR_APPROVE", {"qrLink": shown["qrLink"]}).value, {}, "reply")
    check(available(client, shown), "a login after the approval", "none")
    taken = client.call("LOGIN_BY_QR", {"trackId": shown["trackId"]})
    equal(taken["profile"]["contact"]["id"], nina.user_id, "user")
    client.call("LOGIN", {"token": taken["tokenAttrs"]["LOGIN"]["token"]})
    client.refused("track.not.found", "LOGIN_BY_QR", {"trackId": shown["trackId"]})


@case("QRL-05")
def test_a_second_factor(client: Connection, login: LogIn, newcomer: Newcomer) -> None:
    """If the approving user has a password, the new device must give it to get a token."""
    nina = login(newcomer("nina"))
    set_password(nina)
    shown = client.call("GET_QR", {})
    nina.call("AUTH_QR_APPROVE", {"qrLink": shown["qrLink"]})
    taken = client.call("LOGIN_BY_QR", {"trackId": shown["trackId"]})
    equal((taken["tokenAttrs"], taken.get("profile")), ({}, None), "token and profile")
    value = {"trackId": taken["passwordChallenge"]["trackId"], "password": PASSWORD}
    reply = client.call("AUTH_LOGIN_CHECK_PASSWORD", value)
    client.call("LOGIN", {"token": reply["tokenAttrs"]["LOGIN"]["token"]})


@case("QRL-03", "QRL-04")
def test_too_late(client: Connection, alice: Device, limits: Limits) -> None:
    """An unknown, used or expired track is refused, and an expired link cannot be approved."""

    def is_gone(track: str) -> None:
        for opcode in ("GET_QR_STATUS", "LOGIN_BY_QR"):
            client.refused("track.not.found", opcode, {"trackId": track})

    is_gone("none")
    used, approved, shown = (client.call("GET_QR", {}) for _ in range(3))
    for each in (used, approved):
        alice.call("AUTH_QR_APPROVE", {"qrLink": each["qrLink"]})
    client.call("LOGIN_BY_QR", {"trackId": used["trackId"]})
    is_gone(used["trackId"])
    # A foreign server's clock cannot be moved.
    client.stall(time_out(limits, "qrLifetimeMs") * 1000 + 100)
    for each in (approved, shown):
        is_gone(each["trackId"])
        alice.refused("track.not.found", "AUTH_QR_APPROVE", {"qrLink": each["qrLink"]})


@case("QRL-04")
def test_whose_link(client: Connection, alice: Device, bob: Device) -> None:
    """A user cannot approve an unknown link, or a link that another user has approved."""
    shown = client.call("GET_QR", {})
    for link in ("", "none", shown["trackId"], shown["qrLink"][:-1]):
        alice.refused("track.not.found", "AUTH_QR_APPROVE", {"qrLink": link})
    alice.call("AUTH_QR_APPROVE", {"qrLink": shown["qrLink"]})
    bob.refused("track.not.found", "AUTH_QR_APPROVE", {"qrLink": shown["qrLink"]})
    taken = client.call("LOGIN_BY_QR", {"trackId": shown["trackId"]})
    equal(taken["profile"]["contact"]["id"], alice.user_id, "user")


@case("QRL-06")
def test_not_yet_approved(client: Connection, alice: Device) -> None:
    """LOGIN_BY_QR before the approval is refused, and the track stays valid."""
    shown = client.call("GET_QR", {})
    client.refused("not.allowed", "LOGIN_BY_QR", {"trackId": shown["trackId"]})
    alice.call("AUTH_QR_APPROVE", {"qrLink": shown["qrLink"]})
    client.call("LOGIN_BY_QR", {"trackId": shown["trackId"]})


@case("QRL-07")
def test_the_approver_logs_out(client: Connection, login: LogIn, newcomer: Newcomer) -> None:
    """After LOGOUT, the links and challenges that the session approved end; those of others stay."""
    nina = newcomer("nina")
    phone, laptop = login(nina), login(nina, "laptop")
    kept, link = (client.call("GET_QR", {}) for _ in range(2))
    laptop.call("AUTH_QR_APPROVE", {"qrLink": kept["qrLink"]})
    phone.call("AUTH_QR_APPROVE", {"qrLink": link["qrLink"]})
    set_password(laptop)
    other = client.call("GET_QR", {})
    phone.call("AUTH_QR_APPROVE", {"qrLink": other["qrLink"]})
    track = client.call("LOGIN_BY_QR", {"trackId": other["trackId"]})["passwordChallenge"]["trackId"]
    phone.call("LOGOUT")
    for opcode in ("GET_QR_STATUS", "LOGIN_BY_QR"):
        client.refused("track.not.found", opcode, {"trackId": link["trackId"]})
    client.refused("track.not.found", "AUTH_LOGIN_CHECK_PASSWORD", {"trackId": track, "password": PASSWORD})
    client.call("LOGIN_BY_QR", {"trackId": kept["trackId"]})


@case("QRL-08")
def test_too_many_approvals(client: Connection, login: LogIn, newcomer: Newcomer, limits: Limits) -> None:
    """Approvals beyond the hourly limit are refused."""
    most = limits["maxQRApprovalsPerHour"]
    if most > MOST:
        skip(f"maxQRApprovalsPerHour is {most}, too many to approve: {LESS}")
    nina = login(newcomer("nina"))
    for _ in range(most):
        nina.call("AUTH_QR_APPROVE", {"qrLink": client.call("GET_QR", {})["qrLink"]})
    link = client.call("GET_QR", {})["qrLink"]
    nina.refused("auth.blocked", "AUTH_QR_APPROVE", {"qrLink": link})
