"""docs/REFERENCE.md is made from the code and must not be stale."""

from __future__ import annotations

import importlib.util

from tests.support import REPOSITORY


def test_the_reference_is_up_to_date() -> None:
    spec = importlib.util.spec_from_file_location("reference", REPOSITORY / "docs" / "generate_reference.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    written = (REPOSITORY / "docs" / "REFERENCE.md").read_text(encoding="utf-8")
    assert written == module.build(), "docs/REFERENCE.md is stale: run make docs"
