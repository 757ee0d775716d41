"""The cells of pyromax."""

from __future__ import annotations

from with_pyromax import (  # noqa: F401
    coming_back,
    comments,
    groups,
    messages,
    not_served,
    own_things,
    people,
    reading,
    signing_in,
)
from with_pyromax.device import SUITE  # noqa: F401
