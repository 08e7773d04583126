"""Files that cannot be read get one clear sentence; one such file among others does not cost the others."""

from __future__ import annotations

import gzip
import os
import zipfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cdp.base.errors import InputError
from cdp.corpus import read_documents, sources
from tests.corpus.files import ROWS, TRIPLES, jsonl, triples


@pytest.mark.parametrize("name", ["d.jsonl", "d.csv", "d.tsv", "d.txt", "d.md"])
@pytest.mark.parametrize("data", [b"", b"\n \n"])
def test_an_empty_file(tmp_path: Path, name: str, data: bytes) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(InputError, match=r"It is empty|the field '_?text' is empty|None of the"):
        read_documents(tmp_path / name)


def test_no_file_and_no_files(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no file or folder"):
        read_documents(tmp_path / "absent.jsonl")
    (tmp_path / "photo.jpg").write_bytes(b"x")
    with pytest.raises(InputError, match=r"photo\.jpg: this format is not read"):
        read_documents(tmp_path)
    os.mkfifo(tmp_path / "pipe.jsonl")
    with pytest.raises(InputError, match="neither a file nor a folder"):
        read_documents(tmp_path / "pipe.jsonl")


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (gzip.compress(b"{}", mtime=0), "gzip"),
        (b"PK\x03\x04zip", "zip"),
        (b"PAR1....", "Parquet"),
        (b"%PDF-1.7\n", "PDF"),
    ],
)
def test_a_file_under_a_wrong_name_is_recognised(tmp_path: Path, data: bytes, what: str) -> None:
    (tmp_path / "d.jsonl").write_bytes(data)
    with pytest.raises(InputError, match=f"It is an? .*{what}.*, not text"):
        read_documents(tmp_path / "d.jsonl")


def test_damaged_compression_is_named(tmp_path: Path) -> None:
    whole = jsonl(tmp_path / "d.jsonl.gz", ({"_id": i, "text": f"text {i * 7919}"} for i in range(5000))).read_bytes()
    for data in (whole[: len(whole) // 2], b"no gzip at all", whole[:300] + b"\0" * 50 + whole[350:]):
        (tmp_path / "d.jsonl.gz").write_bytes(data)
        with pytest.raises(InputError, match=r"d\.jsonl\.gz: The compressed data cannot be unpacked"):
            read_documents(tmp_path / "d.jsonl.gz")
    (tmp_path / "d.zip").write_bytes(b"PK\x03\x04 but no directory")
    with pytest.raises(InputError, match="cannot be opened as a zip"):
        read_documents(tmp_path / "d.zip")


@pytest.mark.slow
def test_an_unreadable_file_among_others_is_rejected_as_a_whole(tmp_path: Path) -> None:
    folder = tmp_path / "x"
    jsonl(folder / "good.jsonl", ROWS)
    (folder / "empty.txt").write_bytes(b"")
    (folder / "latin.txt").write_bytes("déjà vu".encode("cp1252"))
    (folder / "wrong.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    (folder / "cut.parquet").write_bytes(b"PAR1")
    with read_documents(folder) as result:
        assert triples(result) == [*TRIPLES, ("latin.txt", "latin", "déjà vu")]
        assert {(r.file, r.kind) for r in result.rejected} == {
            (name, "unreadable file") for name in ("empty.txt", "wrong.csv", "cut.parquet")
        }


def test_members_that_are_not_opened_are_reported(tmp_path: Path) -> None:
    path = tmp_path / "d.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("../../evil.txt", "out of the archive")
        archive.writestr("/etc/evil.txt", "absolute")
        archive.writestr("C:/evil.txt", "drive")
        archive.writestr("inner.zip", b"PK\x05\x06" + b"\0" * 18)
        archive.writestr("fine.txt", "Fine.")
    with read_documents(path) as result:
        assert triples(result) == [("fine.txt", "fine", "Fine.")]
        assert result.rejected_counts == {"unreadable file": 4}
        assert sum("leads out of the archive" in r.reason for r in result.rejected) == 3
    assert sorted(p.name for p in tmp_path.iterdir()) == ["d.zip"]


def test_two_members_of_one_name_are_reported(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "d.zip", "w") as archive:
        archive.writestr("a.txt", "first")
        with pytest.warns(UserWarning, match="Duplicate name"):
            archive.writestr("a.txt", "second")
    with read_documents(tmp_path / "d.zip") as result:
        assert result.n_documents == 1
        assert "same name" in result.rejected[0].reason


def test_an_encrypted_member_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "d.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("secret.txt", "x")
        archive.writestr("open.txt", "y")
    data = bytearray(path.read_bytes())
    data[data.index(b"PK\x01\x02") + 8] |= 1  # the flag in the directory entry of the first member
    path.write_bytes(bytes(data))
    with read_documents(path) as result:
        assert [(r.file, r.reason) for r in result.rejected] == [("secret.txt", "it is encrypted")]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["bomb.zip", "bomb.txt.gz", "bomb.jsonl.gz", "bomb.parquet"])
def test_a_decompression_bomb_is_stopped(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    row = b'{"_id": "x", "text": "' + b" " * 1000 + b'y"}\n'
    data = row * 3000
    path = tmp_path / name
    if name.endswith(".zip"):
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for i in range(5):
                archive.writestr(f"{i}.jsonl", data[: len(data) // 5])
    elif name.endswith(".parquet"):
        pq.write_table(pa.table({"id": range(3000), "text": ["y" * 1000] * 3000}), path)
    else:
        path.write_bytes(gzip.compress(data))
    assert path.stat().st_size < 40_000
    monkeypatch.setattr(sources, "LARGEST_RATIO", 50)
    if name.endswith("jsonl.gz"):  # a small file may grow more than a large one
        with read_documents(path) as result:
            assert result.n_documents == 1
    monkeypatch.setattr(sources, "FLOOR", 10**6)
    with pytest.raises(InputError, match=r"unpacks to more than \d MB"):
        read_documents(path)


def test_temporary_files_go_away_whatever_happens(tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    with pytest.raises(InputError):
        read_documents(jsonl(tmp_path / "bad.jsonl", ["{"]), scratch=scratch)
    assert list(scratch.iterdir()) == []
    result = read_documents(jsonl(tmp_path / "good.jsonl", ROWS), scratch=scratch)
    assert len(list(scratch.iterdir())) == 1
    result.close()
    assert list(scratch.iterdir()) == []


def test_of_archives_in_a_folder_only_a_whole_zip_is_opened(tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("A plain note.")
    for name in ("inner.zip", "inner.tar.gz"):
        (tmp_path / name).write_bytes(b"PK")
    with zipfile.ZipFile(tmp_path / "whole.zip", "w") as archive:
        archive.writestr("more/rows.csv", "id,text\n7,A row in the zip.\n")
        archive.writestr("../out.txt", "Outside.")
        archive.writestr("deeper.zip", b"PK")
    with read_documents(tmp_path) as found:
        assert sorted(d.text for d in found.documents) == ["A plain note.", "A row in the zip."]
        assert {file.name for file in found.files} == {"note.txt", "whole.zip/more/rows.csv"}
        reasons = {r.file: r.reason for r in found.rejected}
        source = found.source_sha256
    assert reasons["inner.tar.gz"] == "an archive inside the folder is not opened; unpack it first"
    assert "cannot be opened as a zip" in reasons["inner.zip"]
    assert reasons["whole.zip/../out.txt"] == "its path leads out of the archive"
    assert reasons["whole.zip/deeper.zip"].startswith("an archive inside the archive is not opened")
    with zipfile.ZipFile(tmp_path / "whole.zip", "w") as archive:
        archive.writestr("more/rows.csv", "id,text\n7,Another row in the zip.\n")
    with read_documents(tmp_path) as found:
        assert found.source_sha256 != source
