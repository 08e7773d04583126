"""CSV and TSV as they are found: quotes, line breaks in cells, delimiters, headers, rows of the wrong width."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdp.base.errors import InputError
from cdp.corpus import ReadOptions, read_documents
from cdp.corpus.readers.tables import find_delimiter
from tests.corpus.files import read, reasons, triples


def write(path: Path, text: str) -> Path:
    path.write_bytes(text.encode("utf-8"))
    return path


def test_line_numbers_are_right_after_cells_with_line_breaks(tmp_path: Path) -> None:
    path = write(tmp_path / "d.csv", 'id,text\na,"one\ntwo\n\nthree"\nb\nc,fine\nc,"again\n"\n')
    with read_documents(path) as result:
        assert triples(result) == [("a", "", "one\ntwo\n\nthree"), ("c", "", "fine")]
        assert reasons(result) == [(6, "wrong number of cells"), (8, "duplicate id")]
        assert result.rejected[1].reason == "another document has this id on line 7"


def test_windows_line_breaks_and_byte_order_mark(tmp_path: Path) -> None:
    path = write(tmp_path / "d.csv", '\ufeffid;title;text\r\na;T;"x; ""y"""\r\n')
    assert read(path) == [("a", "T", 'x; "y"')]


def test_old_mac_line_breaks(tmp_path: Path) -> None:
    assert read(write(tmp_path / "d.csv", "id,text\ra,one\rb,two\r")) == [("a", "", "one"), ("b", "", "two")]


def test_a_stray_quote_costs_its_row_only(tmp_path: Path) -> None:
    with read_documents(write(tmp_path / "d.csv", 'id,text\na,"x" y\nb,fine\n')) as result:
        assert triples(result) == [("b", "", "fine")]
        assert reasons(result) == [(2, "broken quoting")]


def test_a_quote_that_never_closes_is_reported_with_the_lines_it_took(tmp_path: Path) -> None:
    with read_documents(write(tmp_path / "d.csv", 'id,text\na,fine\nb,"never\nc,closed\nd,again\n')) as result:
        assert triples(result) == [("a", "", "fine")]
        assert reasons(result) == [(3, "broken quoting")]
        assert "lines 3 to 5 were lost" in result.rejected[0].reason


@pytest.mark.slow
def test_a_cell_of_two_megabytes_fits(tmp_path: Path) -> None:
    text = "long " * 400_000
    assert read(write(tmp_path / "d.csv", f'id,text\na,"{text}"\n'))[0][2] == text


@pytest.mark.parametrize(
    ("text", "delimiter"),
    [
        ("id,text\n1,a; b; c\n2,d; e; f\n", ","),
        ("id;text\n1;a, b, c\n2;d, e\n", ";"),
        ("id\ttext\n1\ta, b; c\n", "\t"),
        ("id|text\n1|a, b\n", "|"),
        ("text\nonly, one column\n", ","),
        ('"id";"text"\n"1";"a, ""b"" c"\n', ";"),
    ],
)
def test_the_delimiter_is_found(text: str, delimiter: str) -> None:
    assert find_delimiter(text, ReadOptions()) == delimiter


def test_a_passage_that_begins_with_a_quotation_mark_stays_one_row_in_tsv(tmp_path: Path) -> None:
    path = write(tmp_path / "d.tsv", 'id\ttext\n1\t"Stop" he said.\n2\t"Unclosed\n3\tfine\n')
    assert read(path) == [("1", "", '"Stop" he said.'), ("2", "", '"Unclosed'), ("3", "", "fine")]


def test_tsv_from_a_spreadsheet_is_unquoted(tmp_path: Path) -> None:
    path = write(tmp_path / "d.tsv", 'id\ttext\n1\t"say ""hi""\nthere"\n2\tplain\n')
    assert read(path) == [("1", "", 'say "hi"\nthere'), ("2", "", "plain")]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("just text", ("1", "", "just text")),
        ("7\tid and text", ("7", "", "id and text")),
        ("7\tTitle\ttext", ("7", "Title", "text")),
    ],
)
def test_tables_without_header(tmp_path: Path, line: str, expected: tuple[str, str, str]) -> None:
    assert read(write(tmp_path / "d.tsv", f"{line}\n"), header=False) == [expected]


def test_columns_without_names_are_chosen_by_number(tmp_path: Path) -> None:
    path = write(tmp_path / "d.tsv", "7\thttp://x\tOne\tsome words\n8\thttp://y\tTwo\tmore\n")
    options = {"header": False, "id_field": "1", "title_field": "3", "text_field": "4"}
    assert read(path, **options) == [("7", "One", "some words"), ("8", "Two", "more")]
    with pytest.raises(InputError, match=r"'1', '2', '3', '4'"):
        read_documents(path, ReadOptions(header=False))
    with pytest.raises(InputError, match=r"'7', 'http://x'.*that the file has no header row"):
        read_documents(path)


def test_a_header_that_repeats_a_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="'text' more than once"):
        read_documents(write(tmp_path / "d.csv", "id,text,text\n1,a,b\n"))


def test_a_header_alone_holds_no_rows(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no rows"):
        read_documents(write(tmp_path / "d.csv", "id,text\n"))
