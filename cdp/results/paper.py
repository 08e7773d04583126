"""A paper's table: best bold, second underlined, daggers, rounding, means; CSV, Markdown, LaTeX, notes on noise.

Values are percent with one decimal, and compared as they are printed, so equal cells are marked alike. A group's mean
over fewer benchmarks than the group has carries its coverage (``41.2 (12/14)``) and competes with no full mean.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, repeat
from operator import attrgetter
from statistics import fmean
from typing import Any

from cdp.base.statistics import FEWEST_CLUSTERS
from cdp.base.text import clustered, csv_text
from cdp.benchmarks import registry
from cdp.results.board import ResultRow
from cdp.results.differences import Comparison
from cdp.studies.gains import SIGNIFICANT

# Of the column of names.
HEAD = "NDCG@10"


@dataclass(frozen=True)
class TableCell:
    """One number of the table. ``place`` is 1 for the best of its column, 2 for the second, else 0. ``remark`` says why
    a number competes with none: ``leaked``, ``12/14`` for a mean that does not cover its group."""

    value: float | None = None
    remark: str = ""
    dagger: bool = False
    place: int = 0

    @property
    def number(self) -> str:
        return "–" if self.value is None else f"{self.value:.1f}"

    def shown(self, bold: str = "*{}*", second: str = "_{}_", dagger: str = "†") -> str:
        """The number with its marks; by default as plain text."""
        text = self.number
        if self.place:
            text = (bold if self.place == 1 else second).format(text)
        if self.dagger:
            text += dagger
        if self.remark:
            text += f" ({self.remark})"

        return text


@dataclass(frozen=True)
class Table:
    """Headings and cells, ready to be written. ``rows`` holds (retriever, cells in the order of ``columns``).

    The first of the ``notes`` says what the daggers mean; others are about the whole table.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[TableCell, ...]], ...]
    notes: tuple[str, ...] = ()


PASSAGES = " per passage"

# {heading: {retriever: cell}}
CellsByColumn = dict[str, dict[str, TableCell]]


def paper_table(comparison: Comparison) -> Table:
    """Retrievers by benchmarks, then the means of the registry's groups and of the benchmarks that all retrievers have.

    A group's mean stands where two of its members were evaluated, and says over how many of all it runs.
    """
    columns: CellsByColumn = defaultdict(dict)
    files: CellsByColumn = defaultdict(dict)  # beside the others, and part of no mean
    for row in comparison.rows:
        place = row.place
        if row.per_file is not None:
            files[f"{place} per file"][row.retriever] = TableCell(row.per_file, row.marks)
            place += PASSAGES
        columns[place][row.retriever] = TableCell(row.ndcg, row.marks, row.significant)

    names = sorted({row.retriever for row in comparison.rows}, key=lambda name: (name != comparison.baseline, name))
    reported = [column for place, column in columns.items() if place.removesuffix(PASSAGES) not in comparison.dev]
    shared = [column for column in reported if len(column) == len(names)]
    means = {}
    if shared and len(reported) > 1:
        means[f"Mean ({len(shared)} of {len(reported)})"] = _means(shared)

    every = _ranked({**columns, **files, **_group_means(comparison.rows), **means})
    rows = []
    for name in names:
        rows.append((name, tuple(column.get(name, TableCell()) for column in every.values())))

    return Table(tuple(every), tuple(rows), tuple(notes(comparison)))


def _group_means(rows: Sequence[ResultRow]) -> CellsByColumn:
    found: dict[str, CellsByColumn] = defaultdict(lambda: defaultdict(dict))
    for row in rows:
        entry = registry.find(row.benchmark)
        if entry is not None and entry.schema and row.split == entry.split and not row.version:
            found[row.protocol][entry.name][row.retriever] = TableCell(row.ndcg, row.marks)

    groups = registry.groups()
    wholes = {entry.name: groups[entry.title] for entry in registry.entries() if not entry.schema}
    means: CellsByColumn = {}
    for protocol, members in found.items():
        for name, parts in wholes.items():  # CQADupStack is one member of BEIR: the mean of its parts
            members[name] |= _means([members[part] for part in parts], whole=True)

        for title, of_group in groups.items():
            columns = [members[name] for name in of_group]
            if sum(map(bool, columns)) > 1:
                suffix = "" if protocol == "published" else f" ({protocol})"
                means[f"{title}{suffix} mean"] = _means(columns)

    return means


def _means(columns: Sequence[Mapping[str, TableCell]], whole: bool = False) -> dict[str, TableCell]:
    """The mean of each retriever over columns; with ``whole`` only of those that have all."""
    means = {}
    for name, n in Counter(chain.from_iterable(columns)).items():
        if n == len(columns) or not whole:
            means[name] = _mean([column[name] for column in columns if name in column], len(columns))

    return means


def _mean(cells: Sequence[TableCell], of: int) -> TableCell:
    """The mean of the cells that there are, of so many columns."""
    coverage = "" if len(cells) == of else f"{len(cells)}/{of}"
    remarks = dict.fromkeys([coverage, *(cell.remark for cell in cells)])
    values = [cell.value for cell in cells if cell.value is not None]
    return TableCell(fmean(values), ", ".join(filter(None, remarks)))


def _ranked(columns: CellsByColumn) -> CellsByColumn:
    """The columns with the places of their cells; a column of one value has no best."""
    ranked: CellsByColumn = {}
    for heading, column in columns.items():
        competing = {name: cell.number for name, cell in column.items() if not cell.remark}
        best = sorted(set(competing.values()), key=float, reverse=True)[:2]

        ranked[heading] = dict(column)
        for name, number in competing.items():
            if len(competing) > 1 and number in best:
                ranked[heading][name] = replace(column[name], place=best.index(number) + 1)

    return ranked


def to_markdown(table: Table) -> str:
    """A GitHub-flavoured table; the second best is underlined with HTML's ``u``. Names and notes are shown as text."""
    lines = [[*map(_markdown, (HEAD, *table.columns))], [":--", *["--:"] * len(table.columns)]]
    for name, cells in table.rows:
        lines.append([_markdown(name), *(cell.shown("**{}**", "<u>{}</u>") for cell in cells)])

    written = [f"| {' | '.join(texts)} |" for texts in lines]
    for dagger, note in zip(_daggers("† "), table.notes, strict=False):
        written.append(f"\n{dagger}{_markdown(note)}")

    return "\n".join(written) + "\n"


def _daggers(first: str) -> Iterator[str]:
    """What stands before each note: only the first says what the daggers mean."""
    return chain((first,), repeat(""))


def _markdown(text: str) -> str:
    """A text that Markdown and the HTML in it leave alone, on one line."""
    plain = " ".join(text.split()).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`*_\[\]|~$#!])", r"\\\1", plain)


_LATEX = str.maketrans({
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}",
    "[": "{[}", "*": "{*}", **{character: "\\" + character for character in "&%$#_{}"},
})  # fmt: skip


def _latex(text: str) -> str:
    """A text that LaTeX prints as it is, on one line, also after a line's end (which takes [ and * for its own)."""
    return " ".join(text.split()).translate(_LATEX)


def to_latex(table: Table) -> str:
    """A ``tabular`` with booktabs' rules, its notes below it."""
    columns = rf"\begin{{tabular}}{{l{'r' * len(table.columns)}}}"
    lines = [columns, r"\toprule", _latex_row(map(_latex, (HEAD, *table.columns))), r"\midrule"]
    for name, cells in table.rows:
        shown = (cell.shown(r"\textbf{{{}}}", r"\underline{{{}}}", r"$^\dagger$") for cell in cells)
        lines.append(_latex_row([_latex(name), *(text.replace("–", "--") for text in shown)]))

    lines += [r"\bottomrule", r"\end{tabular}"]
    for dagger, note in zip(_daggers(r"$^\dagger$ "), table.notes, strict=False):
        lines.append(rf"\par\smallskip{{\footnotesize {dagger}{_latex(note)}\par}}")

    return "\n".join(lines) + "\n"


def _latex_row(texts: Iterable[str]) -> str:
    return " & ".join(texts) + r" \\"


def notes(comparison: Comparison) -> list[str]:
    """What the daggers mean: the test, the correction, and over how many queries and comparisons."""
    tested = comparison.tested
    if not tested:
        return []

    units = {row.place: row.units for row in tested}
    queries = ", ".join(map(" ".join, units.items()))
    test = (
        f"differs from {comparison.baseline} with p < {SIGNIFICANT:g}: paired t-test over the queries, "
        f"two-sided{_corrected(comparison)}. Queries: {queries}."
    )

    if any(row.shared_units for row in tested):
        test += (
            " Queries that share a relevant document are one group; "
            f"with fewer than {FEWEST_CLUSTERS} groups nothing is marked."
        )

    spreads = []
    for row in comparison.rows:
        if row.seeds > 1:
            spreads.append(f"{row.retriever} on {row.place} {row.score} ({row.seeds} seeds)")

    sentences = [test]
    if spreads:
        sentences.append(
            "Runs that differ in the seed alone are averaged, query by query. "
            f"Mean ± standard deviation over seeds: {'; '.join(spreads)}."
        )

    if comparison.dev:
        sentences.append(f"{', '.join(comparison.dev)}: chose checkpoints, so it is in no mean.")
    if any(row.protocol == "paper" for row in comparison.rows):
        sentences.append("(paper): evaluated as in the paper, by cosine similarity for every model.")

    return [*sentences, *noise_notes(comparison)]


def test_line(comparison: Comparison) -> str:
    """The test in one line."""
    n = groups = 0
    if comparison.tested:
        largest = max(comparison.tested, key=lambda row: (row.n_queries, row.n_clusters or row.n_queries))
        n, groups = largest.n_queries, largest.n_clusters or largest.n_queries

    over = clustered(n, groups, " queries")
    if any(row.noise == "seeds" for row in comparison.rows):
        over += " and the seeds"
    return f"Paired t-test over {over}{_corrected(comparison)}. Bars: uncorrected 95% intervals."


def _corrected(comparison: Comparison) -> str:
    return f", corrected with Holm for {comparison.n_tests} comparisons" if comparison.n_tests > 1 else ""


def noise_notes(comparison: Comparison) -> list[str]:
    """What the tests know of training noise: variance over seeds where there is some, else that it is not known."""
    sentences = []

    if any(row.noise == "seeds" for row in comparison.rows):
        sentences.append(
            "Where both sides were trained with several seeds (or one was not trained here), p and interval are those "
            "of the two-level test: queries crossed with seeds (Cameron, Gelbach & Miller 2011), with Satterthwaite's "
            "degrees of freedom."
        )

    alone = [row.retriever for row in comparison.rows if row.noise == "unknown"]
    if alone:
        sentences.append(
            f"Training noise is not in the test of {', '.join(dict.fromkeys(alone))} against {comparison.baseline}: "
            "with one seed (or seeds without any spread) the trained model is taken as given. Train with three seeds "
            "or more, on both sides, and average them."
        )

    return sentences


CSV_COLUMNS = ("benchmark", "split", "protocol", "retriever", "retriever_id", "version", "ndcg", "per_file",
               "n_queries", "evaluation_id", "baseline_evaluation_id", "difference", "low", "high", "p_t", "p_seeds",
               "p_holm", "n_clusters", "wins", "losses", "ties", "seeds", "seed_sd", "noise", "marks",
               "unjudged", "if_relevant")  # fmt: skip


def to_csv(comparison: Comparison) -> str:
    """The rows of a comparison as CSV with a header; numbers in full, empty where there is none."""
    return csv_text(CSV_COLUMNS, map(attrgetter(*CSV_COLUMNS), comparison.rows))


def to_dict(comparison: Comparison) -> dict[str, Any]:
    """The comparison without the scores of single queries, for JSON."""
    facts = {name: getattr(comparison, name) for name in ("baseline", "baseline_id", "settings", "n_tests", "left_out")}
    return {**facts, "rows": [row.record() for row in comparison.rows], "notes": notes(comparison)}


def write(comparison: Comparison, form: str) -> str:
    """The paper's table as ``markdown`` or ``latex``, or every row with its tests as ``csv``."""
    if form == "csv":
        return to_csv(comparison)
    table = paper_table(comparison)
    return to_latex(table) if form == "latex" else to_markdown(table)
