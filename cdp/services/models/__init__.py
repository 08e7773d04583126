"""The models that were trained here: what there is, what each consists of, and its card."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cdp import jobs
from cdp.base.errors import ConfigError, InputError, NotFoundError
from cdp.base.locks import locked
from cdp.base.workspace import Workspace, read_json_or_none, write_bytes
from cdp.evaluation.results import refresh_card, scores_of
from cdp.retrievers import resolve
from cdp.retrievers.card_results import BenchmarkScore, front_matter, with_metadata
from cdp.retrievers.trained import card_file, has_model, model_folder, training_result
from cdp.services import naming
from cdp.services.sharing import access
from cdp.training.plan import INCOMPLETE

_LICENCE = re.compile(r"[a-z0-9][a-z0-9.\-]*")
_REPOSITORY = re.compile(r"[\w.\-]+/[\w.\-]+")


@dataclass(frozen=True)
class Fault:
    """Why a model is not to be given away unasked: ``kind`` is ``leaked`` or ``incomplete``."""

    kind: str
    sentence: str


@dataclass(frozen=True)
class TrainedModel:
    """A model that was trained here. ``files`` are (path in its folder, bytes), ``scores`` those on its card."""

    id: str
    title: str
    folder: Path
    base: str
    query_set: str
    created: str
    licence: str
    files: tuple[tuple[str, int], ...]
    scores: tuple[BenchmarkScore, ...]
    faults: tuple[Fault, ...]
    result: Mapping[str, Any]

    @property
    def bytes(self) -> int:
        return sum(size for _, size in self.files)


def list_models(workspace: Workspace) -> list[TrainedModel]:
    """The models that are there, the newest first."""
    models = []
    for job in jobs.list_jobs(workspace, ["training"]):
        if has_model(workspace.job(job.id)) and training_result(workspace.job(job.id)):
            models.append(_described(workspace, job.id))
    return models


def show(workspace: Workspace, name: str) -> TrainedModel:
    """The model of a training job, by its id, name or the beginning of its id. NotFoundError where there is none."""
    job = naming.training(workspace, name)
    resolve(job, workspace)  # says in words why a job has no model
    if training_result(workspace.job(job)) is None:
        raise NotFoundError("training's result", job, hint="Train it again: its record is gone.")
    return _described(workspace, job)


def _described(workspace: Workspace, job: str) -> TrainedModel:
    folder, result = workspace.job(job), training_result(workspace.job(job))
    assert result is not None
    spec = read_json_or_none(folder / "spec.json") or {}
    model = model_folder(folder)
    files = sorted(path for path in model.rglob("*") if path.is_file() and not path.name.startswith("."))
    scores = tuple(scores_of(workspace, job, result))
    parts = front_matter(_text(card_file(model)))
    return TrainedModel(
        id=job,
        title=str(spec.get("name") or job),
        folder=model,
        base=str(result["retriever"]),
        query_set=str(result["query_set"]),
        created=str(spec.get("created", "")),
        licence=str(parts[0].get("license") or "") if parts else "",
        files=tuple((path.relative_to(model).as_posix(), path.stat().st_size) for path in files),
        scores=scores,
        faults=tuple(_faults(result, scores)),
        result=result,
    )


def _faults(result: Mapping[str, Any], scores: Sequence[BenchmarkScore]) -> list[Fault]:
    notes = [str(note) for note in result.get("notes", ())]
    faults = [Fault("leaked", note) for note in notes if note.startswith("**Leaked**")]
    if not faults:
        leaked = [score for score in scores if "leaked" in score.badges]
        faults += [Fault("leaked", f"**Leaked** on {score.benchmark}: {score.remark}") for score in leaked[:1]]
    faults += [Fault("incomplete", note) for note in notes if note.startswith("**Stopped")]
    faults += [Fault("incomplete", f"**Incomplete**: {note}") for note in notes if note == INCOMPLETE]
    return faults


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""


@access.writes
def card(workspace: Workspace, name: str, *, licence: str = "", datasets: Sequence[str] = ()) -> str:
    """The model's card with every evaluation made so far; its metadata with a licence or data sets that somebody names.

    ConfigError for what the hub would not take as a licence or data set; InputError where the card has no metadata to
    put them in.
    """
    model = show(workspace, name)
    if licence and not _LICENCE.fullmatch(licence):
        raise ConfigError(
            f"{licence!r} is no licence as the hub writes them.",
            hint="Write its identifier, such as apache-2.0, mit, cc-by-4.0, cc-by-nc-4.0 or other.",
        )
    for dataset in datasets:
        if not _REPOSITORY.fullmatch(dataset):
            raise ConfigError(f"{dataset!r} is no data set of the hub.", hint="Write owner/name.")
    refresh_card(workspace, model.id)
    path = card_file(model.folder)
    if licence or datasets:
        with locked(workspace.job(model.id) / "card.lock", "the model card"):
            parts = front_matter(_text(path))
            if parts is None:
                raise InputError("The card has no metadata at its top.", hint="Write it there by hand.", file=path)
            metadata, body = parts
            metadata |= {"license": licence} if licence else {}
            metadata |= {"datasets": list(dict.fromkeys(datasets))} if datasets else {}
            write_bytes(path, with_metadata(metadata, body).encode())
    return _text(path)
