"""Checks of ``cdp doctor`` on this machine and the workspace, each with its remedy."""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from packaging.requirements import Requirement

from cdp import catalog, jobs
from cdp.base.errors import CdpError, ConfigError
from cdp.base.locks import PREFIX, is_held
from cdp.base.machine import n_processors
from cdp.base.registry import HOMES, installed_plugins, package_of, registry
from cdp.base.text import counted
from cdp.base.workspace import INSTALLED, REPOSITORY, Workspace, folder_size, new_id
from cdp.corpus import recognition
from cdp.jobs import State
from cdp.llm import address
from cdp.llm.address import KEYS
from cdp.retrievers.presets import minilm_folder
from cdp.services import access, clusters

LOW_DISK_GB = 2.0
# What the package is called where packages are installed from.
DISTRIBUTION = "cdp-studio"


@dataclass(frozen=True)
class Check:
    """One check: whether it passed, and the finding or the remedy."""

    name: str
    ok: bool
    text: str


def check(workspace: Workspace) -> list[Check]:
    """Run every check; none changes anything."""
    return [
        _run("Python", lambda: (sys.version_info >= (3, 11), f"{sys.version.split()[0]} (3.11 or newer is needed)")),
        _run("packages", _packages),
        _run("plug-ins", _plugins),
        _run("workspace", lambda: _workspace(workspace)),
        _run("disk", lambda: _disk(workspace)),
        _run("catalogue", lambda: (True, f"{len(catalog.evaluations(workspace))} evaluations")),
        _run("embedded model", lambda: (True, f"all-MiniLM-L6-v2, weights verified ({minilm_folder().parent.name})")),
        _run("devices", _devices),
        _run("cluster", lambda: clusters.trouble(workspace)),
        _run("LLM endpoint key", _key),
        _run("scanned pages", _scans),
        _run("proxies", lambda: (True, ", ".join(address.check_proxies().values()) or "none")),
    ]


def _run(name: str, what: Callable[[], tuple[bool, str]]) -> Check:
    try:
        ok, text = what()
    except (CdpError, OSError) as error:
        return Check(name, False, str(error))
    return Check(name, ok, text)


def _packages() -> tuple[bool, str]:
    """Check that every library has a tested version: in a clone the pinned one, else one of the package's range."""
    lines = importlib.metadata.requires(DISTRIBUTION) if INSTALLED else None
    if lines is None:
        lines = (REPOSITORY / "requirements.txt").read_text(encoding="utf-8").splitlines()

    wrong = []
    for line in lines:
        text = line.partition("#")[0].strip()
        if not text:
            continue

        wanted = Requirement(text)
        if wanted.marker is None or wanted.marker.evaluate({"extra": ""}):
            with suppress(importlib.metadata.PackageNotFoundError):
                if importlib.metadata.version(wanted.name).split("+")[0] in wanted.specifier:
                    continue
            wrong.append(f"{wanted.name}{wanted.specifier}")
    if not wrong:
        return True, "as the package asks for"

    cure = f"pip install --upgrade {DISTRIBUTION}" if INSTALLED else "make install"
    return False, f"not installed: {', '.join(wrong)}. Run {cure}"


def _plugins() -> tuple[bool, str]:
    """List the plug-ins. CdpError names one that cannot be loaded."""
    for kind in HOMES:
        len(registry(kind))
    packages = dict.fromkeys(package_of(entry) for entry in installed_plugins())
    return True, ", ".join(packages) or "none"


def _workspace(workspace: Workspace) -> tuple[bool, str]:
    workspace.root.mkdir(parents=True, exist_ok=True)
    probe = workspace.root / f".{new_id('probe')}"
    probe.write_text("ok", encoding="utf-8")
    probe.unlink()
    return True, f"{workspace.root} is writable"


def _disk(workspace: Workspace) -> tuple[bool, str]:
    workspace.root.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(workspace.root).free / 1e9
    if free <= LOW_DISK_GB:
        return False, f"{free:.1f} GB free: free some space"

    return True, f"{free:.1f} GB free"


def _devices() -> tuple[bool, str]:
    gpus = jobs.list_gpus()
    names = "; ".join(f"{gpu.label} ({gpu.uuid})" for gpu in gpus)
    found, trouble = f"{counted(n_processors(), 'CPU core')}, {names or 'no GPU'}", jobs.gpu_trouble()
    return not trouble, f"{found}. {trouble}" if trouble else found


def _scans() -> tuple[bool, str]:
    """Name the languages in which scanned pages are read, or what is missing; nothing else needs it."""
    remedy = recognition.remedy()
    return True, f"not read: {remedy}" if remedy else f"read in {', '.join(recognition.packs())}"


def _key() -> tuple[bool, str]:
    there = any(os.environ.get(name) for name in KEYS)
    return True, "set in the environment" if there else "none in the environment; the template generator needs none"


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
            finished = [job.folder / name for job in jobs.list_jobs(workspace) if job.state is State.FINISHED]
            doomed = list(filter(Path.is_dir, finished))
        elif jobs.list_active(workspace):  # they may be using the rest
            doomed = []
        elif name == "leftovers":
            doomed = list(_leftovers(workspace.root))
        else:
            doomed = list((workspace.root / name).glob("[!.]*"))

        size = sum(folder_size(path) if path.is_dir() else path.lstat().st_size for path in doomed)
        rows.append(Prune(name, size, tuple(str(path.relative_to(workspace.root)) for path in doomed)))

    return rows


@access.writes
def prune(workspace: Workspace, what: Sequence[str] = BY_DEFAULT) -> list[Prune]:
    """Delete what ``prunable`` lists and return what was deleted."""
    rows = prunable(workspace, what)
    for row in rows:
        for path in map(workspace.root.joinpath, row.paths):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)

    return rows


def _leftovers(root: Path) -> Iterator[Path]:
    """Yield temporary files and folders, down to those in a job's folder, neither locked nor younger than a day."""
    for path in chain.from_iterable(map(root.glob, (".*", "*/.*", "*/*/.*"))):
        if not _TEMPORARY.fullmatch(path.name) or is_held(path.with_name(f"{path.name}.lock")):
            continue
        with suppress(OSError):  # removed meanwhile
            if time.time() - path.lstat().st_mtime > OLD_S:
                yield path
