"""The cells of maxion."""

from __future__ import annotations

from with_maxion import (  # noqa: F401
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
from with_maxion.device import SUITE  # noqa: F401
