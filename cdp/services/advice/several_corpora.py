"""Studies that trained on several corpora: what they say of a task is what trainings on its own corpus did."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable
from contextlib import suppress
from typing import Any

from cdp import query_sets
from cdp.base.errors import CdpError
from cdp.base.workspace import Workspace
from cdp.jobs import JobView
from cdp.services.studies import StudyReport


def corpora_of(workspace: Workspace, view: JobView, about: dict[str, Any]) -> Iterable[str]:
    """The corpora whose queries a study trained on; what was deleted since is left out."""
    yield from (corpus for _, corpus in corpus_of_sources(workspace, about))
    yield from (part.strip() for part in str(view.config.get("corpus") or "").split(",") if part.strip())


def corpus_of_sources(workspace: Workspace, about: dict[str, Any]) -> Iterable[tuple[str, str]]:
    """(label of a source, id of its corpus) of each source whose query set is still there."""
    for source in about["sources"]:
        with suppress(CdpError):
            yield str(source["label"]), query_sets.load(workspace, source["query_set"]).corpus_id


def of_sources(report: StudyReport, labels: Collection[str]) -> StudyReport:
    """The report without the trainings on other corpora: what was learned there says nothing of this one."""
    others = {source.label for source in report.sources} - set(labels)
    return dataclasses.replace(
        report,
        sources=tuple(source for source in report.sources if source.label not in others),
        rows=tuple(row for row in report.rows if row.source not in others),
        gains=tuple(gain for gain in report.gains if gain.source not in others),
    )


def remark(report: StudyReport, n: int) -> str:
    labels = ", ".join(source.label for source in report.sources[:4])
    return f"Of trainings on {n} other corpora ({labels}) the best is named: the best of several is partly luck."
