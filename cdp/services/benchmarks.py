"""Benchmarks by name: the registry, downloads, own ones and subsets; evaluations over groups."""

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
    resolve_benchmark,
    subsets,
)
from cdp.benchmarks.manifests import Manifest
from cdp.benchmarks.registry import Group
from cdp.benchmarks.schemas import Entry
from cdp.retrievers import bm25
from cdp.services import access, evaluation, projects

__all__ = ["list_benchmarks"]

GROUPS = registry.GROUPS


@dataclass(frozen=True)
class RegistryStatus:
    """An entry of the registry, the workspace's benchmarks that are it, and the number of those that it consists of."""

    entry: Entry
    stored: tuple[str, ...]
    present: int
    wanted: int

    @property
    def here(self) -> bool:
        """True if the workspace has all of it."""
        return self.present == self.wanted

    @property
    def state(self) -> str:
        """``yes``, ``3 of 12``, ``no``."""
        return "yes" if self.here else f"{self.present} of {self.wanted}" if self.present else "no"


@dataclass(frozen=True)
class BenchmarkDetails:
    """A benchmark or group by name: its registry entry or members, and what is in the workspace."""

    name: str
    entry: Entry | None = None
    group: Group | None = None
    members: tuple[RegistryStatus, ...] = ()
    info: BenchmarkInfo | None = None
    manifest: Manifest | None = None


@dataclass(frozen=True)
class GroupStart:
    """The evaluations of a benchmark or group: started ``jobs``, ``reused`` results, and missing benchmarks."""

    jobs: tuple[str, ...]
    reused: tuple[str, ...]
    missing: tuple[str, ...]
    coverage: str


def list_registry(workspace: Workspace, group: str = "") -> list[RegistryStatus]:
    """Return the registry's entries, all or those of a group, without parts of a mean."""
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
    """Return the workspace's benchmarks that are not of the registry: own ones, subsets, and broken ones."""
    registered_names = {name for name, _ in _stored_entries(workspace).values()}
    return [info for info in list_benchmarks(workspace) if info.name not in registered_names]


def _stored_entries(workspace: Workspace) -> dict[str, tuple[str, str]]:
    """Return {entry: (name, split) of its stored benchmark}, downloaded or added.

    An added benchmark counts if its name and its numbers of documents and judged queries are the registry's: a sample
    of the same name does not.
    """
    stored_entries: dict[str, tuple[str, str]] = {}
    for info in list_benchmarks(workspace):
        entry = None if info.problem or info.subset_of else registry.find(info.entry or info.name)
        if entry is None or not entry.schema:
            continue
        splits = list(info.splits)
        if not info.entry:
            splits = [split for split, n in info.judged.items() if n == entry.queries]
            if info.n_documents != entry.documents or not splits:
                continue
        if entry.name not in stored_entries or info.name == entry.name:
            stored_entries[entry.name] = (info.name, entry.split if entry.split in splits else splits[0])
    return stored_entries


def show(workspace: Workspace, name: str) -> BenchmarkDetails:
    """Return the details of a benchmark or a group. NotFoundError lists the known names."""
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
    parts = registry.parts(entry.name) if entry is not None else ()
    members = tuple(_registry_status(part, stored_entries) for part in parts)
    shown = stored or (entry.name if entry is not None else name)
    return BenchmarkDetails(shown, entry, members=members, info=info, manifest=manifest)


@access.reads
def check_download(config: DownloadConfig) -> tuple[tuple[Entry, ...], Path | None]:
    """Return a download's benchmarks and folder. Raises for what is known to fail without the network."""
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
    """Submit a download after ``check_download``; return the job's id."""
    wanted, folder = check_download(config)
    entry, group = registry.find(config.benchmark), registry.find_group(config.benchmark)
    label = entry.title if entry is not None else group.title if group is not None else config.benchmark
    return jobs.submit(
        workspace,
        kind="download",
        name=f"{label}{f' as {config.name}' if config.name else ''}",
        module="cdp.workers.download",
        config={**config.to_dict(), "folder": str(folder) if folder else ""},
        inputs={"entries": [leaf.name for leaf in wanted]},
        device=jobs.DeviceRequest.light(),
    )


@access.writes
def add(workspace: Workspace, path: str | Path, *, name: str = "", language: str = "") -> BenchmarkInfo:
    """Check and add a folder or a zip in BEIR layout; ``language`` is detected if empty."""
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
    """Draw a subset of a stored benchmark into its projects; return (the subset, whether it existed)."""
    if queries < 1 or documents < 1:
        raise ConfigError("A subset needs at least one query and one document.")
    drawn = subsets.sample(name, workspace, queries=queries, documents=documents, split=split, seed=seed, called=called)
    projects.take_along(workspace, "benchmark", name, drawn[0].name)
    return drawn


@access.writes
def delete(workspace: Workspace, name: str) -> None:
    """Delete a benchmark, also from its projects. Results on it stay. ConfigError while a job needs it."""
    projects.check_unused(workspace, f"The benchmark {name}", name)
    remove_benchmark(name, workspace)
    room.forget(workspace, benchmark=name)


@access.writes
def export(workspace: Workspace, name: str, form: str, target: str | Path, *, split: str = "") -> Path:
    """Write a benchmark as a BEIR folder (``beir``), or a split's judgments as TREC qrels; return the path."""
    folder, path = resolve_benchmark(name, workspace), access.to_write(target)
    with disk_faults_told("The export"):
        path.parent.mkdir(parents=True, exist_ok=True)
        if form == "beir":
            library.export_beir(folder, path)
        else:
            library.export_trec(folder, split, path)
    return path


# groups


def is_several(workspace: Workspace, name: str) -> bool:
    """Return True for a name of several benchmarks (a group, or a mean of parts) that is not stored itself."""
    entry, group = registry.find(name), registry.find_group(name)
    if (entry is None or entry.schema) and group is None:
        return False
    return name not in library.list_names(workspace) and typed_folder(name) is None


@access.runs
def evaluate(workspace: Workspace, config: EvaluationConfig) -> GroupStart:
    """Evaluate a retriever on a benchmark, or on the stored ones of a group or a mean, one job each.

    Existing results with the same settings are reused. ConfigError if none of the benchmarks is stored.
    """
    wanted = each(workspace, config)
    if not wanted:
        raise ConfigError(
            f"Nothing of {config.benchmark} is in the workspace.",
            hint=f"Bring it in first: benchmarks download {config.benchmark}.",
        )
    leaves = registry.leaves(config.benchmark) if is_several(workspace, config.benchmark) else ()
    stored_entries = _stored_entries(workspace)
    missing = tuple(leaf.name for leaf in leaves if leaf.name not in stored_entries)
    there = [evaluation.existing(workspace, one) for one in wanted]
    started = tuple(evaluation.start(workspace, c) for c, known in zip(wanted, there, strict=True) if known is None)
    return GroupStart(started, tuple(filter(None, there)), missing, f"{len(wanted)}/{len(leaves) or 1}")


@access.reads
def each(workspace: Workspace, config: EvaluationConfig) -> list[EvaluationConfig]:
    """Return the evaluation of one benchmark, or those of a group's benchmarks that are stored."""
    places = [(config.benchmark, config.split)]
    if is_several(workspace, config.benchmark):
        stored_entries = _stored_entries(workspace)
        here = [leaf.name for leaf in registry.leaves(config.benchmark) if leaf.name in stored_entries]
        places = [(name, config.split or split) for name, split in map(stored_entries.__getitem__, here)]
    values = {**config.to_dict(), "workspace": workspace}
    return [evaluation.checked(**{**values, "benchmark": name, "split": split}) for name, split in places]


@access.runs
def evaluate_on(
    workspace: Workspace, retriever: str, benchmark_splits: Sequence[tuple[str, str]], settings: Mapping[str, Any]
) -> list[str]:
    """Evaluate a retriever on each (benchmark or group, split) without such a result; return the jobs' ids."""
    values = [
        {**settings, "retriever": retriever, "benchmark": name, "split": split} for name, split in benchmark_splits
    ]
    return [job for each in values for job in evaluate(workspace, EvaluationConfig.from_dict(each)).jobs]
