"""The benchmarks of a workspace: adding a folder or zip, names refused, finding, listing, describing, export, deletion.

Describing reads everything once as a stream: a collection of millions of passages takes the memory of its judged ids.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any

from cdp.base import permission
from cdp.base.errors import InputError, NotFoundError, WorkspaceError, some
from cdp.base.locks import appearing, remove, staging
from cdp.base.permission import Action
from cdp.base.records import Document
from cdp.base.text import name_and_split, silent, typed_folder, typed_path
from cdp.base.workspace import (
    Workspace,
    checked_name,
    folder_size,
    now,
    read_json_or_none,
    slug,
    write_bytes,
    write_json,
)
from cdp.benchmarks import manifests, registry
from cdp.benchmarks.beir_files import SplitJudgments, write_beir
from cdp.benchmarks.benchmark import load_benchmark, part, pick_split, qrels_files, read_parts, split_of
from cdp.corpus.folders import hidden
from cdp.corpus.sources import DAMAGED, existing, open_zip, shown_name

_SCHEMA = 6
# Benchmarks that a refusal names.
_NAMED = 5
NOTES = ("SOURCE.md", "README.md", "README.txt", "README", "LICENSE.md", "LICENSE.txt", "LICENSE")
QUERIES = ("queries.jsonl", "queries.jsonl.gz")
# What is taken out of a zip, beside the qrels.
BENCHMARK_FILES = (
    *(f"{name}.jsonl{ending}" for name in ("corpus", "queries") for ending in ("", ".gz")),
    *NOTES,
    manifests.NAME,
)

# A zip that says it unpacks to more than 64 GB is refused.
UNPACKED_LIMIT = 64 * 2**30


@dataclass(frozen=True)
class BenchmarkInfo:
    """What a benchmark is, without its texts.

    ``n_queries`` counts the queries file, ``judged`` {split: queries judged in it}. ``characters`` is the mean length
    of a document, ``bytes`` the size on disk. ``content_hash`` is the ``hash`` of every ``Benchmark`` loaded from it.
    ``problem`` says why it cannot be used, and is empty if it can. ``entry`` is its name in the registry, ``subset_of``
    the benchmark that it was drawn from; empty if there is none.
    """

    name: str
    folder: str
    n_documents: int = 0
    n_queries: int = 0
    splits: tuple[str, ...] = ()
    judged: Mapping[str, int] = field(default_factory=dict)
    characters: float = 0.0
    bytes: int = 0
    content_hash: str = ""
    licence: str = ""
    warnings: tuple[str, ...] = ()
    problem: str = ""
    entry: str = ""
    language: str = ""
    subset_of: str = ""

    @property
    def note(self) -> str:
        """Why it cannot be used, or how its scores compare; mostly empty."""
        if self.subset_of and not self.problem:
            return f"Subset of {self.subset_of}: scores are higher"
        return self.problem


def choose_split(info: BenchmarkInfo, split: str = "") -> str:
    """The split asked for; if none was, ``test``, or the only one. InputError where that does not settle it."""
    return pick_split(info.name, info.splits, split)


def describe(folder: Path | str, workspace: Workspace | None = None) -> BenchmarkInfo:
    """Counts, splits, hash and licence of a benchmark; InputError as ``load_benchmark`` raises it, for any split.

    Judgments that name unknown ids are a warning here, and an error where it is evaluated on. Everything is read once;
    with a workspace the result is kept there until a file of the benchmark changes.
    """
    folder = typed_path(folder)
    state = _state(folder)
    value = None
    if workspace is not None:
        value = read_json_or_none(_info_file(folder, workspace))
    if isinstance(value, dict) and value.get("schema") == _SCHEMA and value.get("state") == state:
        with contextlib.suppress(TypeError, KeyError):  # an unreadable description is made again
            info = value["info"]
            return BenchmarkInfo(**{**info, "splits": tuple(info["splits"]), "warnings": tuple(info["warnings"])})

    surveyed = survey(folder, allow_unknown=True)
    if workspace is not None:
        with contextlib.suppress(WorkspaceError, OSError):  # without a writable disk nothing is kept
            _remember(surveyed, folder, workspace)
    return surveyed


def _remember(info: BenchmarkInfo, folder: Path, workspace: Workspace) -> None:
    write_json(_info_file(folder, workspace), {"schema": _SCHEMA, "state": _state(folder), "info": asdict(info)})


def _info_file(folder: Path, workspace: Workspace) -> Path:
    key = hashlib.sha256(str(folder.resolve()).encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return workspace.benchmarks / ".info" / f"{key}.json"


def survey(folder: Path, *, allow_unknown: bool, progress: Callable[[int], None] = silent) -> BenchmarkInfo:
    """Read a benchmark once, as a stream, and check all its splits. InputError as ``load_benchmark`` raises it.

    ``progress`` is called with the documents read so far, now and then.
    """
    parts = read_parts(folder, progress, describe=True)
    splits = {split: split_of(parts, split, allow_unknown=allow_unknown) for split in parts.qrels}
    first, manifest = next(iter(splits.values())), parts.manifest

    return BenchmarkInfo(
        name=first.name,
        folder=str(folder),
        n_documents=len(parts.document_ids),
        n_queries=len(parts.queries),
        splits=tuple(splits),
        judged={name: split.n_queries for name, split in splits.items()},
        characters=parts.characters / len(parts.document_ids),
        bytes=folder_size(folder),
        content_hash=parts.hash,
        licence=first.licence,
        warnings=tuple(dict.fromkeys(warning for split in splits.values() for warning in split.warnings)),
        entry=manifest.entry,
        language=first.language,
        subset_of=manifest.subset.of if manifest.subset else "",
    )


def _state(folder: Path) -> list[list[Any]]:
    """Name, size and time of change of each file that counts: equal as long as nothing was written to them."""
    files = [part(folder, "corpus"), part(folder, "queries"), *qrels_files(folder).values()]
    stamps = []
    for path in [*files, *_courtesies(folder)]:
        stat = path.stat()
        stamps.append([str(path.relative_to(folder)), stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino])
    return stamps


def _courtesies(folder: Path) -> list[Path]:
    """The notes and the manifest of a benchmark, as far as it has them."""
    return [folder / name for name in (*NOTES, manifests.NAME) if (folder / name).is_file()]


def list_names(workspace: Workspace) -> list[str]:
    """The names of the workspace's benchmarks, sorted."""
    if not workspace.benchmarks.is_dir():
        return []
    return sorted(p.name for p in workspace.benchmarks.iterdir() if p.is_dir() and not p.name.startswith("."))


def list_benchmarks(workspace: Workspace) -> list[BenchmarkInfo]:
    """The workspace's benchmarks by name. One that cannot be used stands there with its problem."""
    listed = []
    for name in list_names(workspace):
        folder = workspace.benchmarks / name
        try:
            listed.append(describe(folder, workspace))
        except InputError as error:
            listed.append(BenchmarkInfo(name, str(folder), problem=str(error)))
    return listed


def readable(workspace: Workspace, name: str) -> str:
    """Return a benchmark's name in the workspace as it is; a folder only where it may be read. Plans add ``:split``.

    NotAllowedError for a folder that this process may not read.
    """
    if permission.may(Action.ANY_PATH) or name in list_names(workspace):
        return name
    folder, split = name_and_split(name)
    if split:
        return f"{readable(workspace, folder)}:{split}"
    is_folder = permission.is_path(name) or permission.names_folder(name)
    return str(permission.to_read(workspace, name)) if is_folder else name


def resolve_benchmark(name_or_folder: str, workspace: Workspace) -> Path:
    """The folder of a benchmark, by its name in the workspace or by a path.

    NotFoundError names those there are; NotAllowedError for a path that this process may not read.
    """
    name_or_folder = readable(workspace, name_or_folder)
    names = list_names(workspace)
    if name_or_folder in names:
        return workspace.benchmarks / name_or_folder
    folder = typed_folder(name_or_folder)
    if folder is not None:
        return folder.resolve()
    hint = "" if names else "Get one: benchmarks download NAME, or benchmarks add PATH."
    if registry.find(name_or_folder) is not None:
        hint = f"It can be brought in: benchmarks download {name_or_folder}."
    raise NotFoundError("benchmark", name_or_folder, known=names, hint=hint)


def judged_on(workspace: Workspace, benchmark: str, split: str = "") -> tuple[str, str, BenchmarkInfo]:
    """Return a benchmark as a job's settings name it (by name, or by path outside the workspace), and the split.

    NotFoundError or InputError for an unknown one.
    """
    folder = resolve_benchmark(benchmark, workspace)
    info = describe(folder, workspace)
    name = folder.name if folder.parent == workspace.benchmarks else str(folder)
    return name, choose_split(info, split), info


def add_benchmark(path: Path | str, workspace: Workspace, name: str = "", language: str = "") -> str:
    """Copy a benchmark, a folder or a zip in BEIR layout, into the workspace and return its name there.

    Every split is read and checked first, so what is added can be evaluated on. ``language`` (a code) is written down;
    without one it is guessed. Adding the same files under the same name again changes at most the language; other files
    under a name that is taken are an InputError.
    """
    source = existing(typed_path(path))
    name = checked_name(name or slug(source.resolve().name.removesuffix(".zip"), fallback="benchmark"))

    try:
        with staging(workspace.benchmarks) as incoming:
            folder = _folder_of(source, incoming)
            checked = _checked(folder, source)
            target = workspace.benchmarks / name
            if target.exists():
                if describe(target, workspace).content_hash == checked.content_hash:
                    set_language(target, language)
                    return name
                raise _taken(name)

            copy = incoming / "copy"
            _copy(folder, copy)
            set_language(copy, language)

            checked = replace(checked, folder=str(copy), language=language or checked.language)
            there = install(checked, target, workspace) or describe(target, workspace)
            if there.content_hash != checked.content_hash:
                raise _taken(name)
    except OSError as error:
        raise WorkspaceError(f"The benchmark could not be copied: {error.strerror or error}.") from error

    return name


def make(
    workspace: Workspace, name: str, documents: Iterable[Document], queries: Mapping[str, str], judged: SplitJudgments,
    manifest: manifests.Manifest,
) -> str:  # fmt: skip
    """Store documents, queries (id to text) and judgments that came in another form; the benchmark's name.

    InputError where it is no benchmark, or another one has the name.
    """
    with staging(workspace.benchmarks) as folder:
        lines = ({"_id": query, "text": text} for query, text in queries.items())
        write_beir(folder / "made", documents, lines, judged)
        manifests.write(folder / "made", replace(manifest, created=now()))
        return add_benchmark(folder / "made", workspace, name)


def set_language(folder: Path, language: str) -> None:
    """Write down a benchmark's language, unless it is empty or there already."""
    manifest = manifests.read(folder)
    if language and manifest.language != language:
        manifests.write(folder, replace(manifest, language=language))


def install(checked: BenchmarkInfo, target: Path, workspace: Workspace) -> BenchmarkInfo | None:
    """Give the folder of a finished and ``checked`` benchmark its name and return what it is there; None if another
    process has just put another one there."""
    try:
        os.rename(checked.folder, target)  # fails on a folder that holds something, and takes the place of an empty one
    except OSError:
        if target.exists():
            return None
        raise
    info = replace(checked, name=target.name, folder=str(target), bytes=folder_size(target))
    with contextlib.suppress(WorkspaceError, OSError):
        _remember(info, target, workspace)
    return info


def _taken(name: str) -> InputError:
    return InputError(f"The workspace has another benchmark called {name!r}.", hint="Choose another name for this one.")


def _checked(folder: Path, source: Path) -> BenchmarkInfo:
    """Read and check every split. Errors name the ``source`` that was given, not the unpacked copy."""
    try:
        return survey(folder, allow_unknown=False)
    except InputError as error:
        if folder == source:
            raise
        message = error.message.replace(str(folder), source.name)
        raise InputError(message, hint=error.hint) from error


def remove_benchmark(name: str, workspace: Workspace) -> None:
    """Delete a benchmark from the workspace. NotFoundError if it is not there."""
    if name not in list_names(workspace):
        raise NotFoundError("benchmark", name, known=list_names(workspace))
    remove(workspace.benchmarks / name)


def _copy(folder: Path, target: Path) -> None:
    """The files that make the benchmark, and its notes; nothing else that lies beside them."""
    (target / "qrels").mkdir(parents=True)
    for path in [part(folder, "corpus"), part(folder, "queries"), *_courtesies(folder)]:
        shutil.copyfile(path, target / path.name)
    for path in qrels_files(folder).values():
        shutil.copyfile(path, target / "qrels" / path.name)


def export_beir(folder: Path, target: Path) -> None:
    """Copy a benchmark to a new folder in BEIR layout, with its manifest. InputError if the folder is there."""
    with appearing(target) as made:
        _copy(folder, made)


def export_trec(folder: Path, split: str, target: Path) -> int:
    """Write the judgments of a split as TREC qrels (``query 0 document grade``); return their number."""
    qrels = load_benchmark(folder, split, allow_unknown=True).qrels
    lines = [f"{query} 0 {document} {grade}\n" for query, grades in qrels.items() for document, grade in grades.items()]
    spaced = next((name for query, grades in qrels.items() for name in (query, *grades) if len(name.split()) != 1), "")
    if spaced:
        raise InputError(f"The id {spaced!r} holds a space, which TREC's format cannot hold.", hint="Export BEIR.")
    write_bytes(target, "".join(lines).encode())
    return len(lines)


def beir_splits(path: Path) -> list[str]:
    """The splits of a folder or a zip in BEIR layout, sorted; none for anything else."""
    path = existing(path)
    names: list[PurePosixPath] = []
    if path.is_dir():
        names = [PurePosixPath(p.relative_to(path)) for p in (*path.glob("queries.jsonl*"), *path.glob("qrels/*.tsv"))]
    elif path.suffix.lower() == ".zip":
        with open_zip(path) as archive:
            names = [PurePosixPath(name) for name in archive.namelist() if not hidden(name)]
    if not any(name.name in QUERIES for name in names):
        return []
    return sorted(name.stem for name in names if name.parent.name == "qrels" and name.suffix == ".tsv")


def _folder_of(source: Path, scratch: Path) -> Path:
    """The benchmark's folder: the source itself, or what a zip unpacks to, some levels down if need be."""
    top = source
    if source.is_file():
        if source.suffix.lower() != ".zip":
            raise InputError(
                "A benchmark is a folder or a zip with documents, queries and judgments.",
                hint="Of questions that name documents that are here: benchmarks add FILE --corpus ID.", file=source,
            )  # fmt: skip
        top = scratch / "unpacked"
        unpack(source, top, lambda at: at.name in BENCHMARK_FILES or at.parent.name == "qrels")

    folder = top
    while not (folder / "qrels").is_dir():
        inner = [p for p in folder.iterdir() if p.is_dir() and not p.name.startswith((".", "__"))]
        if len(inner) != 1:
            check_single(source, [p.name for p in inner if (p / "qrels").is_dir()])
            return top
        folder = inner[0]
    return folder


def check_single(source: Path, benchmarks: Sequence[str]) -> None:
    """Raise InputError where there are several ``benchmarks``: equal ids in two of them would be one document."""
    if len(benchmarks) > 1:
        raise InputError(
            f"{source.name} holds {len(benchmarks)} benchmarks ({some(sorted(benchmarks), _NAMED)}).",
            hint="Add each by itself, as a folder with corpus, queries and qrels.",
        )


def unpack(archive: Path, target: Path, is_part: Callable[[PurePosixPath], bool]) -> None:
    """Unpack from a zip what a benchmark is made of. InputError for what is no whole, harmless zip."""
    target.mkdir(parents=True)
    try:
        with open_zip(archive) as file:
            names = {info: PurePosixPath(info.filename) for info in file.infolist()}
            wanted = [info for info, at in names.items() if is_part(at)]
            if sum(info.file_size for info in wanted) > UNPACKED_LIMIT:
                raise InputError(f"It unpacks to more than {UNPACKED_LIMIT / 1e9:.0f} GB.", file=archive)
            file.extractall(target, wanted)  # keeps every name inside the target
    except DAMAGED as error:
        hint = "Give a folder in BEIR layout, or a zip of one."
        raise InputError(f"It cannot be unpacked: {shown_name(str(error))}.", hint=hint, file=archive) from error
