"""A module that cannot be collected ends the run as if interrupted; under xdist it would pass for a failed test.

``make test`` runs failed tests once more. What was not collected has no tests that it could run.
"""

from __future__ import annotations

import pytest

_uncollected: list[str] = []


def pytest_collectreport(report: pytest.CollectReport) -> None:
    _uncollected.extend([report.nodeid] * report.failed)


def pytest_sessionfinish(session: pytest.Session) -> None:
    if _uncollected:
        session.exitstatus = pytest.ExitCode.INTERRUPTED
