"""The ten names that outsiders import. The examples of docs/LIBRARY.md are run with those of every other page."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys

import pytest

import cdp
from tests.support import REPOSITORY

PAGE = REPOSITORY / "docs" / "LIBRARY.md"


def test_the_page_lists_the_ten_names() -> None:
    listed = re.findall(r"^\| `(\w+)\(", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(listed) == sorted(cdp.__all__)
    assert len(listed) == 10


@pytest.mark.slow
def test_only_what_needs_torch_loads_it_and_no_room_takes_a_names_place() -> None:
    light = [name for name in cdp.__all__ if name != "WeightedInfoNCELoss"]
    code = f"""if True:
        import sys, cdp
        assert not [m for m in sys.modules if m.startswith("cdp.")], "import cdp loads something"
        for name in {light}:
            assert callable(getattr(cdp, name)), name
        assert "torch" not in sys.modules
        import cdp.services, cdp.services.search
        for name in {light}:
            assert callable(getattr(cdp, name)), name
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=REPOSITORY)
    assert done.returncode == 0, done.stderr


def test_a_name_that_is_none_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        importlib.import_module("cdp").nothing  # noqa: B018
