"""Fixtures of the suite's tests."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

CONFORMANCE = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(CONFORMANCE))

from run import Tambourd, tambourd  # noqa: E402

TAMBOURD = os.environ.get("TAMBOURD", str(CONFORMANCE.parents[1] / ".build/debug/tambourd"))


@pytest.fixture(scope="session")
def server() -> Iterator[Tambourd]:
    """The correct server to which the proxies connect."""
    if not Path(TAMBOURD).exists():
        pytest.skip(f"needs {TAMBOURD}; TAMBOURD names another one")
    with tambourd(TAMBOURD) as server:
        yield server
