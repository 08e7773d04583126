"""OpenDocument text: what LibreOffice writes comes out once and in its place, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cdp.corpus.checks import RefusedValueError
from cdp.corpus.extraction import blocks_of, reading_process
from cdp.corpus.readers import Block, Report
from tests.corpus.packages import package

pytestmark = pytest.mark.slow

SPACES = " ".join(
    f'xmlns:{prefix}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"'
    for prefix, name in {
        "office": "office", "text": "text", "table": "table", "style": "style", "draw": "drawing", "chart": "chart",
        "svg": "svg-compatible",
    }.items()
)  # fmt: skip
SPACES += ' xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:xlink="http://www.w3.org/1999/xlink"'
STYLES = (
    '<style:style style:name="P1" style:parent-style-name="Title"/>'
    '<style:style style:name="T1"><style:text-properties text:display="none"/></style:style>'
    '<style:style style:name="T2"><style:text-properties style:text-position="super 58%"/></style:style>'
    '<style:style style:name="T3"><style:text-properties style:text-position="-33% 58%"/></style:style>'
)
HEADER = "<style:master-page><style:header><text:p>Internal</text:p></style:header></style:master-page>"


def odt(path: Path, body: str, **objects: str) -> Path:
    declared = f'<?xml version="1.0" encoding="UTF-8"?><office:document-content {SPACES}>'
    content = f"<office:automatic-styles>{STYLES}</office:automatic-styles><office:body><office:text>{body}"
    return package(
        path,
        {
            "content.xml": f"{declared}{content}</office:text></office:body></office:document-content>",
            "styles.xml": f"{declared}<office:master-styles>{HEADER}</office:master-styles></office:document-content>",
            "meta.xml": f"{declared}<office:meta><dc:title>Harbour</dc:title></office:meta></office:document-content>",
            **{f"{name}/content.xml": f'<?xml version="1.0"?>{inner}' for name, inner in objects.items()},
        },
    )


@pytest.fixture(scope="module", autouse=True)
def process() -> Iterator[None]:
    with reading_process():
        yield


def read(path: Path) -> tuple[list[Block], Report]:
    """The blocks of a file; nothing of it may be missing."""
    report = Report()
    found = list(blocks_of("odt", path, report))
    assert not report.missing
    return found, report


def p(text: str, attributes: str = "") -> str:
    return f"<text:p {attributes}>{text}</text:p>"


def frame(inner: str) -> str:
    return f"<draw:frame><svg:title>A picture</svg:title>{inner}</draw:frame>"


NOTE = (
    '<text:note><text:note-citation>1</text:note-citation><text:note-body>{}</text:note-body></text:note>'
).format(p("Since May."))  # fmt: skip
COMMENT = f"<office:annotation><dc:creator>Ann</dc:creator>{p('Really?')}</office:annotation>"
OBJECT = '<draw:object xlink:href="./Object 1"/><draw:image xlink:href="./ObjectReplacements/Object 1"/>'


RAISED = "10<text:span text:style-name='T2'>3</text:span> H<text:span text:style-name='T3'>2</text:span>O"
BOX = frame(f"<draw:text-box>{p('In a box.')}</draw:text-box>")
HIDDEN = f'<text:section text:display="none">{p("Inside.")}</text:section>'
DELETED = f"<text:tracked-changes><text:deletion>{p('Old.')}</text:deletion></text:tracked-changes>"
CONTENTS = f"<text:table-of-content><text:index-body>{p('Scope 3')}</text:index-body></text:table-of-content>"
ENTRY = "<text:index-title-template>Word, page</text:index-title-template>"
INDEX = (
    f"<text:alphabetical-index><text:alphabetical-index-source>{ENTRY}</text:alphabetical-index-source>"
    f"<text:index-body>{p('harbour, 1')}</text:index-body></text:alphabetical-index>"
)
NESTED = f"<text:list><text:list-item>{p('b')}</text:list-item></text:list>"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (p("One<text:s text:c='3'/>two<text:tab/>three<text:line-break/>four"), ["One two three\nfour"]),
        (p("A <text:span>marked <text:a>link</text:a></text:span> here"), ["A marked link here"]),
        (p(f"The fee{NOTE} is low."), ["The fee is low.", "Since May."]),
        (p(f"The{COMMENT} fee"), ["The fee"]),
        (p("Seen<text:span text:style-name='T1'>hidden</text:span>."), ["Seen."]),
        (p("Hidden.", 'text:style-name="T1"') + p("Seen."), ["Seen."]),
        (p(RAISED), ["10³ H2O"]),
        (p(f"A{BOX} line"), ["A line", "In a box."]),
        (f"<text:section>{p('Inside.')}</text:section>", ["Inside."]),
        (HIDDEN + p("Out."), ["Out."]),
        (DELETED + p("New."), ["New."]),
        (CONTENTS + p("Text."), ["Text."]),
        (INDEX, ["harbour, 1"]),
        (f"<text:list><text:list-item>{p('a')}{NESTED}</text:list-item></text:list>", ["a", "b"]),
        (p("Name: <text:placeholder>&lt;Your name&gt;</text:placeholder>"), ["Name:"]),
    ],
)
def test_a_person_sees(body: str, expected: list[str], tmp_path: Path) -> None:
    assert [block.text for block in read(odt(tmp_path / "a.odt", body))[0]] == expected


def test_headings_and_titles(tmp_path: Path) -> None:
    body = p("A manual", 'text:style-name="P1"') + '<text:h text:outline-level="2">Scope</text:h>' + p("Text.")
    found, report = read(odt(tmp_path / "a.odt", body))
    assert found == [Block("A manual", 1), Block("Scope", 2), Block("Text.")]
    assert (report.title, report.removed) == ("A manual", {"headers and footers": 1})
    assert read(odt(tmp_path / "b.odt", p("Text.")))[1].title == "Harbour"


def row(*cells: str) -> str:
    made = "".join(
        text if text.startswith("<") else f"<table:table-cell>{p(text)}</table:table-cell>" for text in cells
    )
    return f"<table:table-row>{made}</table:table-row>"


EMPTY = '<table:table-cell table:number-columns-repeated="2"/>'
INNER = f"<table:table>{row('x', '1')}{row('y', '2')}</table:table>"
COVERED = "<table:covered-table-cell/>"
ACROSS = f'<table:table-cell table:number-columns-spanned="2">{p("Both")}</table:table-cell>'
DOWN = f'<table:table-cell table:number-rows-spanned="2">{p("Both")}</table:table-cell>'


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (row("Team", "Won", "Lost") + row("Quay", "3", "3") + row("Mill", "", "2"),
         "Team | Won | Lost\nQuay | 3 | 3\nMill |  | 2"),
        (row("a", "b", "c", "d") + row("e", EMPTY, "f"), "a | b | c | d\ne |  |  | f"),
        # Pandoc writes no covered cells.
        (row("a", "b", "c") + row(ACROSS, COVERED, "5"), "a | b | c\nBoth |  | 5"),
        (row("a", "b", "c") + row(ACROSS, "5"), "a | b | c\nBoth |  | 5"),
        (row("a", "b") + row(DOWN, "5") + row(COVERED, "6"), "a | b\nBoth | 5\n| 6"),
        (row("a", "b") + row(DOWN, "5") + row("6"), "a | b\nBoth | 5\n| 6"),
        (row("Size", f"<table:table-cell>{INNER}</table:table-cell>"), "Size | x, 1; y, 2"),
    ],
)  # fmt: skip
def test_cells_stay_in_their_columns(rows: str, expected: str, tmp_path: Path) -> None:
    [block] = read(odt(tmp_path / "a.odt", f"<table:table>{rows}</table:table>"))[0]
    assert (block.text, block.header) == (expected, 1)


def test_a_formula_stands_in_its_line_and_a_chart_is_its_title_and_table(tmp_path: Path) -> None:
    math = (
        '<math xmlns="http://www.w3.org/1998/Math/MathML"><semantics><mfrac><mrow><mi>a</mi><mo>+</mo><mi>b</mi></mrow>'
        '<msup><mi>c</mi><mn>2</mn></msup></mfrac><annotation encoding="StarMath">{a+b} over c^2</annotation>'
        "</semantics></math>"
    )
    line = p(f"It is {frame(OBJECT)} of all.")
    assert read(odt(tmp_path / "a.odt", line, **{"Object 1": math}))[0] == [Block("It is (a+b)/(c^2) of all.")]

    cells = f"<table:table>{row('', '2024')}{row('north', '4')}</table:table>"
    chart = f"<chart:chart {SPACES}><chart:title>{p('Berths')}</chart:title>{cells}</chart:chart>"
    found = read(odt(tmp_path / "b.odt", line, **{"Object 1": chart}))[0]
    assert [block.text for block in found] == ["It is of all.", "Berths", "| 2024\nnorth | 4"]


def test_a_file_with_a_password_is_refused(tmp_path: Path) -> None:
    entry = "<manifest:file-entry><manifest:encryption-data/></manifest:file-entry>"
    space = 'xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0"'
    manifest = f'<?xml version="1.0"?><manifest:manifest {space}>{entry}</manifest:manifest>'
    locked = package(tmp_path / "b.odt", {"META-INF/manifest.xml": manifest, "content.xml": "<?xml encrypted"})
    with pytest.raises(RefusedValueError, match="password"):
        list(blocks_of("odt", locked, Report()))
