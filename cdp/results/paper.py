"""A paper's table: best bold, second underlined, daggers, rounding, means; CSV, Markdown, LaTeX, notes on noise.

Values are percent with one decimal, and compared as they are printed, so equal cells are marked alike. A group's mean
over fewer benchmarks than the group has carries its coverage (``41.2 (12/14)``) and competes with no full mean.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, repeat
from statistics import fmean
from typing import Any

from cdp.base.statistics import FEWEST_CLUSTERS
from cdp.base.text import clustered, csv_text
from cdp.benchmarks import registry
from cdp.results.board import SIGNIFICANT, ResultRow
from cdp.results.differences import Comparison

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


def paper_table(comparison: Comparison) -> Table:
    """Retrievers by benchmarks, then the means of the registry's groups and of the benchmarks that all retrievers have.

    A group's mean stands where two of its members were evaluated, and says over how many of all it runs.
    """
    rows = comparison.rows
    names = sorted({row.retriever for row in rows}, key=lambda name: (name != comparison.baseline, name))
    columns: dict[str, dict[str, TableCell]] = defaultdict(dict)
    files: dict[str, dict[str, TableCell]] = defaultdict(dict)  # beside the others, and part of no mean
    for row in rows:
        place = row.place if row.per_file is None else row.place + PASSAGES
        columns[place][row.retriever] = TableCell(row.ndcg, row.marks, row.significant)
        if row.per_file is not None:
            files[f"{row.place} per file"][row.retriever] = TableCell(row.per_file, row.marks)

    reported = [column for place, column in columns.items() if place.removesuffix(PASSAGES) not in comparison.dev]
    shared = [column for column in reported if len(column) == len(names)]
    means = {}
    if shared and len(reported) > 1:
        means[f"Mean ({len(shared)} of {len(reported)})"] = _means(shared)

    every = _ranked({**columns, **files, **_group_means(rows), **means})
    cells = ((name, tuple(column.get(name, TableCell()) for column in every.values())) for name in names)

    return Table(tuple(every), tuple(cells), tuple(notes(comparison)))


def _group_means(rows: Sequence[ResultRow]) -> dict[str, dict[str, TableCell]]:
    """{heading: {retriever: mean}} of each group and protocol."""
    found: dict[str, dict[str, dict[str, TableCell]]] = defaultdict(lambda: defaultdict(dict))
    for row in rows:
        entry = registry.find(row.benchmark)
        if entry is not None and entry.schema and row.split == entry.split and not row.version:
            found[row.protocol][entry.name][row.retriever] = TableCell(row.ndcg, row.marks)

    groups = registry.groups()
    wholes = {entry.name: groups[entry.title] for entry in registry.entries() if not entry.schema}
    means: dict[str, dict[str, TableCell]] = {}
    for protocol, members in found.items():
        for name, parts in wholes.items():  # CQADupStack is one member of BEIR: the mean of its parts
            members[name] |= _means([members.get(part, {}) for part in parts], whole=True)
        for title, of_group in groups.items():
            columns = [members.get(name, {}) for name in of_group]
            if sum(map(bool, columns)) > 1:
                suffix = "" if protocol == "published" else f" ({protocol})"
                means[f"{title}{suffix} mean"] = _means(columns)

    return means


def _means(columns: Sequence[Mapping[str, TableCell]], whole: bool = False) -> dict[str, TableCell]:
    """The mean of each retriever over columns; with ``whole`` only of those that have all."""
    counts = Counter(name for column in columns for name in column)
    names = [name for name, n in counts.items() if n == len(columns) or not whole]
    return {name: _mean([column.get(name, TableCell()) for column in columns]) for name in names}


def _mean(cells: Sequence[TableCell]) -> TableCell:
    values = [cell.value for cell in cells if cell.value is not None]
    coverage = "" if len(values) == len(cells) else f"{len(values)}/{len(cells)}"
    remarks = dict.fromkeys([coverage, *(cell.remark for cell in cells)])
    return TableCell(fmean(values), ", ".join(filter(None, remarks)))


def _ranked(columns: Mapping[str, Mapping[str, TableCell]]) -> dict[str, dict[str, TableCell]]:
    """The columns with the places of their cells; a column of one value has no best."""
    ranked: dict[str, dict[str, TableCell]] = {}
    for heading, column in columns.items():
        competing = [float(cell.number) for cell in column.values() if not cell.remark]
        best = sorted(set(competing), reverse=True)[: 2 if len(competing) > 1 else 0]
        places = {f"{value:.1f}": place for place, value in enumerate(best, start=1)}

        ranked[heading] = dict(column)
        for name, cell in column.items():
            if not cell.remark:
                ranked[heading][name] = replace(cell, place=places.get(cell.number, 0))

    return ranked


def to_markdown(table: Table) -> str:
    """A GitHub-flavoured table; the second best is underlined with HTML's ``u``. Names and notes are shown as text."""
    lines = [[*map(_markdown, (HEAD, *table.columns))], [":--", *["--:"] * len(table.columns)]]
    for name, cells in table.rows:
        lines.append([_markdown(name), *(cell.shown("**{}**", "<u>{}</u>") for cell in cells)])

    rows = [f"| {' | '.join(texts)} |" for texts in lines]
    notes = [f"\n{dagger}{_markdown(note)}" for dagger, note in zip(_daggers("† "), table.notes, strict=False)]
    return "\n".join([*rows, *notes]) + "\n"


def _daggers(first: str) -> Iterator[str]:
    """What stands before each note: only the first says what the daggers mean."""
    return chain((first,), repeat(""))


def _markdown(text: str) -> str:
    """A text that Markdown and the HTML in it leave alone, on one line."""
    plain = " ".join(text.split()).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`*_\[\]|~$#!])", r"\\\1", plain)


_LATEX = {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}",
    "[": "{[}", "*": "{*}",
}  # fmt: skip
_LATEX |= {character: "\\" + character for character in "&%$#_{}"}


def _latex(text: str) -> str:
    """A text that LaTeX prints as it is, on one line, also after a line's end (which takes [ and * for its own)."""
    return "".join(_LATEX.get(character, character) for character in " ".join(text.split()))


def to_latex(table: Table) -> str:
    """A ``tabular`` with booktabs' rules, its notes below it."""
    dagger = r"$^\dagger$"
    lines = [[_latex(text) for text in (HEAD, *table.columns)]]
    for name, cells in table.rows:
        shown = (cell.shown(r"\textbf{{{}}}", r"\underline{{{}}}", dagger) for cell in cells)
        lines.append([_latex(name), *(text.replace("–", "--") for text in shown)])
    head, *body = [" & ".join(texts) + r" \\" for texts in lines]
    columns = rf"\begin{{tabular}}{{l{'r' * len(table.columns)}}}"
    marked = zip(_daggers(f"{dagger} "), table.notes, strict=False)
    notes = [rf"\par\smallskip{{\footnotesize {mark}{_latex(note)}\par}}" for mark, note in marked]
    whole = [columns, r"\toprule", head, r"\midrule", *body, r"\bottomrule", r"\end{tabular}", *notes]
    return "\n".join(whole) + "\n"


def notes(comparison: Comparison) -> list[str]:
    """What the daggers mean: the test, the correction, and over how many queries and comparisons."""
    tested = [row for row in comparison.rows if row.p_holm is not None]
    if not tested:
        return []

    units = {row.place: row.units for row in tested}
    queries = ", ".join(f"{place} {n}" for place, n in units.items())
    test = (
        f"differs from {comparison.baseline} with p < {SIGNIFICANT:g}: paired t-test over the queries, "
        f"two-sided{_corrected(comparison)}. Queries: {queries}."
    )

    if any(row.shared_units for row in tested):
        test += (
            " Queries that share a relevant document are one group; "
            f"with fewer than {FEWEST_CLUSTERS} groups nothing is marked."
        )

    sentences = [test]

    averaged = [row for row in comparison.rows if row.seeds > 1]
    if averaged:
        spreads = "; ".join(f"{row.retriever} on {row.place} {row.score} ({row.seeds} seeds)" for row in averaged)
        sentences.append(
            "Runs that differ in the seed alone are averaged, query by query. "
            f"Mean ± standard deviation over seeds: {spreads}."
        )

    if comparison.dev:
        sentences.append(f"{', '.join(comparison.dev)}: chose checkpoints, so it is in no mean.")

    return [*sentences, *noise_notes(comparison)]


def test_line(comparison: Comparison) -> str:
    """The test in one line."""
    tested = [row for row in comparison.rows if row.p_holm is not None]
    n, groups = max(((row.n_queries, row.n_clusters or row.n_queries) for row in tested), default=(0, 0))
    seeds = " and the seeds" if any(row.noise == "seeds" for row in comparison.rows) else ""
    over = f"{clustered(n, groups, ' queries')}{seeds}{_corrected(comparison)}"
    return f"Paired t-test over {over}. Bars: uncorrected 95% intervals."


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
    rows = ([getattr(row, name) for name in CSV_COLUMNS] for row in comparison.rows)
    return csv_text(CSV_COLUMNS, rows)


def to_dict(comparison: Comparison) -> dict[str, Any]:
    """The comparison without the scores of single queries, for JSON."""
    same = ("baseline", "baseline_id", "settings", "n_tests", "left_out")
    rows = [row.record() for row in comparison.rows]
    return {**{name: getattr(comparison, name) for name in same}, "rows": rows, "notes": notes(comparison)}


def write(comparison: Comparison, form: str) -> str:
    """The paper's table as ``markdown`` or ``latex``, or every row with its tests as ``csv``."""
    if form == "csv":
        return to_csv(comparison)
    table = paper_table(comparison)
    return to_latex(table) if form == "latex" else to_markdown(table)
