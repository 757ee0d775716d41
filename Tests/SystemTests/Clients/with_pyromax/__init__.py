"""The cells of pyromax."""

from __future__ import annotations

from with_pyromax import (  # noqa: F401
    signing_in,
    messages,
    reading,
    groups,
    people,
    own_things,
    not_served,
    coming_back,
)
from with_pyromax.device import SUITE  # noqa: F401
