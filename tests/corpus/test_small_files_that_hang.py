"""Small files made to take for ever: reading is linear, and a file that unpacks to 200 times its size is refused."""

from __future__ import annotations

import gzip
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cdp.base.errors import InputError
from cdp.base.workspace import Workspace
from cdp.benchmarks import add_benchmark
from cdp.corpus import ReadOptions, read_documents, sources
from cdp.corpus.readers.text import heading_of
from cdp.query_sets import ImportOptions
from cdp.query_sets.imports import read_path
from cdp.studies import target_queries
from tests.benchmarks.folders import write_benchmark

pytestmark = pytest.mark.slow

NEWLINES = gzip.compress(b"\n" * 3_000_000, 9)


def seconds(action: Callable[[], object]) -> float:
    began = time.process_time()
    action()
    return time.process_time() - began


def grows_linearly(make: Callable[[int], Callable[[], object]], n: int) -> None:
    """Eight times as much takes about eight times as long; what is quadratic takes 64 times as long."""
    # The least of three: a collection of garbage in milliseconds of work looks like a quadratic reader.
    small, large = (min(seconds(action) for _ in range(3)) for action in (make(n), make(8 * n)))
    assert large < 24 * max(small, 0.002)


def table(path: Path, n: int, *rows: str) -> Path:
    """A table with a column ``text`` and ``n`` further ones."""
    header = ",".join(["text", *(f"c{i}" for i in range(n))])
    path.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    return path


def test_a_header_of_many_columns(tmp_path: Path) -> None:
    def made(n: int) -> Callable[[], object]:
        path = table(tmp_path / f"{n}.csv", n)

        def read() -> None:
            with pytest.raises(InputError, match="holds no rows"):
                read_documents(path)

        return read

    grows_linearly(made, 3_000)


def test_a_table_with_many_columns_and_short_rows(tmp_path: Path) -> None:
    def made(n: int) -> Callable[[], object]:
        path = table(tmp_path / f"{n}.csv", n, "the whole row" + "," * n, *["x"] * n)

        def read() -> None:
            with read_documents(path) as result:
                assert [document.text for document in result.documents] == ["the whole row"]
                assert result.n_rejected == n

        return read

    grows_linearly(made, 400)


def test_queries_of_a_table_with_many_columns(tmp_path: Path) -> None:
    def made(n: int) -> Callable[[], object]:
        path = table(tmp_path / f"{n}.csv", n, "the whole row" + "," * n)

        def read() -> None:
            assert target_queries.read_queries(path) == ["the whole row"]

        return read

    grows_linearly(made, 2_000)


@pytest.mark.parametrize("between", [" ", " #", "\t"])
def test_a_heading_with_a_long_run_of_spaces(between: str) -> None:
    def made(n: int) -> Callable[[], object]:
        title = "a" + between * n + " b"

        def read() -> None:
            assert heading_of(f"# {title}") == (1, title)

        return read

    grows_linearly(made, 20_000)


@pytest.mark.parametrize(
    ("line", "heading"),
    [
        ("# A", (1, "A")), ("###### A b", (6, "A b")), ("####### A", None), ("#A", None), ("#", (1, "")),
        ("   ## A ##  ", (2, "A")), ("    # A", None), ("# A#", (1, "A#")), ("#\tA \t#", (1, "A")), ("A # b", None),
    ],
)  # fmt: skip
def test_headings(line: str, heading: tuple[int, str] | None) -> None:
    assert heading_of(line) == heading


def test_titles_do_not_grow_with_the_sections_below_them(tmp_path: Path) -> None:
    path = tmp_path / "d.md"
    path.write_text("# " + "x" * 100_000 + "\n\n" + "## y\n\ntext\n\n" * 100, encoding="utf-8")
    with read_documents(path, ReadOptions(passages=10, keep_repeated=True)) as result:
        # The first section is the heading's own text: no title holds all of it.
        assert {d.title for d in result.documents} == {"x" * 200, "x" * 200 + " › y"}


@pytest.mark.parametrize("name", ["d.txt.gz", "d.jsonl.gz", "d.csv.gz", "d.md.gz"])
def test_a_pack_of_newlines(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "FLOOR", 2**16)
    path = tmp_path / name
    path.write_bytes(NEWLINES)
    with pytest.raises(InputError, match="unpacks to more than"):
        read_documents(path)


def test_a_pack_of_newlines_among_queries_and_benchmarks(
    tmp_path: Path, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "FLOOR", 2**16)
    path = tmp_path / "q.jsonl.gz"
    path.write_bytes(NEWLINES)
    with pytest.raises(InputError, match="unpacks to more than"):
        list(read_path(path, ImportOptions()))
    folder = write_benchmark(tmp_path / "bench")
    (folder / "corpus.jsonl").unlink()
    (folder / "corpus.jsonl.gz").write_bytes(NEWLINES)
    with pytest.raises(InputError, match="unpacks to more than"):
        add_benchmark(folder, workspace)
    assert not (workspace.benchmarks / "bench").exists()


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA])
def test_a_zip_of_a_thousand_times_its_size(method: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "FLOOR", 2**16)
    path = tmp_path / "d.zip"
    with zipfile.ZipFile(path, "w", method, compresslevel=9) as archive:
        for number in range(4):
            archive.writestr(f"{number}.txt", b"\n" * 1_000_000)
    with pytest.raises(InputError, match="unpacks to more than"):
        read_documents(path)


def test_a_table_of_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "FLOOR", 2**16)
    path = tmp_path / "d.parquet"
    pq.write_table(pa.table({"text": pa.nulls(200_000, pa.string())}), path)
    assert path.stat().st_size < 20_000
    with pytest.raises(InputError, match="unpacks to more than"):
        read_documents(path)


def test_a_text_without_blank_lines_is_cut_all_the_same(tmp_path: Path) -> None:
    path = tmp_path / "d.txt"
    path.write_text("".join(f"word{n} of a line without an end\n" for n in range(10_000)), encoding="utf-8")
    with read_documents(path) as result:
        assert 300 < result.n_documents < 500
        assert result.words.max <= 250
