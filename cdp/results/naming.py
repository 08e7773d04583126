"""Names of retrievers: a run by id, name or prefix; reserved names; names that people gave."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from cdp import jobs
from cdp.base.errors import ConfigError, NotFoundError, WorkspaceError, offer, some
from cdp.base.job_kind import STUDIES
from cdp.base.records import checked, fields
from cdp.base.text import typed_folder
from cdp.base.workspace import ANSWERS, Workspace, is_name, read_json
from cdp.jobs import JobView
from cdp.retrievers.resolve import TRAINING, is_reserved, title_of

# Trainings that are listed where several have one name.
SHOWN = 8

# Trainings, each with its names: the one it was started with, and the one given to it on Compare.
_Named = list[tuple[JobView, tuple[str, ...]]]


def retriever(workspace: Workspace, name: str) -> str:
    """Return the id of the training with this id, name or unique prefix; any other name (preset, folder …) as it is.

    ConfigError where several fit: it lists them.
    """
    text = name.strip()
    if not text or is_reserved(text) or (is_name(text) and workspace.job(text).is_dir()):
        return text
    folder = typed_folder(text)
    job = _find(text, _trainings(workspace), by_prefix=folder is None and "/" not in text)
    if job is not None and folder is not None:
        raise ConfigError(
            f"{text!r} is a training's name, and a folder here is called so too.",
            hint=f"Write the training's id, {job}, or the folder as a path: ./{text}",
        )
    return job or text


def training(workspace: Workspace, name: str) -> str:
    """Return the id of the training with this id, name or unique prefix. ConfigError for several, NotFoundError for
    none."""
    trainings = _trainings(workspace)
    if found := _find(name.strip(), trainings):
        return found
    if not trainings:
        raise NotFoundError("training", name, hint="There is no training yet: train QUERY_SET")

    ids = [job.id for job, _ in trainings]
    others = [other for _, names in trainings for other in names]
    raise NotFoundError("training", name, hint=offer(name, ids, also=others))


def trained(workspace: Workspace) -> list[JobView]:
    """Return the trainings, and the tests that kept a model, newest first."""
    return [job for job in jobs.list_jobs(workspace, [TRAINING, *STUDIES]) if job.kind == TRAINING or job.has_model]


def _trainings(workspace: Workspace) -> _Named:
    given = given_names(workspace)
    found: _Named = []
    for job in trained(workspace):
        own = [given[job.id]] if job.id in given else []
        found.append((job, (title_of(job.kind, job.name), *own)))

    return found


def _find(text: str, trainings: _Named, *, by_prefix: bool = True) -> str | None:
    """Return the training of this id or name, preferably one with a model, else the one whose id begins with it."""
    named, begun = [], []
    for job, names in trainings:
        if job.id == text:
            return text
        if text.casefold() in map(str.casefold, names):
            named.append(job)
        if by_prefix and text and job.id.startswith(text):
            begun.append(job)

    fitting, how = [job for job in named if job.has_model] or named, "are called"
    if not fitting:
        fitting, how = begun, "have an id that begins with"
    if len(fitting) < 2:
        return fitting[0].id if fitting else None

    listed = [f"{job.id} ({job.state}, {job.created[:16].replace('T', ' ')})" for job in fitting]
    hint = f"Name one by its id: {some(listed, SHOWN)}."
    raise ConfigError(f"{len(fitting)} trainings {how} {text!r}.", hint=hint)


# ``runs.json``.
_NAMES = fields({"runs": dict[str, fields({"name": str})]})  # type: ignore[misc]


def names_file(workspace: Workspace) -> Path:
    return workspace.root / "runs.json"


def given_names(workspace: Workspace) -> Mapping[str, str]:
    """Return {id of a run: the name that a person gave it on Compare}. WorkspaceError where the file is damaged."""
    path = names_file(workspace)
    return ANSWERS.get(path, "names", lambda: _read(path)) if path.exists() else {}


def _read(path: Path) -> dict[str, str]:
    try:
        runs = checked(_NAMES, read_json(path), path)["runs"]
        return {key: about["name"] for key, about in runs.items() if about["name"]}
    except WorkspaceError as error:
        raise WorkspaceError(
            f"{path} does not hold names of runs.",
            hint="Put back a copy of it, or move it away: the scores are not in it.",
        ) from error
