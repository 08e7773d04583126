"""What Word writes: every word that a person sees comes out once and in its place, and nothing else."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from cdp.corpus.checks import RefusedValueError
from cdp.corpus.extraction import blocks_of, reading_process
from cdp.corpus.readers import Block, Report, packages
from cdp.corpus.readers.office import docx_blocks
from tests.corpus.packages import OFFICE, paragraph, run, word

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", autouse=True)
def process() -> Iterator[None]:
    with reading_process():
        yield


def read(path: Path) -> tuple[list[str], Report]:
    """The blocks of a file, headings as "# text"; nothing of it may be missing."""
    report = Report()
    blocks = list(blocks_of(path.suffix[1:], path, report))
    assert not report.missing
    return [f"{'#' * block.level} {block.text}" if block.level else block.text for block in blocks], report


def control(inner: str, properties: str = "") -> str:
    return f"<w:sdt><w:sdtPr>{properties}</w:sdtPr><w:sdtContent>{inner}</w:sdtContent></w:sdt>"


def cell(*inner: str, properties: str = "") -> str:
    content = "".join(part if part.startswith("<") else paragraph(part) for part in inner)
    return f"<w:tc><w:tcPr>{properties}</w:tcPr>{content}</w:tc>"


def row(*cells: str, properties: str = "") -> str:
    made = "".join(part if part.startswith("<") else cell(part) for part in cells)
    return f"<w:tr><w:trPr>{properties}</w:trPr>{made}</w:tr>"


def grid(*rows: str) -> str:
    return f"<w:tbl><w:tblPr/><w:tblGrid/>{''.join(rows)}</w:tbl>"


def deleted(text: str) -> str:
    return f'<w:del w:id="1"><w:r><w:delText xml:space="preserve">{text}</w:delText></w:r></w:del>'


def inserted(text: str) -> str:
    return f'<w:ins w:id="2">{run(text)}</w:ins>'


CHOICES = '<w:ddList><w:result w:val="1"/><w:listEntry w:val="Red"/><w:listEntry w:val="Green"/></w:ddList>'
MARK = "<w:rPr><w:del w:id='9'/></w:rPr>"
BOX = f"<wps:txbx><w:txbxContent>{paragraph('In the box.')}</w:txbxContent></wps:txbx>"
OLD_BOX = f"<v:textbox><w:txbxContent>{paragraph('In the box.')}</w:txbxContent></v:textbox>"
FIELD = (
    '<w:r><w:fldChar w:fldCharType="begin"/></w:r><w:r><w:instrText>REF crane \\h</w:instrText></w:r>'
    f'<w:r><w:fldChar w:fldCharType="separate"/></w:r>{run("section 4")}<w:r><w:fldChar w:fldCharType="end"/></w:r>'
)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        # Content controls around a paragraph, in a line, around a table, a row, a cell's text, and in one another.
        (control(paragraph("A cover.")), ["A cover."]),
        (paragraph("The inspector is ", control(run("Maria")), "."), ["The inspector is Maria."]),
        (control(control(paragraph("Deep ", control(control(run("inside")))))), ["Deep inside"]),
        (control(grid(row("Wind", "14"))), ["Wind | 14"]),
        (grid(row("a", "b"), control(row("c", "d"))), ["a | b\nc | d"]),
        (grid(row(control(cell("a")), cell(control(paragraph("b"))))), ["a | b"]),
        # Elements of a later version are gone through.
        (f"<w:unheardOf>{paragraph('Kept.')}</w:unheardOf>", ["Kept."]),
        # Tracked changes.
        (paragraph("The fee is ", deleted("30"), inserted("45"), " euros."), ["The fee is 45 euros."]),
        (paragraph("colo", deleted("u"), "r"), ["color"]),
        (paragraph("It ", inserted("also "), "opens."), ["It also opens."]),
        (paragraph("One ", properties=MARK) + paragraph("line."), ["One line."]),
        (paragraph(deleted("All of it."), properties=MARK) + paragraph("Stays."), ["Stays."]),
        ("<w:moveFrom>" + paragraph("Moved.") + "</w:moveFrom>" + paragraph("First."), ["First."]),
        (paragraph(f'<w:moveTo w:id="3">{run("Moved.")}</w:moveTo>'), ["Moved."]),
        (grid(row("a", "b"), row("c", "d", properties="<w:del w:id='4'/>")), ["a | b"]),
        # Fields, links, marks inside a line.
        (paragraph("See ", FIELD, "."), ["See section 4."]),
        (paragraph("On ", f'<w:fldSimple w:instr="DATE">{run("1 June")}</w:fldSimple>', "."), ["On 1 June."]),
        (paragraph("A ", f"<w:hyperlink>{run('link')}</w:hyperlink>", "."), ["A link."]),
        (paragraph("Quay House", "<w:r><w:br/></w:r>", "Anchor Street"), ["Quay House\nAnchor Street"]),
        (paragraph("a", "<w:r><w:tab/></w:r>", "b", "<w:r><w:noBreakHyphen/></w:r>", "c"), ["a b-c"]),
        (paragraph("main", "<w:r><w:softHyphen/></w:r>", "tenance"), ["maintenance"]),
        (paragraph("Seen.", run(" Hidden.", "<w:vanish/>"), run(" Too.", '<w:vanish w:val="0"/>')), ["Seen. Too."]),
        (
            paragraph(
                "<w:r><w:ruby><w:rt>" + run("かん") + "</w:rt><w:rubyBase>" + run("漢") + "</w:rubyBase></w:ruby></w:r>"
            ),
            ["漢"],
        ),
        # What stands beside the text follows it, once.
        (
            paragraph(
                "Before",
                f"<w:r><mc:AlternateContent><mc:Choice Requires='wps'><w:drawing>{BOX}</w:drawing></mc:Choice>"
                f"<mc:Fallback><w:pict>{OLD_BOX}</w:pict></mc:Fallback></mc:AlternateContent></w:r>",
                "hand.",
            ),
            ["Beforehand.", "In the box."],
        ),
        (paragraph("Old.", f"<w:r><w:pict><v:shape>{OLD_BOX}</v:shape></w:pict></w:r>"), ["Old.", "In the box."]),
        (
            paragraph("Old.", '<w:r><w:pict><v:shape><v:textpath string="Word art"/></v:shape></w:pict></w:r>'),
            ["Old.", "Word art"],
        ),
        # The choices of an old form.
        (
            paragraph("Paint: ", f"<w:r><w:fldChar><w:ffData>{CHOICES}</w:ffData></w:fldChar></w:r>"),
            ["Paint: Green"],
        ),
        # Hidden by the style, and a hidden row.
        (paragraph("Top of Form", style="Unseen") + paragraph("Seen."), ["Seen."]),
        (paragraph("Seen.", run(" Hidden.", '<w:rStyle w:val="Unseen"/>')), ["Seen."]),
        (grid(row("a", "b"), row("c", "d", properties="<w:hidden/>"), row("e", "f")), ["a | b\ne | f"]),
        # Headings by the name of the style, by one that it is based on, and by their level.
        (paragraph("Scope", style="berschrift1") + paragraph("Text."), ["# Scope", "Text."]),
        (paragraph("Scope", style="Kapitel"), ["# Scope"]),
        (paragraph("Scope", properties='<w:outlineLvl w:val="2"/>'), ["### Scope"]),
        (paragraph("Text.", properties='<w:outlineLvl w:val="9"/>'), ["Text."]),
        (paragraph("Scope 3", style="Verzeichnis1") + paragraph("Text."), ["Text."]),
        # Templates say how a field is to be filled in; text of a control does not.
        (
            paragraph("Name: ", control(run("Click here to enter text."), "<w:showingPlcHdr/>")),
            ["Name:"],
        ),
    ],
)
def test_a_person_sees(body: str, expected: list[str], tmp_path: Path) -> None:
    assert read(word(tmp_path / "a.docx", body))[0] == expected


def math(inner: str) -> str:
    return paragraph("It is ", f"<m:oMath>{inner}</m:oMath>", ".")


def m(text: str) -> str:
    return f"<m:r><m:rPr><m:sty m:val='p'/></m:rPr><m:t>{text}</m:t></m:r>"


@pytest.mark.parametrize(
    ("inner", "expected"),
    [
        (m("E=") + m("m") + f"<m:sSup><m:e>{m('c')}</m:e><m:sup>{m('2')}</m:sup></m:sSup>", "E=m c^2"),
        (f"<m:f><m:num>{m('a+b')}</m:num><m:den>{m('2')}</m:den></m:f>", "(a+b)/2"),
        (f"<m:rad><m:deg/><m:e>{m('x+1')}</m:e></m:rad>", "√(x+1)"),
        (f"<m:d><m:e>{m('x')}</m:e></m:d>", "(x)"),
        (
            "<m:nary><m:naryPr><m:chr m:val='∑'/></m:naryPr>"
            f"<m:sub>{m('i=1')}</m:sub><m:sup>{m('n')}</m:sup><m:e>{m('i')}</m:e></m:nary>",
            "∑_(i=1)^n i",
        ),
        (f"<m:func><m:fName>{m('sin')}</m:fName><m:e>{m('x')}</m:e></m:func>", "sin x"),
        (f"<m:sSub><m:e>{m('a')}</m:e><m:sub>{m('i')}</m:sub></m:sSub>", "a_i"),
    ],
)
def test_a_formula_is_text(inner: str, expected: str, tmp_path: Path) -> None:
    [text] = read(word(tmp_path / "a.docx", math(inner)))[0]
    assert text == f"It is {expected} ."


def note(kind: str, id: int, text: str) -> str:
    return f'<w:{kind} w:id="{id}">{paragraph(text)}</w:{kind}>'


def test_notes_follow_the_paragraph_that_names_them_and_comments_are_counted(tmp_path: Path) -> None:
    named = "<w:r><w:footnoteReference w:id='2'/></w:r>"
    body = paragraph("The fee", named, " is low.") + grid(row("a", cell(paragraph("b", named.replace("2", "3")))))
    notes = '<w:footnote w:type="separator" w:id="0"><w:p/></w:footnote>' + note("footnote", 2, "Since May.")
    path = word(
        tmp_path / "a.docx",
        body + paragraph("End", "<w:r><w:endnoteReference w:id='1'/></w:r>"),
        footnotes=f"<w:footnotes>{notes}{note('footnote', 3, 'In June.')}</w:footnotes>",
        endnotes=f"<w:endnotes>{note('endnote', 1, 'See the act.')}</w:endnotes>",
        comments=f"<w:comments>{note('comment', 1, 'Is this right?')}</w:comments>",
        header1=f"<w:hdr>{paragraph('Internal')}</w:hdr>",
        footer1=f"<w:ftr>{paragraph('Page 3')}</w:ftr>",
    )
    texts, report = read(path)
    assert texts == ["The fee is low.", "Since May.", "a | b In June.", "End", "See the act."]
    assert report.removed == {"comments": 3, "headers and footers": 3}


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([row("Team", "Won", "Lost"), row("Mill", "", "2"), row("Quay", "3", "3")],
         "Team | Won | Lost\nMill |  | 2\nQuay | 3 | 3"),
        # One cell over two columns; one over two rows, whose lower part holds an old text.
        ([row(cell("Both", properties='<w:gridSpan w:val="2"/>'), "c"), row("1", "2", "3")], "Both |  | c\n1 | 2 | 3"),
        (
            [
                row(cell("Item", properties='<w:vMerge w:val="restart"/>'), "a"),
                row(cell("old", properties="<w:vMerge/>"), "b"),
            ],
            "Item | a\n| b",
        ),
        ([row("a", "b"), row("c", properties='<w:gridBefore w:val="1"/>')], "a | b\n| c"),
        # A table in a cell is a list there.
        ([row("Size", cell(grid(row("x", "1"), row("y", "2")), "<w:p/>"))], "Size | x, 1; y, 2"),
    ],
)  # fmt: skip
def test_cells_stay_in_their_columns(rows: list[str], expected: str, tmp_path: Path) -> None:
    assert read(word(tmp_path / "a.docx", grid(*rows)))[0] == [expected]


def test_a_table_that_frames_the_text_is_text_and_marked_header_rows_are_the_header(tmp_path: Path) -> None:
    framed = grid(row(cell(paragraph("Scope", style="berschrift1"), "Text.")))
    marked = grid(*(row(text, text, properties="<w:tblHeader/>") for text in "ab"), row("c", "c"))
    report = Report()
    blocks = list(blocks_of("docx", word(tmp_path / "a.docx", framed + marked), report))
    assert blocks == [Block("Scope", 1), Block("Text."), Block("a | a\nb | b\nc | c", header=2)]


def test_a_file_without_properties_has_no_title_and_a_styled_one_is_it(tmp_path: Path) -> None:
    assert read(word(tmp_path / "a.docx", paragraph("Text.")))[1].title == ""
    texts, report = read(word(tmp_path / "b.docx", paragraph("A manual", style="Title")))
    assert (texts, report.title) == (["# A manual"], "A manual")


def cached(kind: str, *values: str) -> str:
    points = "".join(f'<c:pt idx="{n}"><c:v>{value}</c:v></c:pt>' for n, value in enumerate(values))
    return f"<c:{kind}Ref><c:{kind}Cache>{points}</c:{kind}Cache></c:{kind}Ref>"


CHART = (
    "<c:chartSpace><c:chart>"
    "<c:title><c:tx><c:rich><a:p><a:r><a:t>Berths by year</a:t></a:r></a:p></c:rich></c:tx></c:title>"
    f"<c:plotArea><c:barChart><c:ser><c:tx>{cached('str', '2024')}</c:tx>"
    f"<c:cat>{cached('str', 'north', 'south')}</c:cat><c:val>{cached('num', '4', '9')}</c:val></c:ser>"
    "</c:barChart></c:plotArea></c:chart></c:chartSpace>"
)


def test_a_chart_is_its_titles_and_a_table(tmp_path: Path) -> None:
    drawing = (
        '<w:r><w:drawing><a:graphic><a:graphicData><c:chart r:id="rId2"/></a:graphicData></a:graphic></w:drawing></w:r>'
    )
    path = word(tmp_path / "a.docx", paragraph("Seen below.", drawing), chart=CHART)
    assert read(path)[0] == ["Seen below.", "Berths by year", "| 2024\nnorth | 4\nsouth | 9"]


def test_text_that_no_walk_knows_is_missing(tmp_path: Path) -> None:
    report = Report()
    list(blocks_of("docx", word(tmp_path / "a.docx", "<w:p><m:r><m:t>Lost.</m:t></m:r></w:p>"), report))
    assert report.missing == {"text": 1}


def test_a_part_that_unpacks_to_too_much_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages, "MAX_PART", 1000)
    with pytest.raises(RefusedValueError, match="unpacks to more"):
        list(docx_blocks(word(tmp_path / "a.docx", paragraph("word " * 1000)), (), Report()))


def test_a_strict_file_has_other_namespaces(tmp_path: Path) -> None:
    body = paragraph("Scope", style="berschrift1") + grid(row("a", "b")) + math(m("x"))
    path = word(tmp_path / "a.docx", body)
    with zipfile.ZipFile(path) as usual, zipfile.ZipFile(tmp_path / "b.docx", "w") as strict:
        for name in usual.namelist():
            content = usual.read(name).decode().replace(f"{OFFICE}/package", "packages")
            content = re.sub(rf"{OFFICE}/(\w+)/2006/", r"http://purl.oclc.org/ooxml/\1/", content)
            strict.writestr(name, content.replace("packages", f"{OFFICE}/package"))
    assert read(tmp_path / "b.docx")[0] == read(path)[0] == ["# Scope", "a | b", "It is x ."]


def test_smart_art_is_its_points(tmp_path: Path) -> None:
    points = "".join(
        f"<dgm:pt><dgm:t><a:p><a:r><a:t>{text}</a:t></a:r></a:p></dgm:t></dgm:pt>" for text in ("Ask", "Pay")
    )
    model = f"<dgm:dataModel><dgm:ptLst>{points}<dgm:pt type='pres'/></dgm:ptLst></dgm:dataModel>"
    graphic = '<a:graphic><a:graphicData><dgm:relIds r:dm="rId2"/></a:graphicData></a:graphic>'
    drawing = f"<w:r><w:drawing>{graphic}</w:drawing></w:r>"
    path = word(tmp_path / "a.docx", paragraph("The way:", drawing), diagramData=model)
    assert read(path)[0] == ["The way:", "Ask\nPay"]
