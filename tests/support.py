"""What several tests need: the reference data beside the repository, and tiny models made on the spot."""

from __future__ import annotations

from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent
SHARED = REPOSITORY.parent / "shared"


def shared(relative: str) -> Path:
    """A file or folder of the reference data beside the repository; the test is skipped where it is absent."""
    path = SHARED / relative
    if not path.exists():
        pytest.skip(f"reference data ../shared/{relative} is not on this machine")
    return path
