"""A report, a deck and a workbook in the formats that programs write others from, and what a person sees of each."""

from __future__ import annotations

_SPACES = " ".join(
    f'xmlns:{prefix}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"'
    for prefix, name in {
        "office": "office", "text": "text", "table": "table", "style": "style", "draw": "drawing",
        "svg": "svg-compatible", "number": "datastyle",
    }.items()
)  # fmt: skip
_OPEN = f'<?xml version="1.0" encoding="UTF-8"?><office:document {_SPACES} '
_OPEN += 'xmlns:of="urn:oasis:names:tc:opendocument:xmlns:of:1.2" '
_OPEN += 'xmlns:dc="http://purl.org/dc/elements/1.1/" '
_OPEN += 'office:version="1.2" office:mimetype="application/vnd.oasis.opendocument.'


def _row(*cells: str) -> str:
    return f"<table:table-row>{''.join(cells)}</table:table-row>"


def _cell(text: str = "", attributes: str = "") -> str:
    inner = f"<text:p>{text}</text:p>"
    return f'<table:table-cell office:value-type="string" {attributes}>{inner}</table:table-cell>'


_COVERED = "<table:covered-table-cell/>"
_TABLE = (
    '<table:table table:name="T"><table:table-column table:number-columns-repeated="4"/><table:table-header-rows>'
    + _row(*map(_cell, ("Team", "Won", "Drawn", "Lost")))
    + "</table:table-header-rows>"
    + _row(*map(_cell, ("Harbour", "3", "3", "0")))
    + _row(*map(_cell, ("Mill", "", "2", "1")))
    + _row(_cell("Both", 'table:number-columns-spanned="2"'), _COVERED, _cell("5"), _cell("1"))
    + "</table:table>"
)

_WHO = "<dc:creator>A</dc:creator><dc:date>2024-06-01T10:00:00</dc:date>"
_BY = f"<office:change-info>{_WHO}</office:change-info>"
_BOX = (
    '<draw:frame draw:style-name="Frame" svg:width="5cm" svg:height="2cm" text:anchor-type="paragraph"><draw:text-box>'
)
REPORT_FODT = (
    _OPEN + 'text"><office:meta><dc:title>Harbour report</dc:title></office:meta><office:styles>'
    '<style:style style:name="Title" style:family="paragraph"/></office:styles><office:automatic-styles>'
    '<style:style style:name="Hid" style:family="text"><style:text-properties text:display="none"/></style:style>'
    '<style:style style:name="Frame" style:family="graphic"/>'
    '<style:page-layout style:name="pm"><style:page-layout-properties/><style:header-style/></style:page-layout>'
    "</office:automatic-styles><office:master-styles>"
    '<style:master-page style:name="Standard" style:page-layout-name="pm"><style:header>'
    "<text:p>Internal papers</text:p></style:header></style:master-page></office:master-styles>"
    "<office:body><office:text>"
    "<text:tracked-changes><text:changed-region text:id='c1'>"
    f"<text:deletion>{_BY}<text:p>thirty</text:p></text:deletion></text:changed-region>"
    f"<text:changed-region text:id='c2'><text:insertion>{_BY}</text:insertion></text:changed-region>"
    "</text:tracked-changes>"
    '<text:p text:style-name="Title">Harbour report</text:p>'
    '<text:h text:style-name="Heading_20_1" text:outline-level="1">Größe und Lage</text:h>'
    "<text:p>The quay opens at six"
    '<text:note text:note-class="footnote"><text:note-citation>1</text:note-citation><text:note-body>'
    "<text:p>Since May of that year.</text:p></text:note-body></text:note> in the morning.</text:p>"
    "<text:p>The fee is <text:change text:change-id='c1'/><text:change-start text:change-id='c2'/>fortyfive"
    "<text:change-end text:change-id='c2'/> euros.</text:p>"
    "<text:p>Visible<text:span text:style-name='Hid'>secretly</text:span> words.</text:p>"
    "<text:p>Quay House<text:line-break/>Anchor Street<text:tab/>twelve</text:p>"
    "<text:list><text:list-item><text:p>First item</text:p><text:list><text:list-item><text:p>Nested item</text:p>"
    "</text:list-item></text:list></text:list-item><text:list-item><text:p>Second item</text:p></text:list-item>"
    "</text:list>"
    '<text:h text:style-name="Heading_20_2" text:outline-level="2">League table</text:h>'
    + _TABLE
    + f"<text:p>Beside it{_BOX}<text:p>A boxed remark.</text:p></draw:text-box></draw:frame> stands a box.</text:p>"
    f"<text:p>The last<office:annotation>{_WHO}"
    "<text:p>Doubtful comment</text:p></office:annotation> paragraph closes the report.</text:p>"
    "</office:text></office:body></office:document>"
)

# Lines in their order: a heading, a paragraph, a row, a note behind the paragraph that names it.
REPORT = [
    "Harbour report", "Größe und Lage", "The quay opens at six in the morning.", "Since May of that year.",
    "The fee is fortyfive euros.", "Visible words.", "Quay House", "Anchor Street twelve", "First item", "Nested item",
    "Second item", "League table", "Team | Won | Drawn | Lost", "Harbour | 3 | 3 | 0", "Mill |  | 2 | 1",
    "Both |  | 5 | 1", "Beside it stands a box.", "A boxed remark.", "The last paragraph closes the report.",
]  # fmt: skip
UNSEEN = ["Internal papers", "thirty", "secretly", "Doubtful comment"]


DECK_MD = """---
title: Parking permits
---

# Rules

Ask at board seven^1^.

- Quay House\\
  Anchor Street

::: notes
Say it slowly.
:::

# League table

| Team | Won | Drawn | Lost |
|------|-----|-------|------|
| Harbour | 3 | 3 | 0 |
| Mill | | 2 | 1 |
"""
DECK = [
    "Parking permits", "Rules", "Ask at board seven¹.", "Quay House", "Anchor Street", "Say it slowly.", "League table",
    "Team | Won | Drawn | Lost", "Harbour | 3 | 3 | 0", "Mill |  | 2 | 1",
]  # fmt: skip

_DATES = (
    '<number:date-style style:name="D"><number:year number:style="long"/><number:text>-</number:text>'
    '<number:month number:style="long"/><number:text>-</number:text><number:day number:style="long"/>'
    "</number:date-style>"
    '<style:style style:name="dated" style:family="table-cell" style:data-style-name="D"/>'
)


def _number(value: str, formula: str = "") -> str:
    asked = f'table:formula="of:={formula}"' if formula else ""
    attributes = f'office:value-type="float" office:value="{value}" {asked}'
    return f"<table:table-cell {attributes}><text:p>{value}</text:p></table:table-cell>"


_DATE = (
    '<table:table-cell table:style-name="dated" office:value-type="date" office:date-value="2024-06-01">'
    "<text:p>2024-06-01</text:p></table:table-cell>"
)
BOOK_FODS = (
    _OPEN + f'spreadsheet"><office:automatic-styles>{_DATES}</office:automatic-styles><office:body><office:spreadsheet>'
    '<table:table table:name="Ships"><table:table-column table:number-columns-repeated="4"/>'
    + _row(*map(_cell, ("Ship", "Built", "Crew", "Twice")))
    + _row(_cell("Anna"), _DATE, _number("4"), _number("8", "[.C2]*2"))
    + _row(_cell("Berta"), _cell(), _number("7"), _number("14", "[.C3]*2"))
    + _row(_cell("Both", 'table:number-columns-spanned="2"'), _COVERED, _number("11"), _number("22", "[.C4]*2"))
    + '</table:table><table:table table:name="Notes">'
    + _row(_cell("Seen in June."))
    + "</table:table></office:spreadsheet></office:body></office:document>"
)
BOOK = [
    "Ships", "Ship | Built | Crew | Twice", "Anna | 2024-06-01 | 4 | 8", "Berta |  | 7 | 14", "Both |  | 11 | 22",
    "Notes", "Seen in June.",
]  # fmt: skip

NOTE_MD = """---
title: Harbour report
---

# Größe und Lage

The quay opens at six[^1] in the morning.

[^1]: Since May of that year.

Quay House\\
Anchor Street

- First item
    - Nested item
- Second item

## League table

| Team | Won | Drawn | Lost |
|------|-----|-------|------|
| Harbour | 3 | 3 | 0 |
| Mill | | 2 | 1 |

It is $\\frac{a+b}{2}$ of all.
"""
NOTE = [
    "Harbour report", "Größe und Lage", "The quay opens at six in the morning.", "Since May of that year.",
    "Quay House", "Anchor Street", "First item", "Nested item", "Second item", "League table",
    "Team | Won | Drawn | Lost", "Harbour | 3 | 3 | 0", "Mill |  | 2 | 1", "It is (a+b)/2 of all.",
]  # fmt: skip
