"""Checks, before any case runs, that a server answers and speaks this protocol."""

from __future__ import annotations

from tambour_conformance import bundle, wire
from tambour_conformance.connection import CaseLog, Connection, Target
from tambour_conformance.verdict import Failed

#: The answer of a TLS server to a client without TLS.
TLS_ALERT = 0x15


class Unreachable(Exception):
    """There is no server to judge. The text says in one line what was found instead."""


def probe(target: Target) -> None:
    """Connects, sends SESSION_INIT, and waits for the header of a packet; the cases judge the packets.

    Raises Unreachable if no header of this protocol comes.
    """
    where = f"{target.host}:{target.port}"
    try:
        connection = Connection(target, CaseLog(), "probe")
    except Failed as failure:
        raise Unreachable(f"no connection to {where}: {failure.actual}") from failure
    try:
        connection.send("SESSION_INIT", {})
        begun = connection.first_bytes(wire.HEADER_SIZE)
    except Failed as failure:
        raise Unreachable(f"{where} does not read what it is sent: {failure.actual}") from failure
    finally:
        connection.close()
    if not begun:
        how = "closes without an answer" if connection.ended else f"is silent for {target.timeout:g} s"
        raise Unreachable(f"{where} {how} when SESSION_INIT is sent")
    if begun[0] == TLS_ALERT and not target.tls:
        raise Unreachable(f"{where} speaks TLS: give --tls")
    whole = len(begun) == wire.HEADER_SIZE
    if not whole or begun[0] not in bundle.load().versions_read or begun[1] > wire.ERROR:
        raise Unreachable(f"{where} does not speak this protocol: its answer begins with {begun.hex(' ')}")
