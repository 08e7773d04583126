"""What is attacked: each target makes one damaged input in a folder and gives it to a reader or an import."""

from __future__ import annotations

import dataclasses
import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from cdp.base.workspace import Workspace
from cdp.benchmarks import add_benchmark, download, registry
from cdp.benchmarks.manifests import Manifest
from cdp.corpus import ReadOptions, read_documents, store
from cdp.corpus.reading import UNEXPECTED
from cdp.query_sets import ImportOptions, import_queries
from cdp.studies import target_queries
from tests.benchmarks import published
from tests.benchmarks.test_folders_of_tables import FOLDERS
from tests.fuzz import files
from tests.fuzz.mutation import ODD_VALUES, damaged, gzipped, odd_lines, zipped
from tests.fuzz.small_files import wrong_types

ENCODINGS = (
    "utf-8", "utf-8", "utf-8", "utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-32", "cp1252", "latin-1", "shift_jis",
    "gb18030", "big5", "hz", "iso2022_jp", "utf-7", "punycode", "idna", "unicode_escape", "raw_unicode_escape", "cp037",
    "ascii", "undefined", "koi8_r", "base64", "rot13", "nonsense", "utf-8\x00",
)  # fmt: skip
DOCUMENTS: Mapping[str, bytes | list[bytes]] = {
    "d.jsonl": files.jsonl(files.ROWS),
    "d.json": b"[" + b",\n".join(files.jsonl(files.ROWS).splitlines()) + b"]\n",
    "d.csv": files.table(files.ROWS, ["_id", "title", "text"], ","),
    "e.csv": files.table(files.ROWS, ["id", "text"], ";"),
    "d.tsv": files.table(files.ROWS, ["_id", "title", "text"], "\t"),
    "d.txt": files.TEXT,
    "d.md": files.MARKDOWN,
    "d.parquet": files.parquets(),
}


def _either(value: bytes | list[bytes], rng: random.Random) -> bytes:
    return rng.choice(value) if isinstance(value, list) else value


def _document_file(folder: Path, rng: random.Random) -> Path:
    name = rng.choice(list(DOCUMENTS))
    data = _either(DOCUMENTS[name], rng)
    others = [_either(value, rng) for value in DOCUMENTS.values()]
    if rng.random() < 0.2:
        name, data = f"{name}.gz", gzipped(data, rng)
    else:
        data = damaged(data, rng, others)
    if name in ("d.jsonl", "d.json") and rng.random() < 0.4:
        data = odd_lines(files.ROWS, rng)
    if rng.random() < 0.03:
        data = data.decode("utf-8", "replace").encode(rng.choice(("utf-16", "utf-16-be", "utf-32")), "surrogatepass")
    path = folder / name
    path.write_bytes(data)
    return path


def _read_options(rng: random.Random) -> ReadOptions:
    chosen: dict[str, object] = {}
    if rng.random() < 0.4:
        chosen["encoding"] = rng.choice(ENCODINGS)
    if rng.random() < 0.2:
        chosen["format"] = rng.choice(("jsonl", "csv", "tsv", "parquet", "text", "markdown"))
    for name, values in (
        ("passages", (0, 20, 200)),
        ("keep_repeated", (True, False)),
        ("header", (True, False)),
        ("text_field", (None, "text", "title", "absent")),
        ("id_field", (None, "_id", "text")),
    ):
        if rng.random() < 0.3:
            chosen[name] = rng.choice(values)
    return ReadOptions.from_dict(chosen)


def corpora(folder: Path, workspace: Workspace, rng: random.Random) -> None:
    """A file, a zip or a folder of documents, read and stored."""
    shape = rng.random()
    path = folder / "documents"
    if shape < 0.6:
        path = _document_file(folder, rng)
    elif shape < 0.85:
        names = rng.sample(list(DOCUMENTS), rng.randrange(1, 5))
        path = folder / "d.zip"
        path.write_bytes(zipped({name: _either(DOCUMENTS[name], rng) for name in names}, rng))
    else:
        for number in range(rng.randrange(1, 4)):
            inner = path / str(number)
            inner.mkdir(parents=True)
            _document_file(inner, rng)
    with read_documents(path, _read_options(rng), scratch=folder / "scratch") as result:
        assert UNEXPECTED not in result.rejected_counts, result.rejected
        store(result, "fuzzed", workspace)


QUERIES: Mapping[str, bytes] = {
    "q.jsonl": files.jsonl(files.QUERY_ROWS),
    "q.json": b"[" + b",".join(files.jsonl(files.QUERY_ROWS).splitlines()) + b"]",
    "q.csv": files.table(files.QUERY_TABLE, ["document_id", "query"], ","),
    "q.tsv": files.table(files.QUERY_TABLE, ["document_id", "query"], "\t"),
}


def queries(folder: Path, workspace: Workspace, rng: random.Random) -> None:
    """A file imported as the queries of a stored corpus."""
    name = rng.choice(list(QUERIES))
    data = damaged(QUERIES[name], rng, list(QUERIES.values()))
    if rng.random() < 0.2:
        name, data = f"{name}.gz", gzipped(QUERIES[name], rng)
    elif name.startswith("q.json") and rng.random() < 0.7:
        theirs = [wrong_types(row, rng) if rng.random() < 0.5 else row for row in files.TRAINING_ROWS]
        lines = "".join(f"{json.dumps(row)}\n" for row in theirs)
        data = rng.choice((odd_lines(files.QUERY_ROWS, rng), lines.encode()))
    path = folder / name
    path.write_bytes(data)
    chosen: dict[str, object] = {}
    if rng.random() < 0.3:
        chosen["encoding"] = rng.choice(ENCODINGS)
    if rng.random() < 0.1:
        chosen["document_field"] = rng.choice(("query", "document_id", "absent", "negatives"))
    if rng.random() < 0.1:
        chosen["query_field"] = rng.choice(("query", "document_id", "absent", "negatives"))
    import_queries(path, workspace, "fuzzed-corpus", "fuzzed", options=ImportOptions.from_dict(chosen))


def _put_damaged(folder: Path, contents: Mapping[str, bytes], rng: random.Random) -> None:
    """The files of a folder, one or two of them damaged, now and then packed or left out."""
    hit = set(rng.sample(list(contents), min(len(contents), rng.choice((1, 1, 2)))))
    for name, data in contents.items():
        if name in hit:
            if rng.random() < 0.05:
                continue
            if name.endswith(".gz") or (name.endswith(".jsonl") and rng.random() < 0.2):
                name, data = (name, damaged(data, rng)) if name.endswith(".gz") else (f"{name}.gz", gzipped(data, rng))
            else:
                data = damaged(data, rng, list(contents.values()))
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def tables(folder: Path, workspace: Workspace, rng: random.Random) -> None:
    """A folder of three tables, added to the workspace as a benchmark."""
    contents = dict(rng.choice(list(FOLDERS.values())))
    for path, data in contents.items():
        if path.endswith(".jsonl") and rng.random() < 0.3:
            contents[path] = odd_lines([json.loads(line) for line in data.splitlines()], rng)
        elif path.endswith(".json") and rng.random() < 0.5:
            contents[path] = json.dumps(wrong_types(json.loads(data), rng)).encode()
    _put_damaged(folder / "tables", contents, rng)
    with download.beir_layout(folder / "tables", workspace) as (laid_out, _):
        add_benchmark(laid_out, workspace, "fuzzed")


MANIFEST_FIELDS = [field.name for field in dataclasses.fields(Manifest)]


def benchmarks(folder: Path, workspace: Workspace, rng: random.Random) -> None:
    """A BEIR folder or a zip of one, added to the workspace."""
    if rng.random() < 0.6:
        path = folder / "bench"
        odd = {"corpus.jsonl": files.BEIR_DOCUMENTS, "queries.jsonl": files.BEIR_QUERIES}
        changed = {name: odd_lines(rows, rng) for name, rows in odd.items() if rng.random() < 0.2}
        _put_damaged(path, {**files.BEIR, **changed}, rng)
        if rng.random() < 0.2:
            kind = rng.choice(("manifest.json", "README.md", "LICENSE"))
            manifest = b'{"schema": 1, "entry": "scifact", "subset": null, "files": [], "notes": ["x"], "source": {}}'
            odd_manifest = {**json.loads(manifest), rng.choice(MANIFEST_FIELDS): rng.choice(ODD_VALUES)}
            whole = json.dumps(odd_manifest).encode() if rng.random() < 0.5 else damaged(manifest, rng)
            (path / kind).write_bytes(whole)
    else:
        path = folder / "bench.zip"
        prefix = rng.choice(("", "bench/"))
        path.write_bytes(zipped({f"{prefix}{name}": data for name, data in files.BEIR.items()}, rng))
    add_benchmark(path, workspace, "fuzzed")


def _repositories() -> list[tuple[str, dict[str, bytes]]]:
    found = [
        *(("scifact", {**one, **other}) for one, other in (published.beir_jsonl(), published.beir_parquet())),
        ("scifact", published.mteb_forum()),
        ("bright-biology", published.bright()),
        ("miracl-ko", {**published.miracl()[0], **published.miracl()[1]}),
        ("trec-dl-2019", {**published.trec_dl()[0], **published.trec_dl()[1]}),
        ("2wikimultihopqa", published.two_wiki(as_text=True)),
        ("2wikimultihopqa", published.two_wiki(as_text=False)),
        ("musique", published.musique()),
        ("novelhopqa", published.novelhop()),
    ]
    missing = [name for name, _ in found if registry.find(name) is None]
    assert not missing, missing
    return found


REPOSITORIES = _repositories()


def downloads(folder: Path, workspace: Workspace, rng: random.Random) -> None:
    """A folder as a benchmark's publisher lays it out, brought in as a download of it is."""
    name, contents = rng.choice(REPOSITORIES)
    for path, data in contents.items():
        if path.endswith(("corpus.jsonl", "queries.jsonl", "dev.jsonl")) and rng.random() < 0.3:
            contents = {**contents, path: odd_lines([json.loads(line) for line in data.splitlines()], rng)}
    _put_damaged(folder / "published", contents, rng)
    entry = registry.find(name)
    assert entry is not None
    download.download_benchmark(entry, workspace, folder=folder / "published")


TARGET_FILES: Mapping[str, bytes] = {
    "t.txt": b"what is this?\nhow is that?\n",
    "t.jsonl": files.jsonl([{"query": "what is it?"}, {"text": "how?"}]),
    "t.csv": b'id,query\n1,what is it?\n2,"how, then?"\n',
    "t.tsv": b"id\tquery\n1\twhat is it?\n2\thow?\n",
}


def targets(folder: Path, workspace: Workspace, rng: random.Random) -> None:
    """A file of target queries."""
    name = rng.choice(list(TARGET_FILES))
    data = damaged(TARGET_FILES[name], rng, list(TARGET_FILES.values()))
    if rng.random() < 0.2:
        name, data = f"{name}.gz", gzipped(TARGET_FILES[name], rng)
    (folder / name).write_bytes(data)
    target_queries.read_queries(folder / name)


@dataclass(frozen=True)
class Target:
    """``attempt(folder, workspace, rng)`` makes one input and has it read; ``makes`` is what a success may change."""

    attempt: Callable[[Path, Workspace, random.Random], None]
    makes: str = ""


TARGETS: Mapping[str, Target] = {
    "corpora": Target(corpora, "corpora"),
    "queries": Target(queries, "queries"),
    "benchmarks": Target(benchmarks, "benchmarks"),
    "tables": Target(tables, "benchmarks"),
    "downloads": Target(downloads, "benchmarks"),
    "targets": Target(targets),
}
