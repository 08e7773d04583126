"""Downloading a known benchmark, from the hub or a folder: requests, offline, resuming, converting, what was left out.

::

    benchmarks/.downloads/<name>/<repository>/…  what was fetched so far; a second attempt goes on from there
                                 converted/      the BEIR layout being written; renamed to benchmarks/<name>

A branch is resolved to its commit, which stands in the manifest of the stored benchmark. ``HF_ENDPOINT`` names another
hub, authentication comes from ``HF_TOKEN``, ``HF_HUB_OFFLINE`` forbids all requests.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from http.client import HTTPException
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.request import HTTPRedirectHandler, build_opener

from cdp.base.errors import CdpError, ConfigError, InputError, WorkspaceError
from cdp.base.locks import locked, staging
from cdp.base.records import Document
from cdp.base.text import Progress, silent, typed_path
from cdp.base.workspace import Workspace, now, sha256_file, write_bytes
from cdp.benchmarks import library, manifests
from cdp.benchmarks.beir_files import write_beir
from cdp.benchmarks.library import BenchmarkInfo
from cdp.benchmarks.manifests import Manifest
from cdp.benchmarks.schemas import SCHEMAS, Contents, Entry, Part, tables
from cdp.corpus.checks import CONTROL, storable
from cdp.corpus.collector import SeenIds
from cdp.corpus.extraction import reading_process
from cdp.corpus.folders import hidden
from cdp.corpus.sources import open_zip

BATCH = 4096


# What a conversion leaves out or changes is counted, and noted in these words.
NOTED = {
    "repeated_documents": "Documents with the id of an earlier one, left out",
    "conflicting_documents": "of these with another text; the first one stands",
    "repeated_judgments": "Judgments that came again; the highest grade stands",
    "repeated_queries": "Queries with the id of an earlier one, left out",
    "unjudged_queries": "Queries without a judgment in this split, left out",
    "unknown_documents": "Judged documents that the corpus lacks; they count as never retrieved",
    "unknown_queries": "Judged queries without a text, left out",
    "repaired": "Texts with NUL or half of a surrogate pair, which became U+FFFD",
}
Counts = dict[str, int]


def write_layout(folder: Path, splits: Mapping[str, Contents], progress: Callable[[int], None]) -> Counts:
    """Write ``corpus.jsonl``, ``queries.jsonl`` and ``qrels/<split>.tsv`` of each split into a new folder.

    The splits share documents and queries. ``progress`` is called with the documents written so far. Raises InputError
    if there are no judgments, no judged queries or no documents.
    """
    counts = dict.fromkeys(("documents", "queries", "judgments", "exclusions", *NOTED), 0)
    contents = next(iter(splits.values()))
    judged = {split: _judgments(of_split, counts) for split, of_split in splits.items()}

    qrels: dict[str, dict[str, int]] = {}
    for of_split in judged.values():
        counts["judgments"] += sum(map(len, of_split.values()))
        for query, grades in of_split.items():
            qrels[query] = {**qrels.get(query, {}), **grades}

    write_beir(folder, _documents(contents, qrels, counts, progress), _queries(contents, qrels, counts), judged)
    return counts


# The split in the name of a file of judgments: qrels/dev.jsonl, data/test-00000-of-00001.parquet, test.tsv, qrels.tsv.
_SPLIT = re.compile(
    r"(?:(?:qrels|data|default)/(\w+?)(?:-\d+-of-\d+)?|(test|dev|train|validation|qrels))\.(?:parquet|jsonl?|[ct]sv|txt)"
)


def tables_of(source: Path) -> dict[str, dict[str, list[PurePosixPath]]]:
    """Return {split: {role: its files}} of a folder or zip with a table of documents, of queries and of judgments."""
    if source.is_dir():
        top, names = "", [path.relative_to(source).as_posix() for path in source.rglob("*") if path.is_file()]
    elif source.suffix.lower() == ".zip":
        with open_zip(source) as archive:
            inside = [name for name in archive.namelist() if not (hidden(name) or name.endswith("/"))]
        top = os.path.commonpath(inside) if len(inside) > 1 else ""
        names = [name.removeprefix(top).removeprefix("/") for name in inside]
    else:
        return {}

    matches = map(_SPLIT.fullmatch, names)
    found: dict[str, dict[str, list[PurePosixPath]]] = {}
    for split in sorted({match[1] or match[2] for match in matches if match}):
        entry = Entry(source.name, source.name, repos=("",), split="test" if split == "qrels" else split)
        parts = tables.parts(tables.LAYOUTS["folder"], entry)
        files = {part.role: [PurePosixPath(top, name) for name in part.choose(names)] for part in parts}
        if all(files.values()):
            found[entry.split] = files

    # The hub calls a table "train" unless told otherwise, also where it is all that there is (NanoBEIR).
    if list(found) == ["train"] and found["train"]["corpus"][0].name.startswith("train-"):
        return {"test": found["train"]}
    return found


@contextmanager
def beir_layout(source: Path, workspace: Workspace) -> Iterator[tuple[Path, list[str]]]:
    """Yield a folder or zip in BEIR layout and notes: the given one, or what its tables (as MTEB, NanoBEIR and
    ir_datasets write them, in Parquet or JSON Lines) are converted to while this lasts.

    InputError for several benchmarks side by side.
    """
    splits = {} if library.beir_splits(source) else tables_of(source)
    if source.is_dir() and not splits:
        languages = [path.name.removesuffix("-qrels") for path in source.glob("*-qrels")]
        library.check_single(source, languages + [path.parent.name for path in source.glob("*/qrels")])
    if not splits:
        yield source, []
        return

    with staging(workspace.benchmarks) as scratch:
        name, folder = source.name, source
        if source.is_file():
            name, folder = source.stem, scratch / ".unpacked"
            wanted = {name for files in splits.values() for names in files.values() for name in names}
            library.unpack(source, folder, wanted.__contains__)

        target, entry = scratch / name, Entry(name, name)
        contents = {}
        for split, roles in splits.items():
            files = {role: [folder / path for path in names] for role, names in roles.items()}
            contents[split] = tables.read(tables.LAYOUTS["folder"], entry, files)

        with reading_process():
            counts = write_layout(target, contents, silent)

        unknown = bool(counts["unknown_documents"] or counts["unknown_queries"])
        notes = [f"{what}: {counts[name]:,}." for name, what in NOTED.items() if counts[name]]
        if "test" in splits and splits["test"]["qrels"][0].name.startswith("train"):
            notes.append("Its only split, train, is taken as test: the hub calls any table so.")

        made_of = {"kind": "folder", "folder": source.name}
        about = Manifest(source=made_of, counts=counts, allow_unknown=unknown, notes=tuple(notes), created=now())
        manifests.write(target, about)

        yield target, notes


def _judgments(contents: Contents, counts: Counts) -> dict[str, dict[str, int]]:
    """Return {query: {document: grade}} in the order of the source; the highest of repeated grades counts."""
    qrels: dict[str, dict[str, int]] = {}
    for qrel in contents.judgments():
        grades = qrels.setdefault(_checked_id(qrel.query_id), {})
        counts["repeated_judgments"] += _checked_id(qrel.document_id) in grades
        grades[qrel.document_id] = max(qrel.score, grades.get(qrel.document_id, qrel.score))
    if not qrels:
        raise InputError("There are no judgments in the source.", hint="Is it the right split, and the whole download?")
    return qrels


def _checked_id(identifier: str) -> str:
    """Return the id; InputError for one that the lines of a qrels file cannot hold."""
    if not identifier.strip() or CONTROL.search(identifier):
        raise InputError(
            f"The source has an id that cannot be stored: {identifier[:80]!r}.",
            hint="Ids are not empty and hold neither tabs, line breaks nor control characters.",
        )
    return identifier


def _queries(contents: Contents, qrels: Mapping[str, Any], counts: Counts) -> Iterator[dict[str, Any]]:
    """Yield the lines of the judged queries, each id once."""
    written: set[str] = set()
    for query in contents.queries():
        if query.id not in qrels:
            counts["unjudged_queries"] += 1
        elif query.id in written:
            counts["repeated_queries"] += 1
        else:
            written.add(query.id)
            text, changed = storable(query.text)
            counts["repaired"] += changed
            counts["exclusions"] += len(query.excluded)
            line: dict[str, Any] = {"_id": query.id, "text": text}
            if query.excluded:
                line["excluded_ids"] = [storable(document)[0] for document in query.excluded]
            yield line

    if not written:
        raise InputError("Not one query of the source is judged.", hint="Do queries and judgments belong together?")

    counts["queries"] = len(written)
    counts["unknown_queries"] = len(qrels) - len(written)


def _documents(
    contents: Contents, qrels: Mapping[str, Mapping[str, int]], counts: Counts, progress: Callable[[int], None]
) -> Iterator[Document]:
    """Yield the documents, each id once, and count the judged ones that are missing."""
    wanted = set[str]().union(*qrels.values())
    seen, judged, read = SeenIds(), 0, 0
    documents = iter(contents.documents())
    while batch := list(islice(documents, BATCH)):
        hashes = [hash((document.title, document.text)) for document in batch]
        earlier = seen.add([document.id for document in batch], range(len(batch)), hashes)
        for i, document in enumerate(batch):
            if i in earlier:
                counts["repeated_documents"] += 1
                counts["conflicting_documents"] += earlier[i].content != hashes[i]
                continue
            (title, title_changed), (text, text_changed) = storable(document.title), storable(document.text)
            counts["repaired"] += title_changed or text_changed
            yield Document(_checked_id(document.id), text, title)
            judged += document.id in wanted

        read += len(batch)
        progress(read)

    counts["documents"] = read - counts["repeated_documents"]
    counts["unknown_documents"] = len(wanted) - judged

    if not counts["documents"]:
        raise InputError("There are no documents in the source.", hint="Is the download whole?")


TIMEOUT_S = 30.0


class DownloadError(CdpError):
    """The hub, or another server, could not be reached or did not answer as it should."""

    kind = "network"


def resolve(name: str, revision: str = "") -> tuple[str, dict[str, int]]:
    """Return (commit, {path: bytes, 0 where the hub does not say}) of a dataset repository at a branch, tag or commit;
    of its main branch if none is named.

    DownloadError without a network; ConfigError for an unknown repository or revision, or one that is not open.
    """
    from huggingface_hub import HfApi

    with _library_errors(name, revision):
        api = HfApi(endpoint=os.environ.get("HF_ENDPOINT") or None)
        info = api.dataset_info(name, revision=revision or None, files_metadata=True, timeout=TIMEOUT_S)
    return str(info.sha), {sibling.rfilename: int(sibling.size or 0) for sibling in info.siblings or ()}


def fetch(repository: str, path: str, commit: str, folder: Path, received: Callable[[int], None] | None = None) -> Path:
    """Fetch one file at a commit into ``folder`` and return its path. The library resumes a partial file.

    Errors as for ``resolve``.
    """
    from huggingface_hub import hf_hub_download

    with _library_errors(repository, commit):
        return Path(
            hf_hub_download(
                repository,
                path,
                repo_type="dataset",
                revision=commit,
                local_dir=folder,
                endpoint=os.environ.get("HF_ENDPOINT") or None,
                tqdm_class=_bar(received),
            )
        )


class _Stay(HTTPRedirectHandler):
    """Follows no redirect: it could lead to a page that only this machine reaches, which would become a file."""

    def redirect_request(self, *_: Any) -> None:
        return None


urlopen = build_opener(_Stay).open


def fetch_address(address: str, folder: Path) -> Path:
    """Fetch one small file from a plain address into ``folder`` and return its path. A whole one is not fetched again.

    DownloadError for an address that does not answer, or breaks off.
    """
    target = folder / address.rpartition("/")[2]
    if not target.is_file():
        try:
            with urlopen(address, timeout=TIMEOUT_S) as answer:
                content = answer.read()
        except (OSError, HTTPException) as error:
            raise DownloadError(f"{address} cannot be fetched: {error}.") from error
        write_bytes(target, content)
    return target


@contextmanager
def _library_errors(repository: str, revision: str) -> Iterator[None]:
    """Translate the library's errors."""
    from huggingface_hub import errors

    # A gated repository is also one that was not found: the narrower comes first.
    refusals = {
        errors.GatedRepoError: "asks for consent before it gives its files",
        errors.RevisionNotFoundError: f"has no revision {revision!r}",
        errors.RepositoryNotFoundError: "is no dataset repository on the hub, or not open to everyone",
    }
    try:
        yield
    except tuple(refusals) as error:
        said = next(words for kind, words in refusals.items() if isinstance(error, kind))
        hint = "Where it is closed, agree on its page, and set HF_TOKEN to a token of an account that may read it"
        raise ConfigError(f"{repository} {said}.", hint=f"{hint} ({first_line(error)}).") from error
    except (errors.LocalEntryNotFoundError, errors.HfHubHTTPError) as error:
        raise DownloadError(f"{repository} cannot be fetched from the hub: {first_line(error)}") from error
    except Exception as error:
        if not is_network(error):
            raise
        raise DownloadError(f"{repository} cannot be fetched from the hub: {first_line(error)}") from error


def is_network(error: BaseException) -> bool:
    """Return True for errors of the network: Python's own, and those of the HTTP library, whose name changes."""
    module = type(error).__module__.partition(".")[0]
    return isinstance(error, (ConnectionError, TimeoutError)) or module.startswith(("httpx", "httpcore", "requests"))


def first_line(error: BaseException | str) -> str:
    """Return the first line of a library's message, as a sentence."""
    lines = str(error).strip().splitlines()
    return (lines[0].rstrip(".") if lines else type(error).__name__) + "."


def _bar(received: Callable[[int], None] | None) -> type[Any]:
    """Return a progress bar that draws nothing and calls ``received`` for every block."""
    from tqdm.std import tqdm  # type: ignore[import-untyped, unused-ignore]

    class Bar(tqdm):  # type: ignore[misc, type-arg, unused-ignore]
        def __init__(self, *args: Any, **options: Any) -> None:
            options.pop("name", None)
            super().__init__(*args, **{**options, "disable": True})

        def update(self, n: float | None = 1) -> None:
            if received is not None and n:
                received(int(n))

    return Bar


# Files by role, and the manifest's facts about their origin.
Downloaded = tuple[Mapping[str, Sequence[Path]], Mapping[str, Any]]


def download_benchmark(
    entry: Entry,
    workspace: Workspace,
    *,
    revision: str = "",
    folder: Path | None = None,
    progress: Progress = silent,
) -> tuple[BenchmarkInfo, bool]:
    """Store a benchmark of the registry under its name: (what it is, whether it was there already).

    From ``folder`` if one is given, else from the hub at the ``revision`` of its first repository. A benchmark that is
    there already from the same entry and revision is left as it is. Raises DownloadError without a network, InputError
    for a source that cannot be used, ConfigError for a name that is taken.
    """
    fetched = workspace.benchmarks / ".downloads" / entry.name
    with locked(fetched.parent / f".{entry.name}.lock", f"The download of {entry.name}", wait_s=1.0):
        target = workspace.benchmarks / entry.name
        if target.exists():
            return _existing(entry, target, workspace, revision)

        source = _from_hub(entry, fetched, revision, progress) if folder is None else in_folder(entry, folder)
        converted = fetched / "converted"
        shutil.rmtree(converted, ignore_errors=True)  # of an attempt that was killed

        try:
            with reading_process():  # one for all tables: to start it takes 0.15 s
                info = _convert(entry, source, converted, target, workspace, progress)
        except OSError as error:
            raise WorkspaceError.refused(target, "written", error) from error
        finally:
            shutil.rmtree(converted, ignore_errors=True)
            with suppress(OSError):
                fetched.rmdir()  # empty if it was a local folder; otherwise what was fetched stays, to go on from

        shutil.rmtree(fetched, ignore_errors=True)

    return info, False


def _existing(entry: Entry, target: Path, workspace: Workspace, revision: str) -> tuple[BenchmarkInfo, bool]:
    """Return the benchmark that has the name already, if it is what was asked for; else ConfigError."""
    manifest = manifests.read(target)
    commit = manifest.commits.get(entry.repos[0], "")
    same = not revision or manifest.source.get("asked") == revision or commit.startswith(revision)
    if manifest.entry == entry.name and manifest.subset is None and same:
        return library.describe(target, workspace), True

    other = repr(target.name)
    if commit:
        other += f" (at {commit[:12]})"
    hint = f"Delete it first: benchmarks delete {target.name}."
    raise ConfigError(f"The workspace has another benchmark called {other}.", hint=hint)


def _from_hub(entry: Entry, target: Path, revision: str, progress: Progress) -> Downloaded:
    """Fetch an entry's files into ``target``: at the ``revision`` of its first repository, the main branches of
    others."""
    parts = SCHEMAS.named(entry.schema).parts(entry)
    addresses = [part.url for part in parts if part.url]
    repositories: dict[str, tuple[str, dict[str, int]]] = {}
    try:
        for part in parts:
            if part.repo and part.repo not in repositories:
                repositories[part.repo] = resolve(part.repo, revision if part.repo == entry.repos[0] else "")

        files = _fetch(parts, repositories, target, progress)
    except DownloadError as error:
        steps = " ; ".join(f"hf download {repo} --repo-type dataset --local-dir FOLDER/{repo}" for repo in entry.repos)
        if addresses:
            steps += f", put {' and '.join(addresses)} into FOLDER"
        hint = (
            f"Try again, the files fetched so far are kept. Or, where there is a network: {steps}; then bring FOLDER "
            f"here and give it as the folder: benchmarks download {entry.name} --folder FOLDER."
        )
        raise DownloadError(error.message, hint=hint) from error

    commits = {name: commit for name, (commit, _) in repositories.items()}
    about = {"kind": "hub", "commits": commits, "asked": revision or "main", "addresses": addresses}

    return files, about


def _fetch(
    parts: Sequence[Part], repositories: Mapping[str, tuple[str, Mapping[str, int]]], target: Path, progress: Progress
) -> dict[str, list[Path]]:
    """Fetch the files of all parts; return {role: its files}."""
    chosen: dict[str, tuple[Part, list[str]]] = {}
    sizes: dict[tuple[str, str], int] = {}
    for part in parts:
        commit, there = repositories.get(part.repo, ("", {}))
        paths = [part.url] if part.url else part.choose(there)
        if not paths:
            raise InputError(
                f"{part.repo} at {commit[:12]} has no {part.role}: {part.wanted}.",
                hint="Its layout has changed; name an earlier revision.",
            )

        chosen[part.role] = part, paths
        sizes |= {(part.repo, path): there.get(path, 0) for path in paths}

    total, done = sum(sizes.values()), 0

    def received(n: int) -> None:
        nonlocal done
        done += n
        progress("downloading", done, max(total, done))

    def fetched(part: Part, path: str) -> Path:
        received(0)
        if part.url:
            return fetch_address(path, target)
        # A file of two roles is fetched once: the library finds it in the folder.
        return fetch(part.repo, path, repositories[part.repo][0], target / part.repo.replace("/", "__"), received)

    return {role: [fetched(part, path) for path in paths] for role, (part, paths) in chosen.items()}


def in_folder(entry: Entry, folder: Path) -> Downloaded:
    """Return an entry's files in a local folder: the repository's own layout, each repository in a folder of its name
    or all in one. InputError names what is missing."""
    folder = typed_path(folder)
    if not folder.is_dir():
        raise InputError(
            f"There is no folder {folder}.",
            hint="Give the folder that the benchmark was downloaded to; a zip is taken by `benchmarks add`.",
        )

    files, missing = _look(SCHEMAS.named(entry.schema).parts(entry), folder)
    if missing:
        listed = "; ".join(f"no {part.role} ({part.wanted})" for part in missing)
        raise InputError(
            f"{folder.name} is not {entry.title} as it is published: {listed}.",
            hint="Give the folder that holds the repositories " + " and ".join(entry.repos) + ".",
        )

    return files, {"kind": "folder", "folder": str(folder.resolve())}


def _look(parts: Sequence[Part], folder: Path) -> tuple[dict[str, list[Path]], list[Part]]:
    """Return (role → files, parts without any)."""
    files: dict[str, list[Path]] = {}
    missing: list[Part] = []
    for part in parts:
        roots = [folder / part.repo, folder / part.repo.rpartition("/")[2], folder]
        chosen = next((f for root in roots if root.is_dir() and (f := _chosen(part, root))), [])
        if chosen:
            files[part.role] = chosen
        else:
            missing.append(part)
    return files, missing


def _chosen(part: Part, root: Path) -> list[Path]:
    paths = []
    for path in root.rglob("*"):
        inside = path.relative_to(root)
        if path.is_file() and not any(name.startswith(".") for name in inside.parts):
            paths.append(inside.as_posix())

    paths.sort()
    if part.url:
        return [root / path for path in paths if path.rpartition("/")[2] in part.patterns][:1]
    return [root / path for path in part.choose(paths)]


def _convert(
    entry: Entry, source: Downloaded, converted: Path, target: Path, workspace: Workspace, progress: Progress
) -> BenchmarkInfo:
    """Write the BEIR layout beside its manifest, check it as any benchmark is checked, and give it its name."""

    def written(n: int) -> None:
        progress("writing documents", n, max(entry.documents or 0, n))

    found, about = source
    contents = SCHEMAS.named(entry.schema).read(entry, found)
    counts = write_layout(converted, {entry.split: contents}, written)

    def checked(n: int) -> None:
        progress("checking", n, counts["documents"])

    checked(0)
    files = []
    for role, paths in found.items():
        for path in paths:
            size = path.stat().st_size
            files.append({"role": role, "file": path.name, "bytes": size, "sha256": sha256_file(path)})

    same = ("title", "licence", "licence_source", "language", "self_match", "relevant_from")
    manifest = Manifest(
        entry=entry.name,
        **{name: getattr(entry, name) for name in same},
        source=about,
        files=tuple(files),
        counts=counts,
        allow_unknown=bool(counts["unknown_documents"] or counts["unknown_queries"]),
        notes=tuple(_notes(entry, counts)),
        created=now(),
    )

    manifests.write(converted, manifest)

    info = library.install(library.survey(converted, allow_unknown=False, progress=checked), target, workspace)
    if info is None:
        raise ConfigError(
            f"Something else was stored as {target.name!r} meanwhile.", hint="Store this one under another name."
        )

    return info


def _notes(entry: Entry, counts: Counts) -> list[str]:
    """Return the notes on the conversion: all that was left out, and sizes that are not as stated."""
    notes = [*filter(None, [entry.note])]
    notes += [f"{what}: {counts[name]:,}." for name, what in NOTED.items() if counts[name]]
    for what, stated in (("documents", entry.documents), ("queries", entry.queries)):
        if stated is not None and stated != counts[what]:
            notes.append(f"{what.capitalize()} here: {counts[what]:,}; stated by {entry.figures}: {stated:,}.")
    return notes
