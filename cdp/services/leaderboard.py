"""What a score on the leaderboard has to be read with: leaked, stopped, in-domain, another budget, a subset …"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cdp import catalog
from cdp.base.errors import CdpError
from cdp.base.file_cache import ANSWERS
from cdp.base.statistics import interval_of_summary
from cdp.base.workspace import Workspace
from cdp.benchmarks import list_benchmarks
from cdp.catalog import STUDY
from cdp.retrievers import leakage
from cdp.retrievers.encode import HALF_PRECISION
from cdp.services import naming, runs
from cdp.services.projects import Members
from cdp.services.results import (
    MEASURE,
    benchmark_label,
    latest,
    list_evaluations,
    versions,
)
from cdp.services.runs import Trained


@dataclass(frozen=True)
class Badge:
    """What a score has to be read with. A ``fault`` keeps it from being called the best."""

    word: str
    meaning: str
    fault: bool = False


def of_row(row: Mapping[str, Any], subsets: Mapping[str, str], usual: int) -> tuple[Badge, ...]:
    """The badges of one row; ``usual`` is the number of pairs that most runs from its start had."""
    badges = []
    counts, trained = row["counts"], row["trained"]
    judged = int(row["n_queries"] or 0)
    remarks = leakage.remarks(counts, judged)
    for mark in row["marks"]:
        meaning = next((text for text in remarks if text.lower().startswith(mark[:6]) or mark[:7] in text), "")
        badges.append(Badge(mark, meaning, fault=True))
    if trained is not None and trained.incomplete:
        badges.append(Badge("incomplete set", "Its query set was not whole: only what was there was trained on."))
    if leakage.in_domain(counts):
        badges.append(Badge("in-domain", remarks[-1]))
    if trained is not None and usual and trained.pairs and abs(trained.pairs - usual) > 0.01 * usual:
        badges.append(
            Badge(
                "unequal budget",
                f"Trained on {trained.pairs:,} pairs; most runs from {row['start']} here were on {usual:,}. A "
                "difference between them is one of budget too.",
            )
        )
    if row["benchmark"] in subsets:
        badges.append(
            Badge("subset", f"A subset of {subsets[row['benchmark']]}: scores on it are higher than on the whole.")
        )
    if row["settings"].get("precision") == "fp16":
        badges.append(Badge("half precision", HALF_PRECISION))
    return tuple(badges)


SEPARATOR = " · "
# Parts of a made name: method, Q/Doc, pairs, seed.
ALWAYS_NAMED = 4

BM25, UNTRAINED, TRAINING, IN_STUDY, OTHER = "BM25", "untrained", "training", "study", "other"


@dataclass(frozen=True)
class BoardRow:
    """One run on one benchmark; NDCG@10 and differences in percent (points).

    ``difference`` is from the run's own ``start`` over the same queries, ``low`` and ``high`` bound it (95%, Student's
    t over the queries), ``p`` is two-sided; None where there is no start, or it has no score on these judgments.
    """

    id: str
    run: str
    name: str
    made_name: str
    kind: str
    ndcg: float
    benchmark: str
    place: str
    n_queries: int
    start: str
    start_ndcg: float | None
    difference: float | None
    low: float | None
    high: float | None
    p: float | None
    badges: tuple[Badge, ...]
    trained: Trained | None
    tags: tuple[str, ...]
    note: str
    archived: bool
    created: str
    study: str
    split: str
    protocol: str
    job: str
    measures: Mapping[str, float]
    n_documents: int | None
    seconds: float | None

    @property
    def fault(self) -> bool:
        return any(badge.fault for badge in self.badges)


@dataclass(frozen=True)
class Column:
    """One column of the leaderboard: ``value`` of a row is text or a number, or None where there is none."""

    key: str
    title: str
    help: str
    value: Callable[[BoardRow], str | float | int | None]
    shown: bool = False
    digits: int | None = None

    def text(self, row: BoardRow) -> str:
        """The value as a table of text shows it; empty where there is none."""
        value = self.value(row)
        if value is None:
            return ""
        if self.key == "difference":
            return f"{value:+.2f}"
        if self.key == "learning_rate":
            return f"{value:g}"
        return str(value) if self.digits is None else f"{value:,.{self.digits}f}"


def _setting(key: str) -> Callable[[BoardRow], Any]:
    return lambda row: None if row.trained is None else row.trained.settings.get(key)


def _trained(key: str) -> Callable[[BoardRow], Any]:
    return lambda row: None if row.trained is None else getattr(row.trained, key)


COLUMNS: tuple[Column, ...] = (
    Column("ndcg", "NDCG@10", "NDCG@10 in percent; 100 is perfect.", lambda r: r.ndcg, True, 2),
    Column("difference", "vs. start", "NDCG@10 points above the untrained retriever that this run started from.",
           lambda r: r.difference, True, 2),
    Column("name", "Run", "Method, Q/Doc, pairs and seed of its training; then what else tells it apart.",
           lambda r: r.name, True),
    Column("interval", "95% interval", "Of the difference from the start, over the queries (Student's t). Training "
           "noise is not in it: train with several seeds.", lambda r: _interval(r), True),
    Column("badges", "Badges", "What this score has to be read with.",
           lambda r: ", ".join(badge.word for badge in r.badges), True),
    Column("benchmark", "Benchmark", "What it was evaluated on.", lambda r: r.place, True),
    Column("start", "Start", "The retriever that it was trained from.", lambda r: r.start, True),
    Column("tags", "Tags", "Your words for it.", lambda r: ", ".join(r.tags), True),
    Column("note", "Note", "Your note.", lambda r: r.note),
    Column("kind", "From", "A training, a training of a study, an untrained retriever, or BM25.", lambda r: r.kind),
    Column("method", "Method", "How its queries were written.", _trained("method")),
    Column("per_doc", "Q/Doc", "Queries per document, as it was trained.",
           lambda r: float(r.trained.per_doc) if r.trained else None, digits=1),
    Column("pairs", "Pairs", "Queries that it was trained on.", _trained("pairs"), digits=0),
    Column("seed", "Seed", "Draws documents and orders pairs.", _setting("seed"), digits=0),
    Column("weighting", "Weighting", "How pairs count in the loss.", _setting("weighting")),
    Column("corpus", "Corpus", "The documents that it was trained on.", _trained("corpus")),
    Column("epochs", "Epochs", "Passes over the pairs.", _setting("epochs"), digits=0),
    Column("batch_size", "Batch size", "Pairs in a batch.", _setting("batch_size"), digits=0),
    Column("learning_rate", "Learning rate", "At its peak.", _setting("learning_rate"), digits=6),
    Column("steps", "Steps", "Steps that it was trained for.", _trained("steps"), digits=0),
    Column("p", "p", "Of the difference from the start: paired t-test over the queries, not corrected for several.",
           lambda r: r.p, digits=4),
    Column("n_queries", "Queries", "Judged queries that the score is a mean over.", lambda r: r.n_queries, digits=0),
    Column("created", "Evaluated", "When (UTC).", lambda r: r.created[:16].replace("T", " ")),
    Column("id", "ID", "Of the evaluation.", lambda r: r.id),
)  # fmt: skip


@dataclass(frozen=True)
class Board:
    """The rows that are shown, by benchmark the best first and those with a fault last, and how many are not:
    ``archived`` ones, and ``filtered`` ones that the filters leave out. ``every`` holds all of them."""

    rows: list[BoardRow]
    every: list[BoardRow] = field(repr=False)
    archived: int = 0
    filtered: int = 0
    evaluations: Sequence[dict[str, Any]] = field(default=(), repr=False)

    @property
    def places(self) -> dict[str, int]:
        """{benchmark: how many rows it has that are not archived}, the one with most first."""
        return dict(Counter(row.place for row in self.every if not row.archived).most_common())

    @property
    def tags(self) -> list[str]:
        return sorted({tag for row in self.every for tag in row.tags})


def board(
    workspace: Workspace,
    members: Members | None = None,
    *,
    evaluations: Sequence[dict[str, Any]] | None = None,
) -> Board:
    """The leaderboard of a project (``members``; of the workspace if None), without what is archived."""
    evaluations = list_evaluations(workspace) if evaluations is None else evaluations
    if members is not None:
        evaluations = members.keep("evaluation", evaluations)
    return filtered(Board([], _rows(workspace, evaluations), evaluations=evaluations))


def filtered(
    whole: Board,
    *,
    benchmarks: Collection[str] = (),
    text: str = "",
    tags: Collection[str] = (),
    archived: bool = False,
) -> Board:
    """The leaderboard cut down.

    ``benchmarks`` are places as rows name them; ``text`` stands in what a row shows; ``tags``: one of them;
    ``archived`` shows those too.
    """
    visible = [row for row in whole.every if archived or not row.archived]
    words = text.casefold().split()
    shown = [
        row
        for row in visible
        if (not benchmarks or row.place in benchmarks or row.benchmark in benchmarks)
        and (not tags or set(tags) & set(row.tags))
        and (not words or all(word in _text(row) for word in words))
    ]
    n_archived = sum(row.archived for row in whole.every)
    return Board(_sorted(shown), whole.every, n_archived, len(visible) - len(shown), whole.evaluations)


def left_out(board: Board) -> list[str]:
    """What is not shown, in sentences; empty where everything is."""
    hidden = board.archived if not any(row.archived for row in board.rows) else 0
    sentences = []
    if hidden:
        sentences.append(f"{hidden:,} archived {'row is' if hidden == 1 else 'rows are'} not shown.")
    if board.filtered:
        sentences.append(f"{board.filtered:,} {'row does' if board.filtered == 1 else 'rows do'} not fit the filters.")
    return sentences


def short_names(rows: Sequence[BoardRow]) -> tuple[dict[str, str], str]:
    """({run: its name without what the names of all trained runs have in common}, what that is).

    Method, Q/Doc, pairs and seed stay, also where they are the same; so do names that somebody gave.
    """
    made = {row.run: row.name.split(SEPARATOR) for row in rows if row.trained is not None and row.name == row.made_name}
    if len(made) < 2:
        return {row.run: row.name for row in rows}, ""
    tails = [parts[ALWAYS_NAMED:] for parts in made.values()]
    common = [part for part in tails[0] if all(part in tail for tail in tails)]
    short = {
        run: SEPARATOR.join([*parts[:ALWAYS_NAMED], *(part for part in parts[ALWAYS_NAMED:] if part not in common)])
        for run, parts in made.items()
    }
    return {row.run: short.get(row.run, row.name) for row in rows}, SEPARATOR.join(common)


def record(row: BoardRow) -> dict[str, Any]:
    """A row as JSON: every column by its key, and what a result was called before there were columns."""
    values = {column.key: column.value(row) for column in COLUMNS}
    return {
        **values, "retriever": row.name, "retriever_id": row.run, MEASURE: row.ndcg, "low": row.low, "high": row.high,
        "start_ndcg": row.start_ndcg, "marks": ", ".join(badge.word for badge in row.badges if badge.fault),
        "badges": [{"word": badge.word, "meaning": badge.meaning} for badge in row.badges], "tags": list(row.tags),
        "archived": row.archived, "study": row.study, "split": row.split, "protocol": row.protocol, "job_id": row.job,
        "benchmark": row.benchmark, "place": row.place, "measures": dict(row.measures),
        "n_documents": row.n_documents, "seconds": row.seconds, "created": row.created,
    }  # fmt: skip


def _text(row: BoardRow) -> str:
    values = (column.value(row) for column in COLUMNS)
    return " ".join(str(value) for value in values if value is not None).casefold()


def _interval(row: BoardRow) -> str | None:
    return None if row.low is None or row.high is None else f"{row.low:+.2f} to {row.high:+.2f}".replace("-", "−")


def _sorted(rows: list[BoardRow]) -> list[BoardRow]:
    n = Counter(row.place for row in rows)
    return sorted(rows, key=lambda row: (-n[row.place], row.place, row.fault, -row.ndcg, row.name))


def _rows(workspace: Workspace, evaluations: Sequence[dict[str, Any]]) -> list[BoardRow]:
    newest = _without_copies(latest(evaluations))
    labels = versions(newest)
    at = {(row["retriever_id"], *_place(row)): row for row in newest}
    starts = {row["id"]: at.get((row["start"], *_place(row))) if row["start"] else None for row in newest}
    pairs = tuple((row, start["id"]) for row, start in starts.items() if start is not None and start["id"] != row)
    differences = ANSWERS.get(workspace.catalog, ("paired", pairs), lambda: catalog.paired(workspace, pairs))
    subsets = _subsets(workspace)
    said = naming.list_annotations(workspace)
    usual = _usual_budget(newest)
    rows = []
    for row in newest:
        start = starts[row["id"]]
        n, mean, spread = differences.get(row["id"], (0, 0.0, 0.0))
        same = start is not None and n == row["n_queries"] == start["n_queries"]
        low, high, p = interval_of_summary(n, 100 * mean, 100 * spread) if same else (None, None, None)
        trained: Trained | None = row["trained"]
        about = row["annotation"]
        place = benchmark_label(row["benchmark"], row["split"], row["protocol"], labels[_place(row)])
        own = said.get(row["id"])
        rows.append(
            BoardRow(
                id=row["id"], run=row["retriever_id"], name=row["retriever_name"], made_name=row["made_name"],
                kind=_kind(row), ndcg=100 * (row[MEASURE] or 0.0), benchmark=row["benchmark"], place=place,
                n_queries=row["n_queries"] or 0, start=row["start"],
                start_ndcg=100 * start[MEASURE] if start is not None and same else None,
                difference=100 * mean if same else None, low=low, high=high, p=p,
                badges=of_row(row, subsets, usual.get((row["start"], *_place(row)), 0)), trained=trained,
                tags=about.tags, note=about.note, archived=about.archived or (own is not None and own.archived),
                created=row["created"] or "", study=trained.study if trained else "", split=row["split"],
                protocol=row["protocol"], job=row["job_id"], n_documents=row["n_documents"], seconds=row["seconds"],
                measures={name: 100 * value for name, value in row["measures"].items() if value is not None},
            )
        )  # fmt: skip
    return rows


def _place(row: Mapping[str, Any]) -> tuple[str, str, str, str]:
    return row["benchmark"], row["split"], row["protocol"], row["benchmark_hash"]


def _without_copies(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Of a training that several studies took over from each other the newest; its key is of all that determines it."""
    seen = set()
    kept = []
    for row in rows:
        key = (row["settings"]["key"], *_place(row)) if row["retriever_kind"] == STUDY else None
        if key is None or key not in seen:
            kept.append(row)
        seen.add(key)
    return kept


def _kind(row: Mapping[str, Any]) -> str:
    if runs.is_bm25(row["retriever_id"]):
        return BM25
    kinds = {"job": TRAINING, STUDY: IN_STUDY, "preset": UNTRAINED, catalog.STUDY_START: UNTRAINED}
    return kinds.get(row["retriever_kind"], OTHER)


def _subsets(workspace: Workspace) -> dict[str, str]:
    """{benchmark: what it was drawn from} of those that are subsets."""
    try:
        return {info.name: info.subset_of for info in list_benchmarks(workspace) if info.subset_of}
    except CdpError:
        return {}


def _usual_budget(rows: Sequence[Mapping[str, Any]]) -> dict[tuple[Any, ...], int]:
    """{(start, place): on how many pairs most runs from there were trained}; of two as frequent the larger."""
    counted: dict[tuple[Any, ...], Counter[int]] = defaultdict(Counter)
    for row in rows:
        if row["trained"] is not None and row["trained"].pairs and not row["annotation"].archived:
            counted[row["start"], *_place(row)][row["trained"].pairs] += 1
    return {key: max(pairs, key=lambda n: (pairs[n], n)) for key, pairs in counted.items()}
