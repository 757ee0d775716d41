"""The cells of maxion."""

from __future__ import annotations

from with_maxion import (  # noqa: F401
    signing_in,
    messages,
    reading,
    groups,
    people,
    own_things,
    not_served,
    coming_back,
)
from with_maxion.device import SUITE  # noqa: F401
