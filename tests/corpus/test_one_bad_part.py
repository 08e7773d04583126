"""One bad value costs its row, one bad file itself, and each is named; the rest is read and can be stored."""

from __future__ import annotations

import gzip
import io
import json
import os
import zipfile
from pathlib import Path
from typing import Any

import pytest

from cdp import cli
from cdp.base.errors import ConfigError, InputError, RepeatedFailureError
from cdp.base.workspace import Workspace, read_jsonl
from cdp.corpus import ReadOptions, read_documents, reading, store
from cdp.corpus.checks import checked_title
from tests.corpus.files import ROWS, TRIPLES, jsonl, triples


@pytest.mark.slow
def test_a_file_that_breaks_off_costs_what_stands_behind(tmp_path: Path, workspace: Workspace) -> None:
    folder = tmp_path / "x"
    whole = jsonl(folder / "a.jsonl.gz", ({"_id": f"a{i}", "text": f"text {i * 7919} " * 80} for i in range(2_500)))
    whole.write_bytes(whole.read_bytes()[: whole.stat().st_size // 2])
    jsonl(folder / "b.jsonl", ROWS)
    with read_documents(folder) as result:
        (broken,) = result.rejected
        assert (broken.file, broken.kind) == ("a.jsonl.gz", "file broken off")
        assert "rows before were read; The compressed data cannot be unpacked" in broken.reason
        assert result.n_documents > 500
        assert triples(result)[-3:] == TRIPLES
        assert store(result, "x", workspace).n_rejected == 1
    (folder / "b.jsonl").unlink()
    with pytest.raises(InputError, match="cannot be unpacked"):  # alone, it is not taken for a whole one
        read_documents(folder / "a.jsonl.gz")


@pytest.mark.parametrize("name", ["", ".", "/", "a\nb.txt"])
def test_a_member_with_an_impossible_name(name: str, tmp_path: Path, workspace: Workspace) -> None:
    path = tmp_path / "d.zip"
    with zipfile.ZipFile(path, "w") as archive:
        info = zipfile.ZipInfo("x")
        info.filename = name
        archive.writestr(info, "odd")
        archive.writestr("fine.txt", "Fine.")
    for form in ("auto", "text"):
        with read_documents(path, ReadOptions(format=form)) as result:
            assert "Fine." in [d.text for d in result.documents]
            store(result, "x", workspace)


@pytest.mark.slow
@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_damage_in_every_kind_of_packing_is_named(method: int, tmp_path: Path) -> None:
    text = " ".join(str(i * 7919) for i in range(5_000)).encode()
    for at in (0.2, 0.5, 0.9):
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", method) as archive:
            archive.writestr("a.txt", text)
            archive.writestr("fine.txt", "Fine.")
        data = bytearray(buffer.getvalue())
        data[int(at * len(data) * 0.9) : int(at * len(data) * 0.9) + 40] = b"\x5a" * 40
        (tmp_path / "d.zip").write_bytes(data)
        with read_documents(tmp_path / "d.zip") as result:
            assert triples(result) == [("fine.txt", "fine", "Fine.")]
            assert [(r.file, r.kind) for r in result.rejected] == [("a.txt", "unreadable file")]


def test_utf_8_read_as_something_else_says_so(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "d.jsonl", [*ROWS, {"_id": "é", "text": "déjà vu"}])
    for encoding in ("utf-16", "utf-32"):
        with pytest.raises(InputError, match=f'd.jsonl: It is not {encoding}.*set the encoding to "utf-8"'):
            read_documents(path, ReadOptions(encoding=encoding))
    for encoding in ("punycode", "idna", "undefined"):
        with pytest.raises(ConfigError, match="is not a text encoding"):
            read_documents(path, ReadOptions(encoding=encoding))


def test_names_that_are_no_text_can_be_stored(tmp_path: Path, workspace: Workspace) -> None:
    folder = tmp_path / "x"
    folder.mkdir()
    (folder / os.fsdecode(b"caf\xe9.txt")).write_text("From a Latin-1 machine.", encoding="utf-8")
    (folder / os.fsdecode(b"gone\xff.bin")).write_bytes(b"")
    jsonl(folder / "keys.jsonl", ['{"\\ud800": 1, "text": "A key of half a pair."}'])
    with read_documents(folder) as result:
        assert next(d.title for d in result.documents) == "caf\ufffd"
        stored = store(result, os.fsdecode(b"caf\xe9"), workspace)
    assert stored.name == "caf\ufffd"
    json.loads((workspace.corpus(stored.id) / "manifest.json").read_text(encoding="utf-8"))


@pytest.mark.slow
def test_a_fault_of_our_own_costs_its_row(
    tmp_path: Path, workspace: Workspace, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def faulty(value: Any, field: str) -> str:
        return str(1 // 0) if value == "bad" else checked_title(value, field)

    monkeypatch.setattr(reading, "checked_title", faulty)
    # Numbers as ids are read row by row: what comes as columns is not checked by that function.
    rows = [{"_id": f"№{i}", "title": "bad" if i % 50 == 7 else "", "text": f"text {i}"} for i in range(200)]
    with read_documents(jsonl(tmp_path / "d.jsonl", rows)) as result:
        assert (result.n_documents, result.rejected_counts) == (196, {"unexpected error": 4})
        assert [r.line for r in result.rejected] == [8, 58, 108, 158]
        stored = store(result, "x", workspace)
    lines = list(read_jsonl(workspace.corpus(stored.id) / "failures.jsonl"))
    assert [(line["id"], line["line"]) for line in lines][:2] == [("d.jsonl:8", 8), ("d.jsonl:58", 58)]
    assert "ZeroDivisionError" in lines[0]["traceback"]
    assert "7 | bad | text 7" in lines[0]["text"]
    assert cli.main(["corpus", "show", stored.id]) == 0
    shown = capsys.readouterr().out
    assert "failed: 4\n" in shown
    assert "d.jsonl:8: ZeroDivisionError" in shown
    assert str(workspace.corpus(stored.id) / "failures.jsonl") in shown

    # Ordinary rejections do not count towards the twenty, and neither do they break the row of faults.
    rows = [{"_id": f"d{i}", "title": "bad" if i % 2 else "", "text": "" if i % 2 == 0 else "x"} for i in range(200)]
    with pytest.raises(RepeatedFailureError, match="20 rows in a row failed"):
        read_documents(jsonl(tmp_path / "d.jsonl", rows))
    rows = [{"_id": f"d{i}", "text": ""} for i in range(100)] + ROWS
    with read_documents(jsonl(tmp_path / "d.jsonl", rows)) as result:
        assert result.rejected_counts == {"empty text": 100}


def test_a_pack_that_is_cut_off_in_its_first_bytes_does_not_end_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / "x"
    jsonl(folder / "good.jsonl", ROWS)
    for n in (0, 1, 5, 12):
        (folder / f"cut{n}.jsonl.gz").write_bytes(gzip.compress(b'{"text": "x"}\n')[:n])
    with read_documents(folder) as result:
        assert triples(result) == TRIPLES
        assert result.rejected_counts == {"unreadable file": 4}


def test_a_link_that_cannot_be_followed_costs_itself(tmp_path: Path) -> None:
    folder = tmp_path / "x"
    jsonl(folder / "a.jsonl", ROWS)
    (folder / "b.jsonl").symlink_to("n" * 300)  # to look at it is an OSError, as at a link nobody may follow
    with read_documents(folder) as result:
        assert triples(result) == TRIPLES
        assert [(r.file, r.kind) for r in result.rejected] == [("b.jsonl", "unreadable file")]
