"""Pruning a workspace: list and delete leftovers, checkpoints of finished jobs, embeddings and cached answers."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from cdp import jobs
from cdp.base.errors import ConfigError
from cdp.base.locks import is_held
from cdp.base.staging import PREFIX
from cdp.base.workspace import Workspace, folder_size
from cdp.jobs import State
from cdp.services import access

PRUNABLE = {
    "leftovers": "what killed imports, uploads, jobs and downloads left behind, after a day",
    "checkpoints": "checkpoints of trainings and other jobs that have finished; their models and results stay",
    "embeddings": "embeddings of benchmarks and corpora; they are computed again when needed",
    "layers": "what the frozen layers of retrievers give for texts; it is computed again when needed",
    "llm_cache": "answers of language models, kept so that nothing is paid twice; the query sets stay",
}

OLD_S = 24 * 3600.0  # what is younger may be in use

# Answers of language models were paid for: they are deleted only when they are named.
BY_DEFAULT = ("leftovers", "checkpoints", "embeddings", "layers")

_TEMPORARY = re.compile(rf"\..+\.[0-9a-f]{{12}}|{re.escape(PREFIX)}[0-9a-f]+|\.downloads")


@dataclass(frozen=True)
class Prune:
    """One kind of prunable item: the files or folders, and their size in bytes."""

    what: str
    size: int
    paths: tuple[str, ...]


def prunable(workspace: Workspace, what: Sequence[str] = BY_DEFAULT) -> list[Prune]:
    """Return what ``prune`` would delete, by kind. Raises ConfigError for an unknown kind."""
    unknown = [name for name in what if name not in PRUNABLE]
    if unknown:
        raise ConfigError(f"Nothing to clear away is called {unknown[0]!r}.", hint=f"There is: {', '.join(PRUNABLE)}.")
    rows = []
    for name in dict.fromkeys(what):
        if name == "checkpoints":
            finished = (job.folder / name for job in jobs.list_jobs(workspace) if job.state is State.FINISHED)
            doomed = [path for path in finished if path.is_dir()]
        elif jobs.list_active(workspace):  # they may be using the rest
            doomed = []
        else:
            doomed = list(_leftovers(workspace.root) if name == "leftovers" else (workspace.root / name).glob("[!.]*"))
        size = sum(folder_size(path) if path.is_dir() else path.lstat().st_size for path in doomed)
        rows.append(Prune(name, size, tuple(str(path.relative_to(workspace.root)) for path in doomed)))
    return rows


@access.writes
def prune(workspace: Workspace, what: Sequence[str] = BY_DEFAULT) -> list[Prune]:
    """Delete what ``prunable`` lists and return what was deleted."""
    rows = prunable(workspace, what)
    for path in (workspace.root / name for row in rows for name in row.paths):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    return rows


def _leftovers(root: Path) -> Iterator[Path]:
    """Yield temporary files and folders, down to those in a job's folder, neither locked nor younger than a day."""
    for path in (path for depth in (".*", "*/.*", "*/*/.*") for path in root.glob(depth)):
        if _TEMPORARY.fullmatch(path.name) and not is_held(path.with_name(f"{path.name}.lock")) and _old(path):
            yield path


def _old(path: Path) -> bool:
    try:
        return time.time() - path.lstat().st_mtime > OLD_S
    except OSError:
        return False
