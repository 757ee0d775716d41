"""What a case can come to, and how cases say so."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

import pytest


class Verdict(enum.StrEnum):
    PASS = "PASS"
    FAIL = "FAIL"  #: a MUST does not hold
    NON_STRICT = "NON-STRICT"  #: a SHOULD does not hold
    UNCLEAN = "UNCLEAN"  #: the right answer, and the connection was closed wrongly or not at all
    SKIP = "SKIP"
    INFO = "INFO"  #: a measurement; right or wrong is not judged
    ERROR = "ERROR"  #: the runner failed, not the server


class Failed(AssertionError):
    """The server did something else than the requirement says."""

    def __init__(self, expected: str, actual: str) -> None:
        super().__init__(f"expected {expected}\n  actual {actual}")
        self.expected = expected
        self.actual = actual


def check(condition: object, expected: str, actual: object) -> None:
    """Fails the case unless `condition` holds."""
    if not condition:
        raise Failed(expected, str(actual))


def equal(actual: object, expected: object, what: str) -> None:
    """Fails the case unless both are equal."""
    check(actual == expected, f"{what}: {expected!r}", repr(actual))


def skip(reason: str) -> NoReturn:
    """Ends the case without a verdict on the server."""
    pytest.skip(reason)


Function = TypeVar("Function", bound=Callable[..., Any])


def case(*requirements: str, info: bool = False, group: str = "") -> Callable[[Function], Function]:
    """Marks a test function as the case of these requirements.

    A case is judged by its strictest requirement, so a SHOULD has a case of its own. `info` makes it a
    measurement: its verdict is INFO whatever comes out. A case of no requirement names its `group`.
    """

    def mark(function: Function) -> Function:
        return pytest.mark.case(*requirements, info=info, group=group)(function)

    return mark
