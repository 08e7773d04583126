"""Benchmarks by name: list, download, add, subset, delete, export."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from cdp.base import permission
from cdp.base.errors import ConfigError, NotFoundError
from cdp.base.workspace import Workspace, disk_faults_told
from cdp.benchmarks import (
    BenchmarkInfo,
    add_benchmark,
    describe,
    library,
    list_benchmarks,
    manifests,
    mteb,
    registry,
    remove_benchmark,
    resolve_benchmark,
    subsets,
)
from cdp.benchmarks.download import beir_layout
from cdp.benchmarks.manifests import Manifest
from cdp.benchmarks.schemas import Entry
from cdp.projects import forget
from cdp.retrievers import bm25
from cdp.services import access, projects

__all__ = ["list_benchmarks"]


@dataclass(frozen=True)
class BenchmarkDetails:
    """A benchmark by name: its registry entry, and what is in the workspace."""

    name: str
    entry: Entry | None = None
    info: BenchmarkInfo | None = None
    manifest: Manifest | None = None


def list_registry(workspace: Workspace) -> list[tuple[Entry, str]]:
    """Return the downloadable entries of the registry, each with the name of its stored benchmark; empty for none."""
    stored = _stored_entries(workspace)
    return [(entry, stored.get(entry.name, "")) for entry in registry.entries() if entry.schema]


def list_own(workspace: Workspace) -> list[BenchmarkInfo]:
    """Return the workspace's benchmarks that are not of the registry: own ones, subsets, and broken ones."""
    registered = set(_stored_entries(workspace).values())
    return [info for info in list_benchmarks(workspace) if info.name not in registered]


def _stored_entries(workspace: Workspace) -> dict[str, str]:
    """Return {entry: name of its stored benchmark}, downloaded or added.

    An added benchmark counts if its name and its numbers of documents and judged queries are the registry's: a sample
    of the same name does not.
    """
    stored: dict[str, str] = {}
    for info in list_benchmarks(workspace):
        entry = None if info.problem or info.subset_of else registry.find(info.entry or info.name)
        if entry is None or not entry.schema:
            continue
        same_sizes = info.n_documents == entry.documents and entry.queries in info.judged.values()
        if (info.entry or same_sizes) and (entry.name not in stored or info.name == entry.name):
            stored[entry.name] = info.name
    return stored


def show(workspace: Workspace, name: str) -> BenchmarkDetails:
    """Return the details of a benchmark. NotFoundError lists the known names."""
    entry, stored = registry.find(name), name if name in library.list_names(workspace) else ""
    if entry is not None and not stored:
        stored = _stored_entries(workspace).get(entry.name, "")
    if not stored:
        if entry is None:
            known_names = [*library.list_names(workspace), *(e.name for e in registry.entries())]
            raise NotFoundError("benchmark", name, known=known_names, hint="See `benchmarks list`.")
        return BenchmarkDetails(entry.name, entry)
    manifest = manifests.read(workspace.benchmark(stored))
    info = describe(workspace.benchmark(stored), workspace)
    return BenchmarkDetails(stored, entry or registry.find(manifest.entry), info, manifest)


@access.writes
def add(workspace: Workspace, path: str | Path, *, name: str = "", language: str = "") -> BenchmarkInfo:
    """Check and add a folder or zip in BEIR layout, or a folder of tables; ``language`` is detected if empty."""
    language = language.strip().lower()
    bm25.check_language(language)
    with disk_faults_told("The import"), beir_layout(permission.to_read(workspace, path), workspace) as (folder, _):
        added = add_benchmark(folder, workspace, name, language)
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
    forget(workspace, benchmark=name)


@access.writes
def export(
    workspace: Workspace, name: str, form: str, target: str | Path, *, split: str = ""
) -> tuple[Path, list[str]]:
    """Write a benchmark as a BEIR folder (``beir``), a task of MTEB (``mteb``), or a split's judgments as TREC qrels.

    Return the path, and sentences on what the format cannot hold.
    """
    notes: list[str] = []
    folder, path = resolve_benchmark(name, workspace), permission.to_write(target)
    with disk_faults_told("The export"):
        path.parent.mkdir(parents=True, exist_ok=True)
        if form == "beir":
            library.export_beir(folder, path)
        elif form == "mteb":
            notes = mteb.export_mteb(folder, path)
        else:
            library.export_trec(folder, split, path)
    return path, notes
