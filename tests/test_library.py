"""The eleven names that outsiders import, as docs/LIBRARY.md lists them; docs/library.ipynb shows each at work."""

from __future__ import annotations

import importlib
import re

import pytest

import cdp
from tests.support import REPOSITORY

PAGE = REPOSITORY / "docs" / "LIBRARY.md"


def test_the_page_lists_the_eleven_names() -> None:
    listed = re.findall(r"^\| `(\w+)\(", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(listed) == sorted(cdp.__all__)
    assert len(listed) == 11


def test_a_name_that_is_none_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        importlib.import_module("cdp").nothing  # noqa: B018
