"""Downloading a benchmark of the registry into the workspace: from the hub, or from a folder downloaded elsewhere.

::

    benchmarks/.downloads/<name>/pins.json     the commits that this download reads, decided once
                                 files/…       what was fetched so far; a second attempt goes on from there
                                 converted/    the BEIR layout being written; renamed to benchmarks/<name> when checked

A branch is resolved to its commit at the first download, which stands in the manifest of the stored benchmark.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from cdp.base.errors import ConfigError, InputError, WorkspaceError
from cdp.base.locks import locked
from cdp.base.text import typed_path
from cdp.base.workspace import (
    Workspace,
    checked_name,
    folder_size,
    now,
    read_json_or_none,
    sha256_file,
    write_json,
)
from cdp.benchmarks import hub, library, manifests
from cdp.benchmarks.convert import Counts, Progress, StoppedError, write_layout
from cdp.benchmarks.library import BenchmarkInfo
from cdp.benchmarks.schemas import SCHEMAS, Entry, Part, Schema, schema_of

# Files of a local folder that are looked at; a benchmark has a handful.
LARGEST_WALK = 200_000


@dataclass(frozen=True)
class Stored:
    """A benchmark in the workspace, and whether it was there before."""

    info: BenchmarkInfo
    existed: bool


@dataclass(frozen=True)
class Source:
    """Files by role, and the manifest's facts about their origin."""

    files: Mapping[str, Sequence[Path]]
    about: Mapping[str, Any]
    schema: Schema


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

    From ``folder`` if one is given, else from the hub at the ``revision`` of its first repository. A benchmark that is
    there already from the same entry and revision is left as it is. Raises DownloadError without a network, InputError
    for a source that cannot be used, ConfigError for a name that is taken, StoppedError once ``should_stop`` says so.
    """
    name = checked_name(name or entry.name)
    staging = workspace.benchmarks / ".downloads" / name
    with locked(staging.parent / f".{name}.lock", f"The download of {name}", wait_s=1.0):
        target = workspace.benchmarks / name
        if target.exists():
            return _existing(entry, target, workspace, revision, folder)
        if folder is not None:
            source = in_folder(entry, folder)
        else:
            source = _from_hub(entry, staging, revision, progress, should_stop)
        converted = staging / "converted"
        shutil.rmtree(converted, ignore_errors=True)  # of an attempt that was killed
        try:
            info = _convert(entry, source, converted, target, workspace, progress, should_stop)
        except OSError as error:
            raise WorkspaceError(
                f"The benchmark could not be written: {error.strerror or error}.", hint="Is the disk full or read-only?"
            ) from error
        finally:
            shutil.rmtree(converted, ignore_errors=True)
            with suppress(OSError):
                staging.rmdir()  # empty if it was a local folder; otherwise what was fetched stays, to go on from
        shutil.rmtree(staging, ignore_errors=True)
    return Stored(info, False)


def _existing(entry: Entry, target: Path, workspace: Workspace, revision: str, folder: Path | None) -> Stored:
    """Return the benchmark that has the name already, if it is what was asked for; else ConfigError."""
    manifest = manifests.read(target)
    commit = manifest.commits.get(entry.repos[0], "")
    same = not revision or manifest.source.get("asked") == revision or commit.startswith(revision)
    if manifest.entry == entry.name and manifest.subset is None and folder is None and same:
        return Stored(library.describe(target, workspace), True)
    there = f"the registry's {manifest.entry}" if manifest.entry else "a benchmark of one's own"
    at = ", ".join(f"{repo} at {commit[:12]}" for repo, commit in manifest.commits.items())
    raise ConfigError(
        f"The workspace has {there} under the name {target.name!r} already{f' ({at})' if at else ''}.",
        hint="Store this one under another name, or remove that one first.",
    )


def _repositories(parts: Sequence[Part], commits: Mapping[str, str]) -> dict[str, hub.Repository]:
    names = dict.fromkeys(part.repo for part in parts if part.repo)
    return {name: hub.resolve(name, commits.get(name, "")) for name in names}


def _from_hub(
    entry: Entry,
    staging: Path,
    revision: str,
    progress: Progress | None,
    should_stop: Callable[[], bool] | None,
) -> Source:
    """Fetch an entry's files into ``staging``, at commits that are decided once and kept there: the ``revision`` of its
    first repository, the main branches now of others."""
    schema = schema_of(entry)
    parts = schema.parts(entry)
    try:
        pinned = _load_pins(staging, entry, revision) or {entry.repos[0]: revision}
        repositories = _repositories(parts, pinned)
        commits = {repo: repository.commit for repo, repository in repositories.items()}
        write_json(staging / "pins.json", {"entry": entry.name, "asked": revision, "commits": commits})
        files = _fetch(parts, repositories, staging / "files", progress, should_stop)
    except hub.DownloadError as error:
        commands = " ; ".join(
            f"hf download {repo} --repo-type dataset --local-dir FOLDER/{repo}" for repo in entry.repos
        )
        addresses = [part.url for part in parts if part.url]
        also = f", put {' and '.join(addresses)} into FOLDER" if addresses else ""
        hint = (
            f"Try again, the files fetched so far are kept. Or, where there is a network: {commands}{also}; then bring "
            f"FOLDER here and give it as the folder: benchmarks download {entry.name} --folder FOLDER."
        )
        raise hub.DownloadError(error.message, hint=hint) from error
    about = {
        "kind": "hub",
        "commits": commits,
        "asked": revision or "main",
        "addresses": [part.url for part in parts if part.url],
        "licences_on_hub": {repo: repository.licence for repo, repository in repositories.items()},
    }
    return Source(files, about, schema)


def _fetch(
    parts: Sequence[Part],
    repositories: Mapping[str, hub.Repository],
    target: Path,
    progress: Progress | None,
    should_stop: Callable[[], bool] | None,
) -> dict[str, list[Path]]:
    """Fetch every file once. StoppedError once ``should_stop`` says so."""
    sizes: dict[tuple[str, str], int] = {}
    roles: dict[str, list[tuple[str, str]]] = {}
    for part in parts:
        paths = [part.url] if part.url else part.choose(repositories[part.repo].files)
        if not paths:
            raise InputError(
                f"{part.repo} at {repositories[part.repo].commit[:12]} has no {part.role}: {part.wanted}.",
                hint="Its layout has changed; name an earlier revision.",
            )
        roles[part.role] = [(part.repo, path) for path in paths]
        sizes |= {(part.repo, path): repositories[part.repo].files[path] if part.repo else 0 for path in paths}
    total, done, before = sum(sizes.values()), 0, 0

    def received(n: int) -> None:
        nonlocal done
        done += n
        if should_stop is not None and should_stop():
            raise StoppedError
        if progress is not None:
            progress("downloading", done, max(total, done))

    fetched: dict[tuple[str, str], Path] = {}
    for (repo, path), size in sizes.items():
        done = before
        received(0)
        if repo:
            folder = target / repo.replace("/", "__")
            fetched[repo, path] = hub.fetch(repo, path, repositories[repo].commit, folder, received)
        else:
            fetched[repo, path] = hub.fetch_address(path, target, received)
        before += size or fetched[repo, path].stat().st_size
    return {role: [fetched[key] for key in keys] for role, keys in roles.items()}


def _load_pins(staging: Path, entry: Entry, revision: str) -> dict[str, str]:
    """Return the commits of an attempt that did not finish; its files are dropped if another revision was asked for."""
    value = read_json_or_none(staging / "pins.json")
    if not isinstance(value, dict):
        return {}
    if value.get("entry") == entry.name and value.get("asked") == revision:
        return {str(repo): str(commit) for repo, commit in value.get("commits", {}).items()}
    shutil.rmtree(staging, ignore_errors=True)
    return {}


def in_folder(entry: Entry, folder: Path) -> Source:
    """Return an entry's files in a local folder: the repository's own layout, each repository in a folder of its name
    or all in one, or a folder in BEIR layout. InputError names what is missing."""
    folder = typed_path(folder)
    if not folder.is_dir():
        raise InputError(
            f"There is no folder {folder}.",
            hint="Give the folder that the benchmark was downloaded to; a zip is taken by `benchmarks add`.",
        )
    schema = schema_of(entry)
    files, missing = _look(schema.parts(entry), folder)
    if missing:
        as_beir, without = _look(SCHEMAS["beir"].parts(replace(entry, task="", repos=("",))), folder)
        if not without:
            files, missing, schema = as_beir, [], SCHEMAS["beir"]
    if missing:
        listed = "; ".join(f"no {part.role} ({part.wanted})" for part in missing)
        raise InputError(
            f"{folder.name} is not {entry.title} as it is published: {listed}.",
            hint="Give the folder that holds the repositories " + " and ".join(entry.repos) + ", or a BEIR folder.",
        )
    return Source(files, {"kind": "folder", "folder": str(folder.resolve())}, schema)


def _look(parts: Sequence[Part], folder: Path) -> tuple[dict[str, list[Path]], list[Part]]:
    """Return (role → files, parts without any)."""
    files: dict[str, list[Path]] = {}
    missing: list[Part] = []
    for part in parts:
        owner, _, name = part.repo.partition("/")
        roots = [folder / part.repo, folder / f"{owner}__{name}", folder / name, folder] if name else [folder]
        chosen = next((f for root in roots if root.is_dir() and (f := _chosen(part, root))), [])
        if chosen:
            files[part.role] = chosen
        else:
            missing.append(part)
    return files, missing


def _chosen(part: Part, root: Path) -> list[Path]:
    paths: list[str] = []
    for parent, folders, names in os.walk(root):
        folders[:] = sorted(f for f in folders if not f.startswith("."))
        paths += [Path(parent, name).relative_to(root).as_posix() for name in names if not name.startswith(".")]
        if len(paths) > LARGEST_WALK:
            raise InputError(f"{root} holds over {LARGEST_WALK:,} files.", hint="Give the benchmark's own folder.")
    if part.url:
        return [root / path for path in sorted(paths) if path.rpartition("/")[2] in part.patterns][:1]
    return [root / path for path in part.choose(paths)]


def _convert(
    entry: Entry,
    source: Source,
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
    """Return the notes on the conversion: all that was left out, and sizes that are not as stated."""
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
