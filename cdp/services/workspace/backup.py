"""Taking a workspace along, or a part of it, and clearing away what can be made anew."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cdp import jobs, query_sets
from cdp.base import archives
from cdp.base.archives import Report, Written
from cdp.base.errors import ConfigError, InputError, NotFoundError
from cdp.base.locks import is_held
from cdp.base.staging import OLD_S, PREFIX
from cdp.base.workspace import Workspace, folder_size, read_json_or_none
from cdp.corpus import resolve_corpus
from cdp.jobs import JobView, State
from cdp.jobs.launchers import is_worker
from cdp.jobs.tidy import DELETED, NEW
from cdp.services.jobs import in_use
from cdp.services.sharing import access, paths
from cdp.services.workspace.prune_kinds import BY_DEFAULT, PRUNABLE

CACHES = ("llm_cache", "embeddings")

_SPEC = re.compile(r"jobs/[^/]+/spec\.json", re.IGNORECASE)  # some file systems do not tell them apart

_TEMPORARY = re.compile(r"\..+\.[0-9a-f]{12}|\.(storing|importing)-.+")


@dataclass(frozen=True)
class Prune:
    """One kind of what can go: how many files or folders, their bytes, and where they are."""

    what: str
    about: str
    n: int
    size: int
    paths: tuple[str, ...]


@access.writes
def export(
    workspace: Workspace,
    target: str | Path,
    *,
    corpora: Sequence[str] = (),
    queries: Sequence[str] = (),
    benchmarks: Sequence[str] = (),
    jobs_: Sequence[str] = (),
    caches: bool = True,
    report: Report = lambda done, total: None,
) -> Written:
    """Write the workspace into one archive, or the parts that are named, with all that they rest on.

    Jobs at work are left out, and what they write; the answer names them. ``caches`` are model answers and embeddings.
    """
    active = jobs.list_active(workspace)
    at_work = {job.id for job in active} | {name for job in active for name in in_use.written_by(job)}
    left_out = [f"{job.name} ({job.id}): it is {job.state}" for job in active]
    chosen = {
        "corpora": [resolve_corpus(workspace, name).id for name in corpora],
        "queries": [query_sets.resolve_query_set(workspace, name).id for name in queries],
        "benchmarks": list(benchmarks),
        "jobs": [jobs.resolve_job(workspace, name) for name in jobs_],
    }
    if any(chosen.values()):
        folders = _with_what_they_rest_on(workspace, chosen)
    else:
        tops = [name for name in archives.TOP if caches or name not in CACHES]
        folders = [path for name in tops for path in _visible(workspace.root / name)]
        folders += [workspace.root / name for name in archives.SINGLE if (workspace.root / name).is_file()]
    folders = [folder for folder in folders if folder.name not in at_work]
    return archives.export(workspace, paths.to_write(workspace, target), folders, left_out=left_out, report=report)


def _with_what_they_rest_on(workspace: Workspace, chosen: dict[str, list[str]]) -> list[Path]:
    """The folders of what is named, and of all that their manifests and specifications name in turn."""
    present = {name: {path.name: path for path in _visible(workspace.root / name)} for name in chosen}
    folders: dict[Path, None] = {}
    waiting = []
    for kind, names in chosen.items():
        for name in names:
            if name not in present[kind]:
                raise NotFoundError(kind.rstrip("s"), name, known=sorted(present[kind]))
            waiting.append(present[kind][name])
    while waiting:
        folder = waiting.pop()
        if folder in folders:
            continue
        folders[folder] = None
        about: Any = [read_json_or_none(folder / name) for name in archives.LAST]
        named = set(in_use.texts(about))
        waiting += [path for by_name in present.values() for name, path in by_name.items() if name in named]
    return list(folders)


@access.writes
def import_archive(workspace: Workspace, source: str | Path, *, report: Report = lambda done, total: None) -> Written:
    """Bring an archive's content into the workspace, all of it or nothing. What is there is never overwritten."""
    return archives.import_archive(workspace, paths.to_read(workspace, source), check=_check_job, report=report)


def _check_job(name: str, unpacked: Path) -> None:
    """InputError for a job that would run something else than a worker of this program when it is resumed."""
    spec = read_json_or_none(unpacked) if _SPEC.fullmatch(name) else None
    module = spec.get("module") if isinstance(spec, dict) else None
    if module is not None and not is_worker(str(module)):
        raise InputError(
            f"{name} would run {str(module)[:100]!r}, which is no worker of this program.",
            hint="Nothing was imported. Ask whoever made the archive.",
        )


def prunable(workspace: Workspace, what: Sequence[str] = BY_DEFAULT) -> list[Prune]:
    """What would go, by kind; nothing is changed. ConfigError for a kind that there is not."""
    unknown = [name for name in what if name not in PRUNABLE]
    if unknown:
        raise ConfigError(f"Nothing to clear away is called {unknown[0]!r}.", hint=f"There is: {', '.join(PRUNABLE)}.")
    active = jobs.list_active(workspace)
    ended = [job for job in jobs.list_jobs(workspace) if not job.active]
    rows = []
    for name in dict.fromkeys(what):
        if name == "leftovers":
            doomed = list(_leftovers(workspace, active, ended))
        elif name == "checkpoints":
            finished = [job.folder / "checkpoints" for job in ended if job.state is State.FINISHED]
            doomed = [path for path in finished if path.is_dir()]
        else:
            doomed = [] if active else _visible(workspace.root / name)  # jobs at work may be reading them
        size = sum(folder_size(path) if path.is_dir() else path.lstat().st_size for path in doomed)
        shown = tuple(str(path.relative_to(workspace.root)) for path in doomed)
        rows.append(Prune(name, PRUNABLE[name], len(doomed), size, shown))
    return rows


@access.writes
def prune(workspace: Workspace, what: Sequence[str] = BY_DEFAULT) -> list[Prune]:
    """Clear away what ``prunable`` shows; the answer says what went."""
    rows = prunable(workspace, what)
    gone = []
    for row in rows:
        done = []
        for name in row.paths:
            path = workspace.root / name
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)
            if not path.exists():
                done.append(name)
        gone.append(Prune(row.what, row.about, len(done), row.size if len(done) == row.n else 0, tuple(done)))
    return gone


def _visible(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("[!.]*") if path.is_dir() or path.is_file())


def _leftovers(workspace: Workspace, active: Sequence[JobView], ended: Sequence[JobView]) -> Iterator[Path]:
    """Hidden things that no process is at work on: their lock is free, or nothing has touched them for a day."""
    parents = [workspace.root, workspace.corpora, workspace.queries, workspace.benchmarks, workspace.uploads]
    parents += [workspace.projects, *workspace.projects.glob("[!.]*/")]
    for parent in parents:
        for path in parent.glob(".*"):
            if path.name.startswith(PREFIX) and path.suffix != ".lock":
                lock = path.with_name(f"{path.name}.lock")
                if (lock.exists() and not is_held(lock)) or _old(path):
                    yield path
            elif _TEMPORARY.fullmatch(path.name) and _old(path):
                yield path
    for path in workspace.jobs.glob(".*"):
        if path.name.startswith((NEW, DELETED)) and not is_held(path / "alive.lock"):
            yield path
    for job in ended:
        yield from (path for path in job.folder.glob(".*") if _TEMPORARY.fullmatch(path.name))
    if not any(job.kind == "download" for job in active):
        yield from _visible(workspace.benchmarks / ".downloads")
    replaced = workspace.catalog.with_name(f"{workspace.catalog.name}.replaced")
    if replaced.exists():
        yield replaced


def _old(path: Path) -> bool:
    try:
        return time.time() - path.lstat().st_mtime > OLD_S
    except OSError:
        return False
