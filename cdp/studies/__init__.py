"""Studies: a plan in, its conditions trained and evaluated, a report out. Sweeps and the test are plans too.

``config`` and ``plan`` say what is to be run, ``run`` runs it (``python -m cdp.workers.study <job folder>``), and
``report`` makes the report. Importing this loads no torch.
"""

from __future__ import annotations

from cdp.studies.config import ReadyMade, StudyConfig, read_plan, ready_made
from cdp.studies.plan import Condition, StudySource, conditions
from cdp.studies.report import StudyReport, build
from cdp.studies.text import to_markdown

__all__ = [
    "Condition", "ReadyMade", "StudyConfig", "StudyReport", "StudySource", "build", "conditions", "read_plan",
    "ready_made", "to_markdown",
]  # fmt: skip
