"""A table like a paper's: retrievers by datasets, the best bold, the second underlined, a dagger where a note applies.

Values are percent with one decimal, and compared as they are printed, so equal cells are marked alike. A group's mean
over fewer datasets than the group has carries its coverage (``41.2 (12/14)``) and competes with no full mean.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Any

from cdp.base.text import csv_text
from cdp.benchmarks import registry
from cdp.benchmarks.schemas import Entry
from cdp.services.results import SIGNIFICANT, Comparison, Row, benchmark_label

# Of the column of names.
HEAD = "NDCG@10"

# {(retriever, dataset): percent}; a pair that was not evaluated is left out.
Values = Mapping[tuple[str, str], float]


@dataclass(frozen=True)
class Cell:
    """One number of the table. ``place`` is 1 for the best of its column, 2 for the second, else 0. ``mark`` says why
    a number competes with none: ``leaked``."""

    value: float | None
    place: int = 0
    dagger: bool = False
    coverage: str = ""
    mark: str = ""


@dataclass(frozen=True)
class Table:
    """Headings and cells, ready to be written. ``rows`` holds (retriever, cells in the order of ``columns``).

    The first of the ``notes`` says what the daggers mean; others are about the whole table.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Cell, ...]], ...]
    notes: tuple[str, ...] = field(default=())


def comparison_table(
    values: Values,
    *,
    retrievers: Sequence[str],
    groups: Mapping[str, Sequence[str]],
    daggers: Collection[tuple[str, str]] = (),
    notes: Sequence[str] = (),
    marks: Mapping[tuple[str, str], str] | None = None,
) -> Table:
    """A table with the datasets of each group and, for a group of several, its mean.

    ``groups`` maps a group's name to all its datasets, evaluated or not; a dataset that nobody was evaluated on gets no
    column but counts in the coverage, and one of several groups has its column in the first of them. ``daggers`` are
    the (retriever, dataset) pairs that the notes speak of, ``marks`` those that compete with no other.
    """
    marks = marks or {}
    seen = {dataset for _, dataset in values}
    columns: dict[str, list[Cell]] = {}
    for group, members in groups.items():
        for dataset in (name for name in members if name in seen):
            pairs = [(retriever, dataset) for retriever in retrievers]
            columns[dataset] = [Cell(values.get(pair), 0, pair in daggers, mark=marks.get(pair, "")) for pair in pairs]
        if len(members) > 1 and seen.intersection(members):
            columns[f"{group} mean"] = [_mean([(name, d) for d in members], values, marks) for name in retrievers]
    rows = zip(retrievers, zip(*map(_ranked, columns.values()), strict=True), strict=True)
    return Table(tuple(columns), tuple(rows), tuple(notes))


def _mean(pairs: Sequence[tuple[str, str]], values: Values, marks: Mapping[tuple[str, str], str]) -> Cell:
    """The mean of a retriever's values on the members of a group."""
    present = [values[pair] for pair in pairs if pair in values]
    coverage = "" if len(present) == len(pairs) else f"{len(present)}/{len(pairs)}"
    mark = ", ".join(dict.fromkeys(marks[pair] for pair in pairs if pair in marks))
    return Cell(fmean(present) if present else None, coverage=coverage, mark=mark)


def _ranked(column: Sequence[Cell]) -> list[Cell]:
    """The cells of a column with their places; a column of one value has no best."""
    numbers = [None if c.value is None or c.coverage or c.mark else float(_number(c)) for c in column]
    competing = [number for number in numbers if number is not None]
    best = sorted(set(competing), reverse=True)[: 2 if len(competing) > 1 else 0]
    return [
        replace(cell, place=best.index(number) + 1 if number in best else 0)
        for cell, number in zip(column, numbers, strict=True)
    ]


def _number(cell: Cell) -> str:
    return "–" if cell.value is None else f"{cell.value:.1f}"


def _shown(cell: Cell, bold: str, underlined: str, dagger: str) -> str:
    text = _number(cell)
    if cell.place:
        text = (bold if cell.place == 1 else underlined).format(text)
    if cell.dagger:
        text += dagger
    more = ", ".join(filter(None, (cell.coverage, cell.mark)))
    return f"{text} ({more})" if more and cell.value is not None else text


def plain_cell(cell: Cell) -> str:
    """``52.2†``, a partial mean with its coverage, the best in asterisks and the second in underscores."""
    return _shown(cell, "*{}*", "_{}_", "†")


def to_markdown(table: Table) -> str:
    """A GitHub-flavoured table; the second best is underlined with HTML's ``u``. Names and notes are shown as text."""

    def row(texts: Sequence[str]) -> str:
        return "| " + " | ".join(texts) + " |"

    heads = [_markdown(text) for text in (HEAD, *table.columns)]
    lines = [row(heads), "|:--|" + "--:|" * len(table.columns)]
    for name, cells in table.rows:
        lines.append(row([_markdown(name), *(_shown(cell, "**{}**", "<u>{}</u>", "†") for cell in cells)]))
    marks = ["† ", *[""] * len(table.notes)]
    notes = [f"\n{mark}{_markdown(note)}" for mark, note in zip(marks, table.notes, strict=False)]
    return "\n".join([*lines, *notes]) + "\n"


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
    lines = [
        rf"\begin{{tabular}}{{l{'r' * len(table.columns)}}}",
        r"\toprule",
        " & ".join(_latex(text) for text in [HEAD, *table.columns]) + r" \\",
        r"\midrule",
    ]
    for name, cells in table.rows:
        shown = (_shown(cell, r"\textbf{{{}}}", r"\underline{{{}}}", r"$^\dagger$") for cell in cells)
        lines.append(" & ".join([_latex(name), *(text.replace("–", "--") for text in shown)]) + r" \\")
    marks = [r"$^\dagger$ ", *[""] * len(table.notes)]
    notes = zip(marks, table.notes, strict=False)
    lines += [r"\bottomrule", r"\end{tabular}"]
    lines += [rf"\par\smallskip{{\footnotesize {mark}{_latex(note)}\par}}" for mark, note in notes]
    return "\n".join(lines) + "\n"


# The group of benchmarks that count in none of the registry's.
OWN = "Own"


def shared_means(comparison: Comparison) -> tuple[str, dict[str, float]]:
    """Return the mean NDCG@10 by retriever over the benchmarks that all have, empty where they share none, and their
    coverage: ``1 of 2``."""
    values = scores(comparison.rows)
    places, names = ({getattr(row, key): None for row in comparison.rows} for key in ("place", "retriever"))
    shared = [place for place in places if all((name, place) in values for name in names)]
    means = {name: fmean(values[name, place] for place in shared) for name in names if shared}
    return f"{len(shared)} of {len(places)}", means


def scores(rows: Sequence[Row]) -> dict[tuple[str, str], float]:
    """{(retriever, place): NDCG@10 in percent}; the mean of its parts (CQADupStack) beside them where all are there."""
    ndcg_by_label = {(row.retriever, row.place): row.ndcg for row in rows}
    ndcg_by_entry: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
    for row in rows:
        entry = _entry(row)
        if entry is not None:
            ndcg_by_entry[row.retriever, row.protocol][entry.name] = row.ndcg
    for (retriever, protocol), values in ndcg_by_entry.items():
        for whole in _wholes():
            parts = [values.get(part.name) for part in registry.parts(whole.name)]
            if None not in parts:
                label = benchmark_label(whole.name, whole.split, protocol)
                ndcg_by_label[retriever, label] = fmean(value for value in parts if value is not None)
    return ndcg_by_label


def groups(rows: Sequence[Row]) -> dict[str, tuple[str, ...]]:
    """{group: all of its members as ``Row.place`` names them} of the rows' groups; ``OWN`` last, without others.

    A group is there if it is the narrowest one of any row, and then counts all of its members: HotpotQA alone brings
    Multi-hop, and counts in BEIR too where another member of BEIR is.
    """
    registered: dict[str, tuple[str, ...]] = {}
    own: dict[str, tuple[str, ...]] = {}
    labels = {label for _, label in scores(rows)}
    for protocol in sorted({row.protocol for row in rows}, key=lambda name: (name != "published", name)):
        entries = {row.place: _entry(row) for row in rows if row.protocol == protocol}
        there = {entry: place for place, entry in entries.items() if entry is not None}
        for whole in _wholes():
            label = benchmark_label(whole.name, whole.split, protocol)
            there |= {whole: label} if label in labels else {}
        wanted = {_narrowest(entry) for entry in there}
        suffix = "" if protocol == "published" else f" ({protocol})"
        for title, members in _members():
            if title in wanted:
                names = (there.get(m) or benchmark_label(m.name, m.split, protocol) for m in members)
                registered[title + suffix] = tuple(names)
        if mine := tuple(place for place, entry in entries.items() if entry is None):
            own[OWN + suffix] = mine
    return registered | own


def _entry(row: Row) -> Entry | None:
    """The entry of the registry that a row is of: by its name there or in the paper, at the registry's split."""
    name = row.benchmark.lower()
    entry = registry.find(name) or next(
        (candidate for candidate in registry.entries() if candidate.paper == name), None
    )
    whole = entry is not None and bool(entry.schema) and row.split == entry.split and not row.version
    return entry if whole else None


def _wholes() -> list[Entry]:
    """The entries that are the mean of their parts."""
    return [entry for entry in registry.entries() if not entry.schema]


def _narrowest(entry: Entry) -> str:
    """The title of the smallest group that an entry counts in; a part counts in the benchmark that it is a part of."""
    whole = registry.find(entry.part_of) if entry.part_of else None
    return whole.title if whole is not None else entry.groups[-1]


def _members() -> list[tuple[str, list[Entry]]]:
    """(title, members) of every group, and of every mean of parts."""
    entries = {entry.name: entry for entry in registry.entries()}
    named = [(group.title, [entries[name] for name in group.members]) for group in registry.groups().values()]
    return named + [(whole.title, list(registry.parts(whole.name))) for whole in _wholes()]


def paper_table(comparison: Comparison) -> Table:
    """Retrievers by benchmarks with the means of the groups, the best bold, a dagger on significant differences.

    A group's mean says over how many of the group's benchmarks it runs: those that nobody was evaluated on count as
    missing.
    """
    retrievers = sorted({row.retriever: row.retriever_id != comparison.baseline_id for row in comparison.rows}.items(),
                        key=lambda item: (item[1], item[0]))  # fmt: skip
    return comparison_table(
        scores(comparison.rows),
        retrievers=[name for name, _ in retrievers],
        groups=groups(comparison.rows),
        daggers={(row.retriever, row.place) for row in comparison.rows if row.significant},
        notes=notes(comparison),
        marks={(row.retriever, row.place): row.marks for row in comparison.rows if row.marks},
    )


def notes(comparison: Comparison) -> list[str]:
    """What the daggers mean: the test, the correction, and over how many queries and comparisons."""
    tested = [row for row in comparison.rows if row.p_holm is not None]
    if not tested:
        return []
    queries = {row.place: row.n_queries for row in tested}
    sentences = [
        f"differs from {comparison.baseline} with p < {SIGNIFICANT:g}: paired t-test over the queries, "
        f"two-sided{_corrected(comparison)}. Queries: {', '.join(f'{label} {n:,}' for label, n in queries.items())}."
    ]
    averaged = [row for row in comparison.rows if row.seeds > 1]
    if averaged:
        spreads = "; ".join(f"{row.retriever} on {row.place} {row.score} ({row.seeds} seeds)" for row in averaged)
        sentences.append(
            "Runs that differ in the seed alone are averaged, query by query. "
            f"Mean ± standard deviation over seeds: {spreads}."
        )
    return [*sentences, *noise_notes(comparison)]


def test_line(comparison: Comparison) -> str:
    """The test in one line."""
    queries = max((row.n_queries for row in comparison.rows if row.p_holm is not None), default=0)
    seeds = " and the seeds" if any(row.noise == "seeds" for row in comparison.rows) else ""
    return f"Paired t-test over {queries:,} queries{seeds}{_corrected(comparison)}. Bars: uncorrected 95% intervals."


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


CSV_COLUMNS = ("benchmark", "split", "protocol", "retriever", "retriever_id", "version", "ndcg", "n_queries",
               "evaluation_id", "baseline_evaluation_id", "difference", "low", "high", "p_t", "p_random", "p_seeds",
               "p_holm", "effect", "wins", "losses", "ties", "seeds", "seed_sd", "noise", "marks")  # fmt: skip


def to_csv(comparison: Comparison) -> str:
    """The rows of a comparison as CSV with a header; numbers in full, empty where there is none."""
    rows = ([getattr(row, name) for name in CSV_COLUMNS] for row in comparison.rows)
    return csv_text(CSV_COLUMNS, rows)


def to_dict(comparison: Comparison) -> dict[str, Any]:
    """The comparison without the scores of single queries, for JSON."""
    same = ("baseline", "baseline_id", "settings", "n_tests")
    rows = [row.record() for row in comparison.rows]
    return {**{name: getattr(comparison, name) for name in same}, "rows": rows, "notes": notes(comparison)}


def write(comparison: Comparison, form: str) -> str:
    """The paper's table as ``markdown`` or ``latex``, or every row with its tests as ``csv``."""
    if form == "csv":
        return to_csv(comparison)
    table = paper_table(comparison)
    return to_latex(table) if form == "latex" else to_markdown(table)
