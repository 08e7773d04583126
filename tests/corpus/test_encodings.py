"""Text that is not UTF-8: the byte, its place, and the encoding to set; and reading it with that encoding."""

from __future__ import annotations

import codecs
import gzip
import json
from pathlib import Path

import pytest

from cdp.base.errors import InputError
from cdp.corpus import ReadOptions, read_documents
from cdp.corpus.sources import BLOCK, likely_encoding
from tests.corpus.files import TRIPLES, read, triples

TEXTS = {
    "cp1252": "Où étiez-vous passés ? – Près de la forêt, répondit-elle, là où l’été s’achève.",
    "cp1251": "Быстрая лиса перепрыгнула через ленивую собаку, и никто этого не заметил.",
    "koi8_r": "Быстрая лиса перепрыгнула через ленивую собаку, и никто этого не заметил.",
    "cp1256": "كان الولد يلعب في الحديقة مع أصدقائه حتى غروب الشمس ثم عاد إلى البيت",
    "shift_jis": "むかしむかし、あるところにおじいさんとおばあさんがいました。とても仲がよかったのです。",
    "euc_jp": "むかしむかし、あるところにおじいさんとおばあさんがいました。とても仲がよかったのです。",
    "gb18030": "他们在中国的时候来过这个地方，我不知道为什么要说这是一个大问题。",
    "big5": "他們在中國的時候來過這個地方，我不知道為什麼要說這是一個大問題。",
    "euc_kr": "그는 어제 서울에서 친구를 만나 이야기를 하다가 집으로 돌아가는 길에 책을 샀다.",
    "utf-16": "Any text at all, with a mark at its beginning.",
    "utf-16-le": "Any text at all, without a mark.",
}


@pytest.mark.parametrize("encoding", TEXTS)
def test_the_encoding_is_found(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "d.jsonl"
    line = json.dumps({"_id": "x", "text": TEXTS[encoding]}, ensure_ascii=False)
    path.write_bytes(f"{line}\n".encode(encoding))
    with read_documents(path) as result:
        assert triples(result) == [("x", "", TEXTS[encoding])]
        assert [file.encoding for file in result.files] == [encoding]
        assert f"1 file as {encoding}" in result.notes[0]


def test_a_mixed_folder_is_read_whole_without_any_option(tmp_path: Path) -> None:
    wanted = {}
    for n in range(38):
        encoding = {3: "cp1252", 11: "cp1252", 20: "cp1252", 30: "cp1252", 36: "utf-16", 37: "cp1250"}.get(n, "utf-8")
        text = f"Café Nº {n}: où l’été s’achève, près de la forêt – “fin”."
        if encoding == "cp1250":
            text = "Nie ma róży bez kolców, a on jest tu i był źle."
        elif n % 2:
            text = f"Übung {n} für die größte Prüfung, und das ist gut so."
        (tmp_path / f"{n}.txt").write_bytes(text.encode(encoding))
        wanted[f"{n}.txt"] = text
    with read_documents(tmp_path) as result:
        assert {d.id: d.text for d in result.documents} == wanted
        assert (result.n_files, result.n_files_failed, result.n_rejected) == (38, 0, 0)
        assert any("4 files as cp1252, 1 file as utf-16, 1 file as cp1250" in note for note in result.notes)
        assert {file.language for file in result.files} >= {"de", "pl"}


@pytest.mark.slow
@pytest.mark.parametrize("before", [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK + 17])
@pytest.mark.parametrize("mark", [b"", codecs.BOM_UTF8])
def test_the_offending_byte_and_its_offset_are_named(tmp_path: Path, before: int, mark: bytes) -> None:
    path = tmp_path / "d.txt"
    lines, rest = divmod(before, 64)
    path.write_bytes(mark + (b"a" * 63 + b"\n") * lines + b"b" * rest + b"\xe9 and more")
    with pytest.raises(InputError) as caught:
        read_documents(path, ReadOptions(encoding="utf-8"))
    assert f"byte 0xE9 at offset {before + len(mark):,} does not fit" in str(caught.value)
    assert caught.value.line == lines + 1


def test_a_character_cut_off_by_the_end_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "d.txt").write_bytes("aéé".encode()[:-1])
    with pytest.raises(InputError, match="byte 0xC3 at offset 3 "):
        read_documents(tmp_path / "d.txt", ReadOptions(encoding="utf-8"))


@pytest.mark.slow
def test_a_character_across_blocks_is_whole(tmp_path: Path) -> None:
    text = "x" * (BLOCK - 1) + "é" + "\U0001f600" * 10
    (tmp_path / "d.txt").write_text(text, encoding="utf-8")
    assert read(tmp_path / "d.txt")[0][2] == text


def test_a_byte_order_mark_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "d.jsonl").write_bytes(codecs.BOM_UTF8 + b'{"_id": "a", "title": "Alpha", "text": "The first letter."}')
    assert read(tmp_path / "d.jsonl") == TRIPLES[:1]


def test_the_wrong_encoding_is_named_as_chosen(tmp_path: Path) -> None:
    (tmp_path / "d.txt").write_bytes("nur ä".encode())
    with pytest.raises(InputError, match="It is not ascii: byte 0xC3 at offset 4 "):
        read_documents(tmp_path / "d.txt", ReadOptions(encoding="ascii"))


def test_binary_data_is_not_called_text(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_bytes(bytes(1000))
    with pytest.raises(InputError, match=r"bytes are zero\. Check that the right file was chosen"):
        read_documents(tmp_path / "d.csv")


def test_bytes_of_no_known_language_are_offered_as_latin_1() -> None:
    assert likely_encoding(bytes(range(128, 256))) == "latin-1"
    assert likely_encoding("She said “hello” – it’s fine.".encode("cp1252")) == "cp1252"
    assert likely_encoding(codecs.BOM_UTF32_LE + b"a\0\0\0") == "utf-32"


def test_bytes_that_are_no_text_get_no_encoding_offered(tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    path.write_bytes(bytes(range(1, 256)) * 8)
    with pytest.raises(InputError, match=r"does not fit\. Check that the right file was chosen"):
        read_documents(path)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["d.jsonl", "d.jsonl.gz", "d.csv"])
def test_the_encoding_is_found_behind_the_first_block(tmp_path: Path, name: str) -> None:
    rows = [(f"d{n}", "plain words of a document " * 12) for n in range(2 * BLOCK // 300)]
    rows.append(("late", TEXTS["cp1252"]))
    lines = [json.dumps({"_id": id, "text": text}, ensure_ascii=False) for id, text in rows]
    if name.endswith(".csv"):
        lines = ["_id,text", *(f'{id},"{text}"' for id, text in rows)]
    data = "".join(f"{line}\n" for line in lines).encode("cp1252")
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    with read_documents(tmp_path / name) as result:
        assert triples(result)[-1] == ("late", "", TEXTS["cp1252"])
        assert (result.n_documents, result.n_rejected) == (len(rows), 0)
        assert [file.encoding for file in result.files] == ["cp1252"]
