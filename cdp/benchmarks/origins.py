"""Where the files of a registry's benchmark come from: the hub, at commits decided once, or a local folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cdp.base.errors import ConfigError, InputError
from cdp.base.paths import typed_path
from cdp.base.workspace import read_json_or_none, write_json
from cdp.benchmarks import hub
from cdp.benchmarks.convert import Progress, StoppedError
from cdp.benchmarks.entry import Entry
from cdp.benchmarks.schemas import SCHEMAS, Part, Schema, schema_of

LARGEST_WALK = 200_000
"""Files of a local folder that are looked at; a benchmark has a handful."""


@dataclass(frozen=True)
class BenchmarkSource:
    """What was found for a benchmark: files by role, and what to write in its manifest about where they are from."""

    files: Mapping[str, Sequence[Path]]
    about: Mapping[str, Any]
    schema: Schema


def pins(entry: Entry, revision: str) -> dict[str, str]:
    """{repository: revision} of what was asked for: ``REV`` is of the entry's first repository, others by name.

    ``BeIR/scifact=abc123,BeIR/scifact-qrels=def456`` names both. ConfigError for a repository that is not the entry's.
    """
    revisions: dict[str, str] = {}
    for item in filter(None, (part.strip() for part in revision.split(","))):
        repository, separator, value = item.partition("=")
        if not separator:
            repository, value = entry.repos[0], item
        if repository not in entry.repos:
            raise ConfigError(
                f"{entry.name} has no repository {repository}.", hint=f"It has: {', '.join(entry.repos)}."
            )
        revisions[repository] = value
    return revisions


def from_hub(
    entry: Entry,
    staging: Path,
    revision: str,
    earlier: Mapping[str, str],
    progress: Progress | None = None,
    should_stop: Callable[[], bool] | None = None,
) -> BenchmarkSource:
    """Fetch an entry's files into ``staging``, at commits that are decided once and kept there.

    Without a ``revision`` the commits of an ``earlier`` download are used, else those of the main branches now.
    """
    try:
        return _from_hub(entry, staging, revision, earlier, progress, should_stop)
    except hub.DownloadError as error:
        commands = " ; ".join(
            f"hf download {repo} --repo-type dataset --local-dir FOLDER/{repo}" for repo in entry.repos
        )
        addresses = [part.url for part in schema_of(entry).parts(entry) if part.url]
        also = f", put {' and '.join(addresses)} into FOLDER" if addresses else ""
        hint = (
            f"Try again, the files fetched so far are kept. Or, where there is a network: {commands}{also}; then bring "
            f"FOLDER here and give it as the folder: benchmarks download {entry.name} --from FOLDER."
        )
        raise hub.DownloadError(error.message, hint=hint) from error


def _from_hub(
    entry: Entry,
    staging: Path,
    revision: str,
    earlier: Mapping[str, str],
    progress: Progress | None,
    should_stop: Callable[[], bool] | None,
) -> BenchmarkSource:
    asked_commits = pins(entry, revision)
    pinned = _load_pins(staging, entry, revision) or {**({} if revision else earlier), **asked_commits}
    schema = schema_of(entry)
    parts = schema.parts(entry)
    repositories = {
        repo: hub.resolve(repo, pinned.get(repo, ""))
        for repo in dict.fromkeys(part.repo for part in parts if part.repo)
    }
    commits = {repo: repository.commit for repo, repository in repositories.items()}
    write_json(staging / "pins.json", {"entry": entry.name, "asked": revision, "commits": commits})
    wanted: list[tuple[Part, str, int]] = []
    for part in parts:
        if part.url:
            wanted.append((part, part.url, 0))
            continue
        repository = repositories[part.repo]
        paths = part.choose(repository.files)
        if not paths:
            raise InputError(
                f"{part.repo} at {repository.commit[:12]} has no {part.role}: {part.wanted}.",
                hint="Its layout has changed; name an earlier revision.",
            )
        wanted += [(part, path, repository.files[path]) for path in paths]
    total, done = sum(size for _, _, size in wanted), 0

    def received(n: int) -> None:
        nonlocal done
        done += n
        if should_stop is not None and should_stop():
            raise StoppedError
        if progress is not None:
            progress("downloading", done, max(total, done))

    files: dict[str, list[Path]] = {}
    before = 0
    for part, path, size in wanted:
        done = before
        received(0)
        if part.url:
            file = hub.fetch_address(path, staging / "files", received)
        else:
            folder = staging / "files" / part.repo.replace("/", "__")
            file = hub.fetch(part.repo, path, commits[part.repo], folder, received)
        before += size or file.stat().st_size
        files.setdefault(part.role, []).append(file)
    about = {
        "kind": "hub",
        "commits": commits,
        "asked": revision or "main",
        "addresses": [part.url for part in parts if part.url],
        "licences_on_hub": {repo: repository.licence or "not stated" for repo, repository in repositories.items()},
    }
    return BenchmarkSource(files, about, schema)


def _load_pins(staging: Path, entry: Entry, revision: str) -> dict[str, str]:
    """The commits of an attempt that did not come to its end; what it fetched is dropped if another one was asked."""
    value = read_json_or_none(staging / "pins.json")
    if not isinstance(value, dict):
        return {}
    if value.get("entry") == entry.name and value.get("asked") == revision:
        return {str(repo): str(commit) for repo, commit in value.get("commits", {}).items()}
    hub.forget(staging)
    return {}


def in_folder(entry: Entry, folder: Path) -> BenchmarkSource:
    """An entry's files in a local folder: the repository's own layout, each repository in a folder of its name or all
    in one, or a folder in BEIR layout. InputError names what is missing."""
    folder = typed_path(folder)
    if not folder.is_dir():
        raise InputError(
            f"There is no folder {folder}.",
            hint="Give the folder that the benchmark was downloaded to; a zip is taken by `benchmarks add`.",
        )
    schema = schema_of(entry)
    files, missing = _look(schema.parts(entry), folder)
    if missing:
        as_beir, without = _look(SCHEMAS["beir"].parts(replace(entry, groups=(), repos=("",))), folder)
        if not without:
            files, missing, schema = as_beir, [], SCHEMAS["beir"]
    if missing:
        listed = "; ".join(f"no {part.role} ({part.url or part.wanted})" for part in missing)
        raise InputError(
            f"{folder.name} is not {entry.title} as it is published: {listed}.",
            hint="Give the folder that holds the repositories " + " and ".join(entry.repos) + ", or a BEIR folder.",
        )
    return BenchmarkSource(files, {"kind": "folder", "folder": str(folder.resolve())}, schema)


def _look(parts: Sequence[Part], folder: Path) -> tuple[dict[str, list[Path]], list[Part]]:
    """(role → files, parts without any)."""
    files: dict[str, list[Path]] = {}
    missing: list[Part] = []
    for part in parts:
        chosen = next((f for root in _roots(part, folder) if (f := _chosen(part, root))), [])
        if chosen:
            files[part.role] = chosen
        else:
            missing.append(part)
    return files, missing


def _roots(part: Part, folder: Path) -> list[Path]:
    """Where in a folder the files of a part's repository may lie."""
    owner, _, name = part.repo.partition("/")
    folders = [folder / part.repo, folder / f"{owner}__{name}", folder / name] if name else []
    return [root for root in [*folders, folder] if root.is_dir()]


def _chosen(part: Part, root: Path) -> list[Path]:
    paths: list[str] = []
    for parent, folders, names in os.walk(root):
        folders[:] = sorted(f for f in folders if not f.startswith("."))
        paths += [Path(parent, name).relative_to(root).as_posix() for name in names if not name.startswith(".")]
        if len(paths) > LARGEST_WALK:
            raise InputError(f"{root} holds over {LARGEST_WALK:,} files.", hint="Give the benchmark's own folder.")
    if part.url:
        wanted = set(part.patterns)
        return [root / path for path in sorted(paths) if path.rpartition("/")[2] in wanted][:1]
    return [root / path for path in part.choose(paths)]


def size_on_hub(entry: Entry, revision: str = "") -> dict[str, Any]:
    """What the hub says of an entry's download before it starts: bytes, commits, licences.

    Errors as for ``download_benchmark``.
    """
    commits = pins(entry, revision)
    parts = schema_of(entry).parts(entry)
    repositories = {
        repo: hub.resolve(repo, commits.get(repo, ""))
        for repo in dict.fromkeys(part.repo for part in parts if part.repo)
    }
    paths = [(part.repo, path) for part in parts if part.repo for path in part.choose(repositories[part.repo].files)]
    return {
        "bytes": sum(repositories[repo].files[path] for repo, path in paths),
        "commits": {repo: repository.commit for repo, repository in repositories.items()},
        "licences": {repo: repository.licence or "not stated" for repo, repository in repositories.items()},
    }
