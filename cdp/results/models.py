"""Trained models: list, files, licences, newest scores on the card, faults against publishing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cdp import catalog
from cdp.base.errors import NotFoundError
from cdp.base.records import JOB_FACTS, whole
from cdp.base.workspace import Workspace
from cdp.evaluation.card import licence_in
from cdp.results import naming, regraded
from cdp.retrievers import leakage, resolve
from cdp.retrievers.resolve import card_file, has_model, model_folder, training_result
from cdp.training.plan import INCOMPLETE


@dataclass(frozen=True)
class Fault:
    """A reason against publishing a model: ``kind`` is ``leaked`` or ``incomplete``."""

    kind: str
    sentence: str

    @property
    def text(self) -> str:
        """The sentence without Markdown."""
        return self.sentence.replace("**", "")


@dataclass(frozen=True)
class Score:
    """NDCG@10 in percent on a benchmark (``name/split``). ``badges`` and ``remark`` say what it is to be read with."""

    benchmark: str
    protocol: str
    ndcg: float
    queries: int
    badges: tuple[str, ...]
    remark: str


@dataclass(frozen=True)
class TrainedModel:
    """A model that was trained here. ``files`` are (path in its folder, bytes), ``scores`` its newest ones."""

    id: str
    title: str
    folder: Path
    base: str
    query_set: str
    created: str
    licence: str
    files: tuple[tuple[str, int], ...]
    scores: tuple[Score, ...]
    faults: tuple[Fault, ...]
    result: Mapping[str, Any]

    @property
    def bytes(self) -> int:
        return sum(size for _, size in self.files)


def list_models(workspace: Workspace) -> list[TrainedModel]:
    """Return the trained models, newest first."""
    made = [job for job in naming.trained(workspace) if has_model(job.folder) and training_result(job.folder)]
    return [_described(workspace, job.id) for job in made]


def show(workspace: Workspace, name: str) -> TrainedModel:
    """Return the model of a training by its id, name or unique prefix. NotFoundError where there is none."""
    job = naming.training(workspace, name)
    resolve(job, workspace)  # says why a job has no model
    if training_result(workspace.job(job)) is None:
        raise NotFoundError("training's result", job, hint="Train it again: its record was deleted.")
    return _described(workspace, job)


def _described(workspace: Workspace, job: str) -> TrainedModel:
    folder, result = workspace.job(job), training_result(workspace.job(job))
    assert result is not None
    spec = whole(JOB_FACTS, folder / "spec.json") or {}
    model = model_folder(folder)
    scores = _scores(workspace, str(result.get("model_hash")))
    files = []
    for path in sorted(model.rglob("*")):
        if path.is_file() and not path.name.startswith("."):
            files.append((path.relative_to(model).as_posix(), path.stat().st_size))

    return TrainedModel(
        id=job,
        title=resolve(job, workspace).title,
        folder=model,
        base=str(result["retriever"]),
        query_set=str(result["query_set"]),
        created=str(spec.get("created", "")),
        licence=licence_in(card_file(model)),
        files=tuple(files),
        scores=scores,
        faults=tuple(_faults(result, scores)),
        result=result,
    )


def _scores(workspace: Workspace, model_hash: str) -> tuple[Score, ...]:
    """The newest evaluation of this very model, not fused or reranked, on each benchmark, split and protocol."""
    newest: dict[tuple[str, str], Score] = {}
    for row in reversed(catalog.evaluations(workspace)):
        if row["retriever_hash"] == model_hash and row["retriever_kind"] == "job":
            row = regraded.updated(workspace, row)
            place, protocol, queries = f"{row['benchmark']}/{row['split']}", row["protocol"], row["n_queries"]
            found = dict(leakage.findings(row["counts"], queries))
            ndcg, remark = 100 * row["ndcg@10"], " ".join(found.values())
            newest[place, protocol] = Score(place, protocol, ndcg, queries, tuple(found), remark)

    return tuple(newest[key] for key in sorted(newest))


def _faults(result: Mapping[str, Any], scores: Sequence[Score]) -> list[Fault]:
    notes = list(map(str, result.get("notes", ())))
    leaked = [Fault("leaked", note) for note in notes if note.startswith("**Leaked**")]
    for score in scores:
        if not leaked and "leaked" in score.badges:
            leaked.append(Fault("leaked", f"**Leaked** on {score.benchmark}: {score.remark}"))

    incomplete = [Fault("incomplete", note) for note in notes if note.startswith("**Stopped")]
    if INCOMPLETE in notes:
        incomplete.append(Fault("incomplete", f"**Incomplete**: {INCOMPLETE}"))

    return leaked + incomplete
