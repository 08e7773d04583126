"""The answer for a task from all own studies, for Decide, Home and the command line; queries pasted on Decide."""

from __future__ import annotations

import re
from contextlib import suppress

from cdp import jobs
from cdp.base.errors import CdpError
from cdp.base.job_kind import STUDIES
from cdp.base.workspace import Workspace, sha256_text, write_bytes
from cdp.benchmarks import manifests, resolve_benchmark
from cdp.jobs import JobView
from cdp.principle import Decision
from cdp.principle.decide import CORRECTED, uncorrected
from cdp.services import access
from cdp.studies.advice import answer_from, whole_of
from cdp.studies.target_queries import Profiled, profile_benchmark


def decide(
    workspace: Workspace, *, corpus: str = "", target: Profiled | None = None, domain: str = "ood", task: str = ""
) -> Decision:
    """Return what is best known for a corpus and the queries of a task: own studies and the published results.

    A study answers once what it newly found is judged.
    """
    unfinished = awaiting(workspace)
    own = [view for view in jobs.list_jobs(workspace, STUDIES) if view.id not in unfinished]
    return answer_from(workspace, own, corpus=corpus, target=target, domain=domain, task=task)


def awaiting(workspace: Workspace) -> dict[str, JobView]:
    """Return {study that ended: the job that judges what it newly found}."""
    before: dict[str, JobView] = {}
    for view in jobs.list_active(workspace):
        if view.kind == "judging":
            before |= dict.fromkeys(jobs.load_spec(workspace, view.id).after, view)

    ended = {view.id for view in jobs.list_jobs(workspace, STUDIES) if not view.active}
    return {name: view for name, view in before.items() if name in ended}


def of_judged(workspace: Workspace, benchmark: str) -> tuple[str, str]:
    """Return the corpus of a benchmark that a model judged, and what people's labels make of the newest answer on it:
    that they correct it, or why they do not. Empty where nothing was tested on it."""
    folder = resolve_benchmark(benchmark, workspace)
    corpus = str(manifests.read(folder).source.get("corpus") or "")
    with suppress(CdpError):
        answer = decide(workspace, corpus=corpus, target=profile_benchmark(workspace, benchmark))
        if answer.measured and answer.basis and whole_of(workspace, answer.basis.benchmark)[0] == benchmark:
            # Without a choice it is withheld for what is not judged, which labels do not mend.
            why = uncorrected(answer.basis) if answer.choice.kind else ""
            said = [*(text for text in answer.findings if text.startswith(CORRECTED)), why, answer.headline]
            return corpus, next(filter(None, said))
    return corpus, ""


FOLDER = "pasted"


@access.writes
def save(workspace: Workspace, text: str) -> str:
    """Keep queries in ``FOLDER`` of the workspace; return the file's name, a hash of the text, without ``.txt``."""
    name = sha256_text(text)[:16]
    write_bytes(workspace.root / FOLDER / f"{name}.txt", text.encode("utf-8", "replace"))
    return name


def load(workspace: Workspace, name: str) -> str:
    """The text that was kept under a name; empty where there is none."""
    path = workspace.root / FOLDER / f"{name}.txt"
    if not re.fullmatch(r"[0-9a-f]{16}", name) or not path.is_file():
        return ""
    return path.read_text(encoding="utf-8", errors="replace")
