"""A small file that is a large one once it is decoded: what comes out counts, in every format, in bounded memory."""

from __future__ import annotations

import gzip
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import docx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cdp.base.errors import InputError
from cdp.corpus import extraction, read_documents, sources
from cdp.corpus.checks import RefusedValueError
from cdp.corpus.extraction import blocks_of, reading_process
from cdp.corpus.readers import Report, files, tables
from cdp.corpus.readers.parquet_process import cost
from cdp.studies import target_queries
from tests.support import REPOSITORY

pytestmark = pytest.mark.slow

LIMIT = 10 * 10**6


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "FLOOR", LIMIT)


def repeated(value: str, n: int) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array([0] * n, pa.int32()), pa.array([value]))


def lists(values: pa.Array) -> pa.Array:
    return pa.ListArray.from_arrays(pa.array([0, len(values)], pa.int32()), values)


# Each is a few kilobytes, and 50 MB or millions of values once it is decoded.
TABLES: dict[str, Callable[[], pa.Table]] = {
    "a dictionary": lambda: pa.table({"text": repeated("a" * 500_000, 100)}),
    "a dictionary of plain text": lambda: pa.table({"text": repeated("a" * 500_000, 100).cast(pa.string())}),
    "large strings": lambda: pa.table({"text": repeated("a" * 500_000, 100).cast(pa.large_string())}),
    "rows of nothing": lambda: pa.table({"text": pa.nulls(500_000, pa.string())}),
    "rows of one character": lambda: pa.table({"text": repeated("a", 500_000)}),
    "a list of a dictionary": lambda: pa.table({"text": ["x"], "queries": lists(repeated("a" * 1000, 50_000))}),
    "a list of nothing": lambda: pa.table({"text": ["x"], "queries": lists(pa.nulls(1_000_000))}),
    "a list of empty structures": lambda: pa.table(
        {"text": ["x"], "queries": lists(pa.StructArray.from_arrays([pa.nulls(500_000)], ["a"]))}
    ),
    "a list of lists": lambda: pa.table({"text": ["x"], "queries": lists(lists(pa.nulls(1_000_000)))}),
}


@pytest.mark.parametrize("codec", ["snappy", "zstd"])
@pytest.mark.parametrize("name", TABLES)
def test_parquet(name: str, codec: str, tmp_path: Path) -> None:
    path = tmp_path / "d.parquet"
    pq.write_table(TABLES[name](), path, compression=codec)
    assert path.stat().st_size < 3 * 10**6
    with pytest.raises(InputError, match=r"unpacks to more than (10|134) MB"):
        read_documents(path)


def test_pages_that_unpack_to_more_are_not_unpacked(tmp_path: Path) -> None:
    """The file says so itself."""
    path = tmp_path / "d.parquet"
    table = pa.table({"text": ["a" * 500_000 + str(n) for n in range(100)]})
    pq.write_table(table, path, compression="zstd", use_dictionary=False)
    with pytest.raises(InputError, match="unpacks to more than 10 MB"):
        read_documents(path)


def test_a_dictionary_is_counted_for_each_row_that_has_it() -> None:
    batch = pa.record_batch({"text": repeated("a" * 1000, 50).cast(pa.string())})
    assert 50 * (1000 + sources.ROW_BYTES) < cost(batch, sources.ROW_BYTES) < 50 * (1000 + sources.ROW_BYTES) + 1000


def test_text_in_dictionaries_views_and_lists_is_read_as_text(tmp_path: Path) -> None:
    """More rows than are decoded together, in several groups, and a category as pandas writes it."""
    n = 5_000
    titles = pa.array([f"title {i % 7}" for i in range(n)]).dictionary_encode()
    queries = pa.array([[f"query {i}", "same"] for i in range(n)], pa.list_(pa.dictionary(pa.int32(), pa.string())))
    texts = pa.array([f"text {i}" for i in range(n)], pa.string_view())
    path = tmp_path / "d.parquet"
    pq.write_table(pa.table({"title": titles, "text": texts, "queries": queries}), path, row_group_size=2_000)
    with read_documents(path) as result:
        found = list(result.documents)
        assert [(d.title, d.text) for d in found] == [(f"title {i % 7}", f"text {i}") for i in range(n)]
        assert [result.queries[d.id] for d in found] == [[f"query {i}", "same"] for i in range(n)]


# What a file of 3 GB of text in 1 kB takes of the reading process, and of the importing one, in megabytes.
PEAKS = """
import resource, sys
from pathlib import Path
from cdp.base.errors import InputError
from cdp.corpus import read_documents
try:
    read_documents(Path(sys.argv[1]))
except InputError as error:
    status = Path("/proc/self/status").read_text().split()  # ru_maxrss of a process may be that of its parent
    own = int(status[status.index("VmHWM:") + 1])
    print(own // 1024, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the unit of ru_maxrss, and RLIMIT_AS")
def test_memory_is_bounded_in_both_processes(tmp_path: Path) -> None:
    path = tmp_path / "d.parquet"
    pq.write_table(pa.table({"text": repeated("a" * 3_000_000, 1000)}), path, compression="zstd")
    done = subprocess.run([sys.executable, "-c", PEAKS, str(path)], capture_output=True, text=True, cwd=REPOSITORY)
    here, there = map(int, done.stdout.split())
    assert here < 400
    assert there < 2_100


@pytest.mark.parametrize("name", ["d.txt.gz", "d.md.gz", "d.tsv.gz", "d.csv.gz", "d.jsonl.gz", "d.json.gz"])
def test_a_pack_of_empty_lines_and_entries(name: str, tmp_path: Path) -> None:
    """0.6 to 2.4 MB of entries, which count more than their text."""
    begins = {"d.json.gz": b"[", "d.tsv.gz": b"id\ttext\n", "d.csv.gz": b"id,text\n"}.get(name, b"")
    entry = {
        "d.json.gz": b'{"text":""},',
        "d.jsonl.gz": b'{"text":""}\n',
        "d.tsv.gz": b"\ta\n",
        "d.csv.gz": b",a\n",
    }.get(name, b"a\n\n")
    path = tmp_path / name
    path.write_bytes(gzip.compress(begins + entry * 200_000))
    with pytest.raises(InputError, match="10 MB, 64 bytes counted for each line or row"):
        read_documents(path)


def test_a_zip_of_paragraphs(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "d.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.txt", "a\n\n" * 200_000)
        archive.writestr("b.txt", "a\n\n" * 200_000)
    with pytest.raises(InputError, match="unpacks to more than 10 MB"):
        read_documents(tmp_path / "d.zip")


def test_a_plain_file_may_have_any_number_of_lines(tmp_path: Path) -> None:
    """Real collections are larger than any limit: what is not packed is not counted."""
    (tmp_path / "d.jsonl").write_text("".join(f'{{"id": {n}, "text": "a"}}\n' for n in range(200_000)))
    with read_documents(tmp_path / "d.jsonl") as result:
        assert result.n_documents == 200_000


def test_paragraphs_of_a_word_file_count_more_than_their_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the function that the reading process runs."""
    monkeypatch.setattr(files, "MAX_CHARACTERS", 10_000)
    document = docx.Document()
    for _ in range(200):
        document.add_paragraph("a")
    document.save(str(tmp_path / "d.docx"))
    with pytest.raises(RefusedValueError, match="more than 10,000 characters, 64 counted for each paragraph"):
        files._answer(lambda **_: None, "docx", str(tmp_path / "d.docx"), (), False)


def test_each_file_that_hangs_leaves_less_time_for_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A zip of a thousand such files would take sixteen hours."""
    monkeypatch.setattr(extraction, "BASE_S", 2.0)
    (tmp_path / "d.pdf").write_bytes(b"x")
    monkeypatch.setattr(extraction.sys, "executable", str(tmp_path / "hangs"))
    (tmp_path / "hangs").write_text("#!/bin/sh\nexec sleep 60\n")
    (tmp_path / "hangs").chmod(0o755)
    began = time.monotonic()
    with reading_process():
        for seconds in ("2", "1", "1", "0"):
            with pytest.raises(RefusedValueError, match=f"longer than {seconds} s"):
                list(blocks_of("pdf", tmp_path / "d.pdf", Report()))
    assert time.monotonic() - began < 30


def test_a_row_of_csv_without_an_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its cells hold line breaks, so that each line is short."""
    monkeypatch.setattr(tables, "MAX_LINE_CHARACTERS", 10_000)
    path = tmp_path / "d.csv"
    path.write_text('id,text\na,b\nc,"' + '\n","' * 10_000)
    with pytest.raises(InputError, match="The row is longer than 10,000 characters"):
        read_documents(path)


def test_target_queries_are_held_up_to_a_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(target_queries, "MAX_BYTES", 10_000)
    for name, text in (("q.txt", "a query\n" * 200), ("q.csv", "query\n" + "a query\n" * 200), ("q.txt", "\n" * 200)):
        (tmp_path / name).write_text(text)
        with pytest.raises(InputError, match=r"too many to hold in memory \(10,000 bytes\)"):
            target_queries.read_queries(tmp_path / name)
