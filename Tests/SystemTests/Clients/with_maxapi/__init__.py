"""The cells of maxapi-python."""

from __future__ import annotations

from with_maxapi import (  # noqa: F401
    scenarios,
    chats,
    people,
    not_served,
)
from with_maxapi.device import SUITE  # noqa: F401
