"""Downloading a benchmark of the registry into the workspace: from the hub, or from a folder downloaded elsewhere.

::

    benchmarks/.downloads/<name>/pins.json     the commits that this download reads, decided once
                                 files/…       what was fetched so far; a second attempt goes on from there
                                 converted/    the BEIR layout being written; renamed to benchmarks/<name> when checked

A branch is resolved to its commit at the first download. The commit stands in the manifest of the stored benchmark, and
whoever downloads the same entry again without naming a revision gets that commit, until the benchmark is removed.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from cdp.base.errors import ConfigError, WorkspaceError
from cdp.base.locks import locked
from cdp.base.workspace import Workspace, checked_name, folder_size, now, sha256_file
from cdp.benchmarks import hub, library, manifests
from cdp.benchmarks.convert import Counts, Progress, write_layout
from cdp.benchmarks.entry import Entry
from cdp.benchmarks.library import BenchmarkInfo
from cdp.benchmarks.origins import BenchmarkSource, from_hub, in_folder, pins


@dataclass(frozen=True)
class Stored:
    """A benchmark in the workspace, and whether it was there before."""

    info: BenchmarkInfo
    existed: bool


def stored_by_entry(workspace: Workspace) -> dict[str, list[str]]:
    """{entry of the registry: the workspace's benchmarks that were made from it}, subsets left out."""
    by_entry: dict[str, list[str]] = {}
    for name in library.list_names(workspace):
        manifest = manifests.read(workspace.benchmarks / name)
        if manifest.entry and manifest.subset is None:
            by_entry.setdefault(manifest.entry, []).append(name)
    return by_entry


def download_benchmark(
    entry: Entry,
    workspace: Workspace,
    *,
    revision: str = "",
    folder: Path | None = None,
    name: str = "",
    progress: Progress | None = None,
    should_stop: Callable[[], bool] | None = None,
) -> Stored:
    """Store a benchmark of the registry under its own or another ``name``.

    From ``folder`` if one is given, else from the hub at ``revision`` (see ``pins``). A benchmark that is there already
    from the same entry and revision is left as it is. Raises DownloadError without a network, InputError for a source
    that cannot be used, ConfigError for a name that is taken, StoppedError once ``should_stop`` says so.
    """
    name = checked_name(name or entry.name)
    staging = workspace.benchmarks / ".downloads" / name
    with locked(staging.parent / f".{name}.lock", f"The download of {name}", wait_s=1.0):
        target = workspace.benchmarks / name
        if target.exists():
            return _there(entry, target, workspace, revision, folder)
        if folder is not None:
            source = in_folder(entry, folder)
        else:
            source = from_hub(entry, staging, revision, _earlier(entry, workspace), progress, should_stop)
        converted = staging / "converted"
        shutil.rmtree(converted, ignore_errors=True)  # of an attempt that was killed
        try:
            with _written():
                info = _convert(entry, source, converted, target, workspace, progress, should_stop)
        finally:
            shutil.rmtree(converted, ignore_errors=True)
            with suppress(OSError):
                staging.rmdir()  # what was fetched stays, to go on from; of a local folder nothing was
        hub.forget(staging)
    return Stored(info, False)


@contextmanager
def _written() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise WorkspaceError(
            f"The benchmark could not be written: {error.strerror or error}.", hint="Is the disk full or read-only?"
        ) from error


def _there(entry: Entry, target: Path, workspace: Workspace, revision: str, folder: Path | None) -> Stored:
    """The benchmark that has the name already, if it is what was asked for; else ConfigError."""
    manifest = manifests.read(target)
    wanted = pins(entry, revision)
    same = manifest.source.get("asked") == revision or all(
        manifest.commits.get(repo, "").startswith(commit) for repo, commit in wanted.items()
    )
    if manifest.entry == entry.name and manifest.subset is None and folder is None and same:
        return Stored(library.describe(target, workspace), True)
    there = f"the registry's {manifest.entry}" if manifest.entry else "a benchmark of one's own"
    at = ", ".join(f"{repo} at {commit[:12]}" for repo, commit in manifest.commits.items())
    raise ConfigError(
        f"The workspace has {there} under the name {target.name!r} already{f' ({at})' if at else ''}.",
        hint="Store this one under another name, or remove that one first.",
    )


def _earlier(entry: Entry, workspace: Workspace) -> dict[str, str]:
    """The commits at which the entry is stored in the workspace under another name, if it is."""
    for name in stored_by_entry(workspace).get(entry.name, []):
        commits = manifests.read(workspace.benchmarks / name).commits
        if commits:
            return commits
    return {}


def _convert(
    entry: Entry,
    source: BenchmarkSource,
    converted: Path,
    target: Path,
    workspace: Workspace,
    progress: Progress | None,
    should_stop: Callable[[], bool] | None,
) -> BenchmarkInfo:
    """Write the BEIR layout beside its manifest, check it as any benchmark is checked, and give it its name."""
    contents = source.schema.read(entry, source.files)
    counts = write_layout(
        converted, contents, entry.split, expected=entry.documents or 0, progress=progress, should_stop=should_stop
    )

    def checked(n: int) -> None:
        if progress is not None:
            progress("checking", n, counts.documents)

    checked(0)
    files = [
        {"role": role, "file": path.name, "bytes": path.stat().st_size, "sha256": sha256_file(path)}
        for role, paths in source.files.items()
        for path in paths
    ]
    manifest = manifests.of_entry(
        entry,
        source=source.about,
        files=tuple(files),
        counts=asdict(counts),
        allow_unknown=bool(counts.unknown_documents or counts.unknown_queries),
        notes=tuple(_notes(entry, counts)),
        created=now(),
    )
    manifests.write(converted, manifest)
    info = library.survey(converted, allow_unknown=False, progress=checked)
    if not library.install(converted, target):
        raise ConfigError(
            f"Something else was stored as {target.name!r} meanwhile.", hint="Store this one under another name."
        )
    info = replace(info, name=target.name, folder=str(target), bytes=folder_size(target))
    library.cache_info(info, target, workspace)
    return info


def _notes(entry: Entry, counts: Counts) -> list[str]:
    """What a reader should know of the conversion: everything that was left out, and sizes that are not as stated."""
    notes = [entry.note] if entry.note else []
    left_out = (
        (counts.repeated_documents, "Documents with the id of an earlier one, left out"),
        (counts.conflicting_documents, "of these with another text; the first one stands"),
        (counts.repeated_judgments, "Judgments that came again; the highest grade stands"),
        (counts.repeated_queries, "Queries with the id of an earlier one, left out"),
        (counts.unjudged_queries, "Queries without a judgment in this split, left out"),
        (counts.unknown_documents, "Judged documents that the corpus lacks; they count as never retrieved"),
        (counts.unknown_queries, "Judged queries without a text, left out"),
        (counts.repaired, "Texts with NUL or half of a surrogate pair, which became U+FFFD"),
    )
    notes += [f"{what}: {n:,}." for n, what in left_out if n]
    for what, stated, counted in (
        ("Documents", entry.documents, counts.documents),
        ("Queries", entry.queries, counts.queries),
    ):
        if stated is not None and stated != counted:
            notes.append(f"{what} here: {counted:,}; stated by {entry.figures}: {stated:,}.")
    return notes
