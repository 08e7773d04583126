"""The table of ``make coverage``: lines that no test runs, per room."""

from __future__ import annotations

from typing import Any

from tests.never_run import by_room


def measured(lines: int, never: int) -> dict[str, Any]:
    return {"summary": {"num_statements": lines, "missing_lines": never}}


def test_lines_never_run_are_summed_per_room_the_most_first() -> None:
    table = by_room(
        {
            "cdp/projects.py": measured(10, 0),
            "cdp/corpus/reading.py": measured(60, 1),
            "cdp/corpus/readers/files.py": measured(40, 4),
            "cdp/jobs/state.py": measured(2000, 20),
        }
    )
    assert [line.split() for line in table.splitlines()[1:]] == [
        ["jobs", "2,000", "20", "1.0%"],
        ["corpus", "100", "5", "5.0%"],
        ["projects", "10", "0", "0.0%"],
        ["all", "2,110", "25", "1.2%"],
    ]
