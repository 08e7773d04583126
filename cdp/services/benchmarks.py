"""The benchmarks that are known by name: what they are, bringing them in, and scores over groups of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cdp import jobs
from cdp import projects as room
from cdp.base.config import DownloadConfig, EvaluationConfig
from cdp.base.errors import ConfigError, NotFoundError
from cdp.base.text import typed_folder
from cdp.base.workspace import Workspace, disk_faults_told
from cdp.benchmarks import (
    BenchmarkInfo,
    add_benchmark,
    describe,
    download,
    library,
    list_benchmarks,
    manifests,
    registry,
    remove_benchmark,
    subsets,
)
from cdp.benchmarks.manifests import Manifest
from cdp.benchmarks.registry import Group
from cdp.benchmarks.schemas import Entry
from cdp.evaluation import bm25
from cdp.services import access, evaluation, projects

__all__ = ["list_benchmarks"]

WORKER = "cdp.workers.download"
KIND = "download"
GROUPS = registry.GROUPS


@dataclass(frozen=True)
class RegistryStatus:
    """An entry of the registry, and the workspace's benchmarks that are it. ``wanted`` is how many it is made of."""

    entry: Entry
    stored: tuple[str, ...]
    present: int
    wanted: int

    @property
    def here(self) -> bool:
        """Whether all that it is made of is in the workspace."""
        return self.present == self.wanted

    @property
    def state(self) -> str:
        """In words, whether it is in the workspace: ``yes``, ``3 of 12``, ``no``."""
        return "yes" if self.here else f"{self.present} of {self.wanted}" if self.present else "no"


@dataclass(frozen=True)
class BenchmarkDetails:
    """A benchmark by name: what the registry says of it, or which members a group has, and what is in the workspace."""

    name: str
    entry: Entry | None = None
    group: Group | None = None
    members: tuple[RegistryStatus, ...] = ()
    info: BenchmarkInfo | None = None
    manifest: Manifest | None = None


@dataclass(frozen=True)
class GroupStart:
    """The evaluations of a group: ``jobs`` that were started, ``reused`` results that were there, what is missing."""

    name: str
    jobs: tuple[str, ...]
    reused: tuple[str, ...]
    missing: tuple[str, ...]
    coverage: str


def list_registry(workspace: Workspace, group: str = "") -> list[RegistryStatus]:
    """The registry's entries, all or those of a group, with what is in the workspace. Parts of a mean are left out."""
    members = None
    if group:
        benchmark_group = registry.find_group(group)
        if benchmark_group is None:
            raise NotFoundError("group of benchmarks", group, known=list(registry.groups()))
        members = benchmark_group.members
    stored_entries = _stored_entries(workspace)
    shown = [entry for entry in registry.entries() if not entry.part_of and (members is None or entry.name in members)]
    return [_registry_status(entry, stored_entries) for entry in shown]


def _registry_status(entry: Entry, stored_entries: Mapping[str, tuple[str, str]]) -> RegistryStatus:
    leaves = registry.leaves(entry.name)
    stored = tuple(stored_entries[leaf.name][0] for leaf in leaves if leaf.name in stored_entries)
    return RegistryStatus(entry, stored, len(stored), len(leaves))


def list_own(workspace: Workspace) -> list[BenchmarkInfo]:
    """The workspace's benchmarks that stand for none of the registry: own ones, subsets, and broken ones."""
    registered_names = {name for name, _ in _stored_entries(workspace).values()}
    return [info for info in list_benchmarks(workspace) if info.name not in registered_names]


def _stored_entries(workspace: Workspace) -> dict[str, tuple[str, str]]:
    """{entry: (name, split) of the stored benchmark that is it}: downloaded ones, and own ones that are the same.

    An own benchmark counts if its name and its numbers of documents and judged queries are the registry's, so that a
    sample that happens to be called the same never does.
    """
    stored_entries: dict[str, tuple[str, str]] = {}
    for info in list_benchmarks(workspace):
        if info.problem or info.subset_of:
            continue
        entry = registry.find(info.entry or info.name)
        if entry is None or not entry.schema:
            continue
        if info.entry:
            split = entry.split if entry.split in info.splits else info.splits[0]
        else:
            sizes = (info.n_documents, {split: n for split, n in info.judged.items() if n == entry.queries})
            if sizes[0] != entry.documents or not sizes[1]:
                continue
            split = entry.split if entry.split in sizes[1] else next(iter(sizes[1]))
        if entry.name not in stored_entries or info.name == entry.name:
            stored_entries[entry.name] = (info.name, split)
    return stored_entries


def show(workspace: Workspace, name: str) -> BenchmarkDetails:
    """What is known of a benchmark or a group by that name. NotFoundError names what there is."""
    stored_entries = _stored_entries(workspace)
    group, entry = registry.find_group(name), registry.find(name)
    if group is not None and entry is None:
        members = tuple(
            _registry_status(e, stored_entries) for m in group.members if (e := registry.find(m)) is not None
        )
        return BenchmarkDetails(group.name, group=group, members=members)
    info = manifest = None
    stored = name if name in library.list_names(workspace) else None
    if entry is not None and stored is None and entry.name in stored_entries:
        stored = stored_entries[entry.name][0]
    if stored is not None:
        info = describe(workspace.benchmark(stored), workspace)
        manifest = manifests.read(workspace.benchmark(stored))
        entry = entry or registry.find(manifest.entry)
    if entry is None and info is None:
        known_names = [*library.list_names(workspace), *registry.groups(), *(e.name for e in registry.entries())]
        raise NotFoundError("benchmark", name, known=known_names, hint="See `benchmarks list`.")
    parts = (
        tuple(_registry_status(part, stored_entries) for part in registry.parts(entry.name))
        if entry is not None
        else ()
    )
    shown = stored or (entry.name if entry is not None else name)
    return BenchmarkDetails(shown, entry, members=parts, info=info, manifest=manifest)


@access.reads
def check_download(config: DownloadConfig) -> tuple[tuple[Entry, ...], Path | None]:
    """What a download brings in and from which folder; refused is what can be known to fail without the network."""
    wanted = registry.leaves(config.benchmark)
    if config.name and len(wanted) > 1:
        raise ConfigError(f"{config.benchmark} is {len(wanted)} benchmarks, which keep their own names.")
    folder = access.to_read(Workspace.default(), config.folder).resolve() if config.folder else None
    for leaf in wanted:
        if folder is not None:
            download.in_folder(leaf, folder)
    return wanted, folder


@access.runs
def start_download(workspace: Workspace, config: DownloadConfig) -> str:
    """Submit a download; the job's id. What can be known without the network is checked now."""
    wanted, folder = check_download(config)
    entry, group = registry.find(config.benchmark), registry.find_group(config.benchmark)
    label = entry.title if entry is not None else group.title if group is not None else config.benchmark
    return jobs.submit(
        workspace,
        kind=KIND,
        name=f"{label}{f' as {config.name}' if config.name else ''}",
        module=WORKER,
        config={**config.to_dict(), "folder": str(folder) if folder else ""},
        inputs={"entries": [leaf.name for leaf in wanted]},
        device=jobs.DeviceRequest.light(),
    )


@access.writes
def add(workspace: Workspace, path: str | Path, *, name: str = "", language: str = "") -> BenchmarkInfo:
    """Take a folder or a zip in BEIR layout into the workspace, after checking it; ``language`` is guessed if empty."""
    language = language.strip().lower()
    bm25.check_language(language)
    with disk_faults_told("The import"):
        added = add_benchmark(access.to_read(workspace, path), workspace, name, language)
    return describe(workspace.benchmark(added), workspace)


@access.writes
def sample(
    workspace: Workspace,
    name: str,
    *,
    queries: int = subsets.QUERIES,
    documents: int = subsets.DOCUMENTS,
    split: str = "",
    seed: int = 0,
    called: str = "",
) -> tuple[BenchmarkInfo, bool]:
    """Draw a subset of a stored benchmark: (what it is, whether it was there already). It joins its projects."""
    if queries < 1 or documents < 1:
        raise ConfigError("A subset needs at least one query and one document.")
    drawn = subsets.sample(name, workspace, queries=queries, documents=documents, split=split, seed=seed, called=called)
    for project in room.list_projects(workspace):
        if name in project.benchmarks:
            room.update(workspace, project.id, lambda before: before.with_members((), (drawn[0].name,)))
    return drawn


@access.writes
def delete(workspace: Workspace, name: str) -> None:
    """Remove a benchmark from the workspace and its projects. Results on it stay. ConfigError while a job needs it."""
    projects.check_unused(workspace, f"The benchmark {name}", name)
    remove_benchmark(name, workspace)
    room.forget(workspace, benchmark=name)


# groups


def is_several(workspace: Workspace, name: str) -> bool:
    """Whether a name means several benchmarks: a group, or a mean of parts, and nothing of that name is stored."""
    entry, group = registry.find(name), registry.find_group(name)
    if (entry is None or entry.schema) and group is None:
        return False
    return name not in library.list_names(workspace) and typed_folder(name) is None


@access.runs
def evaluate(workspace: Workspace, config: EvaluationConfig) -> GroupStart:
    """Evaluate a retriever on all that a group, or a mean, is made of and that is in the workspace.

    One job each; what was evaluated before with the same settings is not done again. ConfigError if nothing of it is
    in the workspace.
    """
    leaves, stored_entries = registry.leaves(config.benchmark), _stored_entries(workspace)
    missing = tuple(leaf.name for leaf in leaves if leaf.name not in stored_entries)
    if len(missing) == len(leaves):
        raise ConfigError(
            f"Nothing of {config.benchmark} is in the workspace.",
            hint=f"Bring it in first: benchmarks download {config.benchmark}.",
        )
    started, reused = [], []
    for leaf in leaves:
        if leaf.name not in stored_entries:
            continue
        name, split = stored_entries[leaf.name]
        values = {**config.to_dict(), "benchmark": name, "split": config.split or split}
        leaf_config = evaluation.checked(**{**values, "workspace": workspace})
        there = evaluation.existing(workspace, leaf_config)
        if there is None:
            started.append(evaluation.start(workspace, leaf_config))
        else:
            reused.append(there)
    coverage = f"{len(leaves) - len(missing)}/{len(leaves)}"
    return GroupStart(config.benchmark, tuple(started), tuple(reused), missing, coverage)


@access.runs
def evaluate_on(
    workspace: Workspace, retriever: str, benchmark_splits: Sequence[tuple[str, str]], settings: Mapping[str, Any]
) -> list[str]:
    """Evaluate a retriever on each (benchmark or group, split), but for what has such a result; the jobs' ids."""
    started: list[str] = []
    for name, split in benchmark_splits:
        values = {**settings, "retriever": retriever, "benchmark": name, "split": split}
        if is_several(workspace, name):
            started += evaluate(workspace, EvaluationConfig.from_dict(values)).jobs
            continue
        config = evaluation.checked(**{**values, "workspace": workspace})
        if evaluation.existing(workspace, config) is None:
            started.append(evaluation.start(workspace, config))
    return started
