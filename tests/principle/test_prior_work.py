"""The table of other work: every row has its source, and docs/PRINCIPLE.md tells of each."""

from __future__ import annotations

from cdp.principle.tables import prior_work
from tests.support import REPOSITORY


def test_other_work_names_its_source_in_table_and_text() -> None:
    principle = (REPOSITORY / "docs" / "PRINCIPLE.md").read_text(encoding="utf-8")
    works = prior_work()
    assert all(work.url.startswith("https://") and work.read and work.finding and work.figures for work in works)
    assert all(work.url in principle for work in works)
    assert {work.on for work in works if work.against} == {"decide", "evidence"}
    assert not any(work.on for work in works if not work.against)
