"""The cells of maxapi-python."""

from __future__ import annotations

from with_maxapi import (  # noqa: F401
    chats,
    not_served,
    people,
    scenarios,
)
from with_maxapi.device import SUITE  # noqa: F401
