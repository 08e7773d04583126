"""Whatever text goes in comes out again, through every format that can hold it."""

from __future__ import annotations

import csv
import io
import json
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdp.base.errors import InputError
from cdp.base.workspace import Workspace
from cdp.corpus import iter_documents, read_documents, store
from tests.corpus.files import triples
from tests.strategies import examples

pytestmark = pytest.mark.slow

ODD = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40)
IDS = st.text(st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"]), min_size=1, max_size=20).filter(str.strip)
DOCUMENTS = st.lists(st.tuples(IDS, ODD, ODD.filter(str.strip)), min_size=1, max_size=12, unique_by=lambda d: d[0])
few = examples(15, 400)


@few
@given(DOCUMENTS, st.booleans())
def test_jsonl(documents: list[tuple[str, str, str]], ascii_only: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "d.jsonl"
        names = ("_id", "title", "text")
        lines = [json.dumps(dict(zip(names, d, strict=True)), ensure_ascii=ascii_only) + "\n" for d in documents]
        path.write_bytes("".join(lines).encode("utf-8"))
        workspace = Workspace(Path(folder) / "ws")
        with read_documents(path) as result:
            assert not result.rejected_counts
            manifest = store(result, documents[0][1], workspace)
        assert [(d.id, d.title, d.text) for d in iter_documents(workspace, manifest.id)] == documents


@few
@given(DOCUMENTS, st.sampled_from(",;\t|"))
def test_csv(documents: list[tuple[str, str, str]], delimiter: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "d.csv"
        with io.StringIO(newline="") as text:
            csv.writer(text, delimiter=delimiter, quoting=csv.QUOTE_ALL).writerows(
                [("_id", "title", "text"), *documents]
            )
            path.write_bytes(text.getvalue().encode("utf-8"))
        with read_documents(path) as result:
            assert not result.rejected_counts
            assert triples(result) == documents


@few
@given(DOCUMENTS)
def test_parquet(documents: list[tuple[str, str, str]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "d.parquet"
        columns = dict(zip(("_id", "title", "text"), map(list, zip(*documents, strict=True)), strict=True))
        pq.write_table(pa.table(columns), path)
        with read_documents(path) as result:
            assert triples(result) == documents


@few
@given(
    st.binary(max_size=300),
    st.sampled_from(["d.jsonl", "d.csv", "d.tsv", "d.parquet", "d.txt", "d.md", "d.zip", "d.txt.gz"]),
)
def test_any_bytes_give_documents_or_one_clear_error(data: bytes, name: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(data)
        try:
            result = read_documents(path)
        except InputError as refused:
            message = refused.message
        else:
            with result:
                message = f"{result.n_documents} documents were read"
                assert result.n_documents > 0
        assert len(message) > 10
