"""The paper's tables and figures: titles, rows as printed with marks, notes; as CSV."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from cdp.base.condition import DIVERSE, EQUAL_PAIRS, HUMAN, PARAPHRASED, QUERY_ONLY, UNTRAINED, Condition
from cdp.base.errors import NotFoundError
from cdp.base.text import csv_text
from cdp.base.workspace import SHIPPED_DATA

FOLDER = SHIPPED_DATA / "published"

MARKS = {"bold": "●", "underlined": "○", "dagger": "†"}
MARKS_HELP = "● bold in the paper (best), ○ underlined (second best), † extended by the authors."

# Columns that tell the rows of a table apart, in the order in which they are shown, with their titles.
COLUMNS = {
    "retriever": "Retriever",
    "generator": "Queries by",
    "method": "Method",
    "train_data": "Trained on",
    "n_docs": "Documents",
    "queries_per_doc": "Q/Doc",
    "weighting": "Weighting",
    "query_source": "Query source",
    "reasoning_query": "Reasoning query",
    "learning_rate": "Learning rate",
    "checkpoint": "Checkpoint",
    "llm_cost_pct": "LLM cost (%)",
    "ce": "Paraphrase ratio (CE)",
    "comparison": "Comparison",
    "aspect": "Aspect",
    "metric": "Measure",
    "direction": "Better",
    "group": "Group",
    "eval_domain": "Domain",
    "dataset": "Dataset",
}


@dataclass(frozen=True, slots=True)
class TableInfo:
    """One table or figure: ``name`` is the paper's label, ``file`` the CSV that holds it, ``about`` what it shows."""

    name: str
    title: str
    about: str
    file: str

    @property
    def kind(self) -> str:
        return "figure" if self.name.startswith("fig:") else "table"


def _tables() -> Mapping[str, TableInfo]:
    with open(FOLDER / "tables.csv", encoding="utf-8", newline="") as file:
        return {row["name"]: TableInfo(**row) for row in csv.DictReader(file)}


TABLES = _tables()


def resolve(name: str) -> TableInfo:
    """The table called ``name``, with or without ``tab:`` or ``fig:``. NotFoundError names what there is."""
    for label in (name, f"tab:{name}", f"fig:{name}"):
        if label in TABLES:
            return TABLES[label]
    raise NotFoundError("published table", name, known=[short_name(label) for label in TABLES])


def short_name(label: str) -> str:
    """A label without ``tab:`` or ``fig:``, where that leaves no doubt."""
    short = label.split(":")[1]
    return label if label == f"fig:{short}" and f"tab:{short}" in TABLES else short


@dataclass(frozen=True)
class PublishedTable:
    """The rows of one table. ``columns`` are those that hold anything; each row also has ``mark`` and ``notes``.

    ``mark`` shows what the paper marks (``MARKS``); ``notes`` are the numbers of the notes that concern the row.
    ``related`` are all its notes by number, and ``on_all`` the numbers of those that concern every row.
    """

    info: TableInfo
    columns: tuple[str, ...]
    rows: tuple[PublishedRow, ...]
    related: Mapping[int, Note] = field(default_factory=dict)
    on_all: tuple[int, ...] = ()

    @property
    def is_scores(self) -> bool:
        """Whether its rows are NDCG@10 of conditions on datasets or groups."""
        return self.info.file == "results"


def table(name: str) -> PublishedTable:
    """One table with every number that it prints, marks and notes beside."""
    info = resolve(name)
    rows = [row for row in read(info.file) if row.get("table", info.name) == info.name]
    if info.name == PLOTTED_OVER_CE:
        rows = _with_ratio(rows)

    related: dict[int, Note] = {}
    on_all: list[int] = []
    concerned: list[list[int]] = [[] for _ in rows]
    for note in notes():
        about = [i for i, row in enumerate(rows) if note.concerns({**row, "table": info.name})]
        if about:
            related[note.id] = note
        if len(about) == len(rows):
            on_all.append(note.id)
            continue
        for i in about:
            concerned[i].append(note.id)

    marked = []
    for row, numbers in zip(rows, concerned, strict=True):
        mark = "".join(sign for column, sign in MARKS.items() if row.get(column) is True)
        marked.append({**row, "mark": mark, "notes": numbers})

    return PublishedTable(info, tuple(_columns(marked)), tuple(marked), related, tuple(on_all))


def _columns(rows: Sequence[PublishedRow]) -> Iterator[str]:
    """The columns that hold anything, those of ``COLUMNS`` first."""
    for name in dict.fromkeys((*COLUMNS, *rows[0])):
        if name in rows[0] and name not in _HIDDEN and any(row[name] not in ("", None) for row in rows):
            yield name


PLOTTED_OVER_CE = "fig:diversity_multihop"


def _with_ratio(rows: Sequence[PublishedRow]) -> list[PublishedRow]:
    """The points of a figure with their other axis, the paraphrase ratio (CE), as printed."""
    ratio = {}
    for row in read("qd_metrics"):
        if row["table"] == PLOTTED_OVER_CE and row["metric"] == "CE":
            ratio[row["method"], row["queries_per_doc"]] = row["value_printed"]

    return [{**row, "ce": ratio[row["method"], row["queries_per_doc"]]} for row in rows]


_HIDDEN = ("table", "panel", "is_average", "mark", "notes", *MARKS)


def wide(published: PublishedTable, rows: Sequence[PublishedRow] | None = None) -> tuple[list[str], list[PublishedRow]]:
    """A table of scores as the paper lays it out: one line per condition, one column per dataset or average.

    Returns the titles of the columns and the lines; a cell is the number as printed with its marks, ``[n]`` for each
    note on it. Of two numbers for one place (a conflict within the table) both are kept.
    """
    shown = published.rows if rows is None else rows
    keys = _keys(published)
    titles = list(dict.fromkeys(map(_place, shown)))

    lines: dict[tuple[Any, ...], PublishedRow] = {}
    for row in shown:
        condition = {COLUMNS[c]: row[c] for c in keys}
        line = lines.setdefault(tuple(condition.values()), {**condition, **dict.fromkeys(titles, "")})
        title, cell = _place(row), printed(row)
        line[title] = f"{line[title]} / {cell}" if line[title] else cell

    return [*(COLUMNS[c] for c in keys), *titles], list(lines.values())


def _keys(published: PublishedTable) -> list[str]:
    """The columns that tell the conditions of a table apart."""
    columns = [c for c in published.columns if c in COLUMNS and c not in ("dataset", "group", "eval_domain")]
    keys = [c for c in columns if _lines(published.rows, [c]) > 1] or columns[:1]
    for implied in ("train_data", "generator"):
        others = [c for c in keys if c != implied]
        if others and _lines(published.rows, others) == _lines(published.rows, keys):
            keys = others

    return keys


def _lines(rows: Sequence[PublishedRow], keys: Sequence[str]) -> int:
    """How many conditions these columns tell apart."""
    return len({tuple(row[c] for c in keys) for row in rows})


def printed(row: PublishedRow) -> str:
    """A number as the paper shows it: its digits, its marks, and where a note applies its number in brackets."""
    note = "".join(f" [{number}]" for number in row["notes"])
    return f"{row['value_printed']}{row['mark']}{note}"


def _place(row: PublishedRow) -> str:
    """The title of a number's column: its dataset, else its group."""
    if row["dataset"]:
        return str(row["dataset"])
    return f"{row['group']} average" if row["is_average"] else str(row["group"])


PublishedRow = dict[str, Any]

# The methods of the tables, as conditions name them.
METHODS = {"Ours-diverse": DIVERSE, "Ours-paraphrase": PARAPHRASED, "Supervised": HUMAN, "Pretrained": UNTRAINED,
           "ReasonEmbed": "reasoned", "ReasonEmbed-data": "reasoned"}  # fmt: skip


def method_in(row: Mapping[str, Any]) -> str:
    return METHODS.get(str(row["method"]), str(row["method"]))


def condition_of(row: Mapping[str, Any]) -> Condition:
    """Return the condition of a printed score, without the corpus that it names."""
    method = method_in(row)
    return Condition(
        row["retriever"] or "as printed",
        method,
        0 if method == UNTRAINED else row["queries_per_doc"] or 1,
        weighting=row["weighting"],
        held=EQUAL_PAIRS if "cost_efficiency" in row["table"] else "",
        rate=float(row["learning_rate"]) if row["learning_rate"] else None,
        query_source=row["query_source"] or QUERY_ONLY,
    )


WHOLE = ("queries_per_doc", "n_docs", "n_queries", "n_datasets", "cw_min", "cw_max")
REAL = ("value", "cw", "percent", "r")
FLAGS = ("is_average", "bold", "underlined", "dagger", "significant_printed")


@lru_cache(maxsize=16)
def read(name: str) -> tuple[PublishedRow, ...]:
    """The rows of ``<name>.csv``. Columns of counts are int or None, of values float or None, of marks bool.

    ``results`` holds every NDCG@10 of the paper (``value`` in percent; ``dataset`` is empty for averages), ``datasets``
    the 32 rows on evaluation datasets (HotpotQA twice).
    """
    with open(FOLDER / f"{name}.csv", encoding="utf-8", newline="") as file:
        return tuple(_typed(row) for row in csv.DictReader(file))


def _typed(row: Mapping[str, str]) -> PublishedRow:
    typed: PublishedRow = dict(row)
    for column, text in row.items():
        if column in FLAGS:
            typed[column] = text == "true"
        elif column in WHOLE or column in REAL:
            typed[column] = None
            if text:
                typed[column] = int(text) if column in WHOLE else float(text)

    return typed


@dataclass(frozen=True)
class Note:
    """A conflict, a wrong mark or a gap in the printed figures. ``where`` holds one pattern per set of rows."""

    id: int
    kind: str
    note: str
    printed: str
    computed: str
    where: tuple[Mapping[str, Any], ...]

    def concerns(self, row: Mapping[str, Any]) -> bool:
        """Whether the note is about this row: every field of one of its patterns fits."""
        for pattern in self.where:
            options = {column: value if isinstance(value, list) else [value] for column, value in pattern.items()}
            if all(row.get(column) in wanted for column, wanted in options.items()):
                return True

        return False


@lru_cache(maxsize=1)
def notes() -> tuple[Note, ...]:
    """All notes, in order of their numbers."""
    values = json.loads((FOLDER / "notes.json").read_text(encoding="utf-8"))
    return tuple(Note(**{**value, "where": tuple(value["where"])}) for value in values)


def list_tables() -> list[dict[str, Any]]:
    """Every published table and figure: name, title, kind, what it shows, how many numbers, how many notes."""
    listed = []
    for name, info in TABLES.items():
        made = table(name)
        sizes = {"numbers": len(made.rows), "notes": len(made.related)}
        listed.append({"name": short_name(name), "title": info.title, "kind": info.kind, **sizes, "about": info.about})

    return listed


def to_csv(published: PublishedTable) -> str:
    """The rows of a table as CSV: its columns, the value, as printed, marks and the numbers of the notes."""
    columns = [*published.columns, "mark", "notes"]
    rows = []
    for row in published.rows:
        shown = {**row, "notes": " ".join(map(str, row["notes"]))}
        rows.append([shown.get(name, "") for name in columns])

    return csv_text(columns, rows)


FILE = SHIPPED_DATA / "evidence" / "prior_work.csv"


@dataclass(frozen=True, slots=True)
class PriorWork:
    """A publication beside the paper. ``read`` is what was read of it, ``against`` where it disagrees with the
    principle in a sentence (empty where it does not), ``on`` the page that says so: decide, or evidence alone."""

    source: str
    year: str
    authors: str
    title: str
    url: str
    read: str
    finding: str
    figures: str
    against: str
    on: str

    @property
    def disagreement(self) -> str:
        """``against`` with its source, as Markdown; empty where it does not disagree."""
        return f"{self.against} [{self.source}]({self.url})" if self.against else ""


@lru_cache(maxsize=1)
def prior_work() -> tuple[PriorWork, ...]:
    """All rows of the table, those that disagree with the principle first."""
    with open(FILE, encoding="utf-8", newline="") as file:
        return tuple(PriorWork(**row) for row in csv.DictReader(file))
