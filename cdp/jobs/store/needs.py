"""What of the workspace a job needs on a machine that has none of it, and what may come back.

A job names what it reads in its configuration and its inputs, and whatever is named there and lies in the workspace is
taken along, with what that names in turn. This room knows no stage and no noun, so a name that only looks like one is
taken along as well; nobody can forget to say what a new kind of job reads.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from cdp.base.errors import ConfigError
from cdp.base.workspace import LONGEST_NAME, Workspace, read_json_or_none
from cdp.jobs.handover import FILES as KEYS
from cdp.jobs.lease import LEASE, NODE
from cdp.jobs.place import Place
from cdp.jobs.spec import JobSpec

SHARED_TOPS = ("corpora", "queries", "benchmarks", "embeddings")
"""Folders of the workspace that a job adds to, beside its own folder."""

NAMED_TOPS = ("corpora", "queries", "benchmarks", "jobs")
"""Folders whose parts have names."""

ALWAYS = ("workspace.json", "prices.json")

RECORD = "store.json"

SPEC = "spec.json"

SUBMITTERS = frozenset((SPEC, "status.json", "supervisor.log", "reserve", "stop.request", LEASE, NODE, RECORD))
"""What in a job's folder is written where it was submitted, and never comes back from a node."""

GROWING = (".jsonl", ".log")
"""How the names of files end that are only ever appended to."""

NEWS = ("heartbeat.json",)
"""Small files of a job's folder that say how it goes, beside those that grow: they need not fit the rest."""

LARGEST_RECORD = 4 << 20
"""Bytes of a record that is looked through for names."""

_WORDS = re.compile(r"[^\w.\-]+")


def needed(workspace: Workspace, spec: JobSpec, made: set[str]) -> list[str]:
    """The names, from the workspace's root, of all files that the job needs; ``made`` are those that an earlier attempt
    put elsewhere than into its own folder."""
    known = {top: _listed(workspace.root / top) for top in NAMED_TOPS}
    own = f"jobs/{spec.id}"
    taken: set[str] = set()
    left = [(top, name) for top, name in _named(known, (spec.config, spec.inputs))]
    while left:
        top, name = left.pop()
        if f"{top}/{name}" in taken or f"{top}/{name}" == own:
            continue
        taken.add(f"{top}/{name}")
        left += _next(workspace.root / top / name, top, known)
    files = [name for name in ALWAYS if (workspace.root / name).is_file()]
    files += [name for name in made if (workspace.root / name).is_file()]
    for item in (*taken, *_paths(workspace.root, (spec.config, spec.inputs))):
        files += _of_item(workspace.root, item)
    files += [name for name in files_below(workspace.root, own) if is_carried(name, own) or name == f"{own}/{SPEC}"]
    return sorted(set(files))


def check_shares(place: Place, shares: str) -> None:
    """ConfigError for a job that shares something with others and whose place has a store."""
    if place.store and shares:
        raise ConfigError(
            f"The job shares {shares} with other jobs, in files that the cluster's nodes do not see.",
            hint="Run it on this machine: --on here. Or put the workspace on a file system that all nodes have.",
        )


def check(workspace: Workspace, spec: JobSpec) -> None:
    """ConfigError for a job whose place has a store and that cannot run there."""
    if not spec.place.store:
        return
    check_shares(spec.place, spec.shares)
    if spec.place.workers:
        raise ConfigError(
            "A training on several nodes shares files, and the cluster's nodes see them through a store alone.",
            hint="Leave workers out of --resources, or put the workspace on a file system that all nodes have.",
        )
    for text in strings((spec.config, spec.inputs)):
        if not 1 < len(text) < 4096 or "\n" in text or not (os.sep in text or text.startswith(("~", "."))):
            continue
        try:
            path = Path(spec.cwd or ".", Path(text).expanduser()).resolve()
            outside = path.exists() and workspace.root.resolve() not in (path, *path.parents)
        except (OSError, RuntimeError, ValueError):
            continue
        if outside:
            raise ConfigError(
                f"The job reads {text}, which lies outside the workspace, and the cluster's nodes see no file of this "
                "machine.",
                hint="Bring it into the workspace, or run the job on this machine: --on here",
            )


def is_carried(name: str, own: str) -> bool:
    """Whether a node may send back a file of that name: to the job's own folder, or to those that it may add to."""
    path = PurePosixPath(name)
    parts = path.parts
    if path.is_absolute() or str(path) != name or not all(map(_is_plain, parts)):
        return False
    if name.startswith(f"{own}/"):
        top = len(parts) == 3
        return not (top and (parts[2] in SUBMITTERS or parts[2].startswith(KEYS))) and path.suffix != ".lock"
    return len(parts) > 2 and parts[0] in SHARED_TOPS


def is_news(name: str, own: str) -> bool:
    """Whether a file says how the job goes: such ones are sent at once, by themselves."""
    folder, _, last = name.rpartition("/")
    return folder == own and (last in NEWS or last.endswith(GROWING)) and last not in SUBMITTERS


def _is_plain(part: str) -> bool:
    return not part.startswith(".") and not re.search(r"[\\\x00-\x1f\x7f]", part) and len(part.encode()) <= LONGEST_NAME


def files_below(root: Path, folder: str) -> Iterator[str]:
    """The names of the regular files below a folder, but hidden ones: those are on their way."""
    for parent, below, names in os.walk(root / folder):
        below[:] = [name for name in below if not name.startswith(".")]
        for name in names:
            if not name.startswith(".") and os.path.isfile(path := os.path.join(parent, name)):
                yield os.path.relpath(path, root).replace(os.sep, "/")


def strings(value: Any) -> Iterator[str]:
    """All texts in a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from strings((key, inner))
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from strings(inner)


def _listed(folder: Path) -> set[str]:
    try:
        return {name for name in os.listdir(folder) if not name.startswith(".")}
    except OSError:
        return set()


def _named(known: dict[str, set[str]], value: Any) -> Iterator[tuple[str, str]]:
    for text in strings(value):
        for word in {text, *_WORDS.split(text)} if len(text) < LARGEST_RECORD else ():
            yield from ((top, word) for top in NAMED_TOPS if word in known[top])


def _paths(root: Path, value: Any) -> Iterator[str]:
    """What is named by its path in the workspace."""
    for text in strings(value):
        path = PurePosixPath(text)
        if root in path.parents and ".." not in path.parts:
            yield str(path.relative_to(root))


def _next(folder: Path, top: str, known: dict[str, set[str]]) -> list[tuple[str, str]]:
    """What the records of a part name. What another job has made is whole without what it read, but for the jobs that
    it built on."""
    if top == "jobs":
        spec = read_json_or_none(folder / SPEC) or {}
        return [one for one in _named(known, (spec.get("config"), spec.get("inputs"))) if one[0] == "jobs"]
    records = [path for path in folder.glob("*.json") if path.stat().st_size <= LARGEST_RECORD]
    return [one for path in records for one in _named(known, read_json_or_none(path))]


def _of_item(root: Path, item: str) -> Iterator[str]:
    """The files of a part; of another job its specification and what it made, without checkpoints and logs."""
    for name in files_below(root, item) if (root / item).is_dir() else [item] if (root / item).is_file() else ():
        parts = name.split("/")
        if parts[0] != "jobs" or parts[2:] == [SPEC] or (len(parts) > 3 and parts[2] != "checkpoints"):
            yield name
