"""The verdicts of cases, and how cases report them."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

import pytest


class Verdict(enum.StrEnum):
    PASS = "PASS"
    FAIL = "FAIL"  #: a MUST is violated
    NON_STRICT = "NON-STRICT"  #: a SHOULD is violated
    UNCLEAN = "UNCLEAN"  #: the right answer, but the connection was closed wrongly or not at all
    SKIP = "SKIP"
    INFO = "INFO"  #: a measurement; nothing is judged
    ERROR = "ERROR"  #: the runner failed, not the server


class Failed(AssertionError):
    """The server violated the requirement."""

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

    A case has the level of its strictest requirement, so a SHOULD needs a case of its own. With `info` the
    case is a measurement, and its verdict is always INFO. A case without requirements names its `group`.
    """

    def mark(function: Function) -> Function:
        return pytest.mark.case(*requirements, info=info, group=group)(function)

    return mark
