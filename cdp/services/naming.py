"""What a retriever may be called by whoever names one, and what files call it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cdp import jobs
from cdp.base.errors import ConfigError, NotFoundError, WorkspaceError, offer
from cdp.base.file_cache import ANSWERS
from cdp.base.text import typed_folder
from cdp.base.workspace import Workspace, is_name, read_json
from cdp.evaluation import bm25
from cdp.jobs import JobView
from cdp.retrievers import PRESETS

# Trainings that are listed where several have one name.
SHOWN = 8


@dataclass(frozen=True)
class _Training:
    """A training by all that it may be called: its id, the name it was started with, the one given to it on Compare."""

    job: JobView
    names: tuple[str, ...]

    @property
    def text(self) -> str:
        return f"{self.job.id} ({self.job.state}, {self.job.created[:16].replace('T', ' ')})"


def is_reserved(name: str) -> bool:
    """Whether a name means a preset or BM25, so that no training could be found by it."""
    return name.strip() in PRESETS or bm25.language_in(name) is not None


def retriever(workspace: Workspace, name: str) -> str:
    """The name in files of the retriever that is called ``name``: a training's id where it is a training's id, name or
    the beginning of its id; any other name (a preset, bm25, a folder, a model of the hub) as it is.

    ConfigError where several are called so: it lists them.
    """
    text = name.strip()
    if not text or is_reserved(text) or (is_name(text) and workspace.job(text).is_dir()):
        return text
    trainings = _trainings(workspace)
    job = _named(text, trainings)
    folder = typed_folder(text)
    if job is not None and folder is not None:
        raise ConfigError(
            f"{text!r} is a training's name, and a folder here is called so too.",
            hint=f"Write the training's id, {job}, or the folder as a path: ./{text}",
        )
    if job is None and folder is None and "/" not in text:
        job = _beginning(text, trainings)
    return job or text


def training(workspace: Workspace, name: str) -> str:
    """The id of the training that is called ``name``: its id, its name, or the beginning of its id. ConfigError where
    several are called so, NotFoundError where none is."""
    text = name.strip()
    trainings = _trainings(workspace)
    exact = next((t.job.id for t in trainings if t.job.id == text), None)
    job = exact or _named(text, trainings) or _beginning(text, trainings)
    if job is not None:
        return job
    names = [other for t in trainings for other in t.names]
    known = [t.job.id for t in trainings]
    hint = "" if trainings else "There is no training yet: train QUERY_SET"
    raise NotFoundError("training", name, hint=hint or offer(name, known, also=names))


def _trainings(workspace: Workspace) -> list[_Training]:
    said = list_annotations(workspace)
    return [
        _Training(job, (job.name, *([said[job.id].name] if job.id in said and said[job.id].name else [])))
        for job in jobs.list_jobs(workspace, ["training"])
    ]


def _named(text: str, trainings: list[_Training]) -> str | None:
    """Of the trainings of this name the one with a model; where none has one, the one that there is."""
    named = [t for t in trainings if text in t.names]
    if not named:
        named = [t for t in trainings if text.casefold() in map(str.casefold, t.names)]
    return _only(text, [t for t in named if t.job.has_model] or named, "are called")


def _beginning(text: str, trainings: list[_Training]) -> str | None:
    return _only(text, [t for t in trainings if text and t.job.id.startswith(text)], "have an id that begins with")


def _only(text: str, fitting: list[_Training], how: str) -> str | None:
    if len(fitting) < 2:
        return fitting[0].job.id if fitting else None
    listed = ", ".join(t.text for t in fitting[:SHOWN])
    more = f" and {len(fitting) - SHOWN} more" if len(fitting) > SHOWN else ""
    raise ConfigError(f"{len(fitting)} trainings {how} {text!r}.", hint=f"Name one by its id: {listed}{more}.")


@dataclass(frozen=True)
class Annotation:
    """What is said of one run, or (``archived`` alone) of one row."""

    name: str = ""
    tags: tuple[str, ...] = ()
    note: str = ""
    archived: bool = False


def annotation_file(workspace: Workspace) -> Path:
    return workspace.root / "runs.json"


def list_annotations(workspace: Workspace) -> Mapping[str, Annotation]:
    """{id of a run or a row: what is said of it}. WorkspaceError where the file is damaged."""
    path = annotation_file(workspace)
    return ANSWERS.get(path, "annotations", lambda: _read(path)) if path.exists() else {}


def _read(path: Path) -> dict[str, Annotation]:
    value = read_json(path)
    try:
        return {
            str(key): Annotation(
                str(about.get("name", "")), tuple(map(str, about.get("tags", ()))), str(about.get("note", "")),
                bool(about.get("archived", False)),
            )
            for key, about in value["runs"].items()
        }  # fmt: skip
    except (KeyError, TypeError, AttributeError) as error:
        raise WorkspaceError(
            f"{path} does not hold names, tags and notes of runs.",
            hint="Put back a copy of it, or move it away: the scores are not in it.",
        ) from error
