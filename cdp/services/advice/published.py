"""The published evidence: tables as printed, statistics computed, own results beside."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from cdp import catalog, jobs, query_sets
from cdp.base.errors import CdpError
from cdp.base.text import spreadsheet
from cdp.base.workspace import Workspace
from cdp.benchmarks import registry
from cdp.benchmarks.subsets import SUBSET
from cdp.principle import kinds_of_datasets
from cdp.principle.tables import TABLES, Note, PublishedRow, PublishedTable, notes, read, short_name, table
from cdp.services import studies
from cdp.training.weightings import WEIGHTINGS

NOTES_ON = {
    "cw-english": (36,),
    "formats": (37, 38),
    "weighting": (16, 21),
    "generators": (17,),
    "miracl": (24, 39),
}
"""Parts of the dashboard that a note on the paper touches: what the paper leaves open or says in two ways."""

METHOD_OF = {
    "diverse": "Ours-diverse",
    "paraphrase": "Ours-paraphrase",
    "inpars_gbq": "InPars-GBQ",
    "sap": "SAP",
    "drama": "DRAMA",
    "dragon_s_paper": "DRAGON-S",
    "human": "Supervised",
}
"""Our name of a method → the paper's."""


@dataclass(frozen=True, slots=True)
class OwnScore:
    """An own evaluation under a published condition: NDCG@10 in percent, and what it was measured on."""

    ndcg: float
    benchmark: str
    split: str
    n_queries: int
    retriever: str
    evaluation_id: str


def list_tables() -> list[dict[str, Any]]:
    """Every published table and figure: name, title, kind, what it shows, how many numbers, how many notes."""
    summaries = []
    for name, info in TABLES.items():
        rows = table(name)
        summaries.append(
            {
                "name": short_name(name),
                "title": info.title,
                "kind": info.kind,
                "numbers": len(rows.rows),
                "notes": len(rows.related),
                "about": info.about,
            }
        )
    return summaries


def notes_on(feature: str) -> list[Note]:
    """The notes that a part of the dashboard is touched by (``NOTES_ON``)."""
    return [note for note in notes() if note.id in NOTES_ON[feature]]


def printed_correlations() -> dict[tuple[str, str, int], PublishedRow]:
    """The printed r and p of the 14 conditions, to show beside ours: {(retriever, comparison, Q/Doc): row}."""
    return {(row["retriever"], row["comparison"], row["queries_per_doc"]): row for row in read("correlation_printed")}


def to_csv(published_table: PublishedTable) -> str:
    """The rows of a table as CSV: its columns, the value, as printed, marks and the numbers of the notes."""
    columns = [*published_table.columns, "mark", "notes"]
    out = io.StringIO()
    writer = csv.DictWriter(out, columns, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    for row in published_table.rows:
        line = {**row, "notes": " ".join(map(str, row["notes"]))}
        writer.writerow({name: spreadsheet(value) for name, value in line.items()})
    return out.getvalue()


def own_scores(workspace: Workspace, rows: Sequence[PublishedRow]) -> dict[int, OwnScore]:
    """{position in ``rows``: the newest own result under the same condition, of a study or else of a training}.

    The same condition: retriever, method, Q/Doc, weighting and dataset. A benchmark counts as the dataset if its name
    begins with the dataset's (``hotpotqa_sample``); what it is stands beside the score, as it is not the same data.
    """
    own: dict[tuple[Any, ...], OwnScore] = {}
    for view in studies.list_studies(workspace):
        with suppress(CdpError):
            for key, score in _of_study(studies.report(workspace, view.id)):
                own.setdefault(key, score)
    for row in catalog.evaluations(workspace):
        condition = _condition(workspace, row)
        if condition is not None:
            score = OwnScore(
                ndcg=100 * row["ndcg@10"],
                benchmark=row["benchmark"],
                split=row["split"],
                n_queries=row["n_queries"],
                retriever=row["retriever_name"],
                evaluation_id=row["id"],
            )
            own.setdefault((*condition, row["benchmark"]), score)
    scores_by_row: dict[int, OwnScore] = {}
    if not own:
        return scores_by_row
    for i, row in enumerate(rows):
        if row.get("metric") != "NDCG@10" or not row.get("dataset"):
            continue
        wanted = (row["retriever"].lower(), row["method"], row["queries_per_doc"], row["weighting"])
        for key, score in own.items():
            if key[:-1] == wanted and is_dataset(key[-1], row["dataset"]):
                scores_by_row[i] = score
                break
    return scores_by_row


def _of_study(report: studies.StudyReport) -> Iterator[tuple[tuple[Any, ...], OwnScore]]:
    """The scores of a study's rows under the paper's names, means over the seeds."""
    kinds = {source.label: source.kind for source in report.sources}
    for row in report.rows:
        method = METHOD_OF.get(kinds.get(row.source, "")) if row.pairs else "Pretrained"
        per_doc = row.per_doc if row.pairs else None
        for benchmark in report.benchmarks:
            if method is not None and not row.held and benchmark.name in row.scores:
                key = (row.retriever.lower(), method, per_doc, _printed(row.weighting), benchmark.name)
                seeds = f" (mean of {row.n_seeds} seeds)" if row.n_seeds > 1 else ""
                yield (
                    key,
                    OwnScore(
                        ndcg=row.scores[benchmark.name],
                        benchmark=benchmark.name,
                        split=benchmark.split,
                        n_queries=benchmark.n_queries,
                        retriever=f"{row.name}{seeds}",
                        evaluation_id=report.id,
                    ),
                )


def is_dataset(benchmark: str, dataset: str) -> bool:
    """Whether a benchmark is a dataset of the paper.

    The registry says so of those it knows; of others, the name begins like the dataset's. One forum is not
    CQADupStack, and a subset drawn here is not the whole.
    """
    entry = registry.find(benchmark)
    if entry is not None or SUBSET.search(benchmark):
        return entry is not None and entry.paper == dataset
    ours, theirs = (re.sub(r"[^a-z0-9]+", "", name.lower()) for name in (benchmark, dataset))
    return ours.startswith(theirs) and (ours == theirs or not ours[len(theirs)].isdigit())


def dataset_of(benchmark: str) -> str | None:
    """The published dataset that a benchmark is, or None."""
    return next((name for name in kinds_of_datasets() if is_dataset(benchmark, name)), None)


def _condition(workspace: Workspace, row: dict[str, Any]) -> tuple[Any, ...] | None:
    """(retriever, the paper's method, Q/Doc, weighting) of an evaluation, if known."""
    if row["ndcg@10"] is None:
        return None
    if row["retriever_kind"] == "preset":
        return row["retriever_id"].lower(), "Pretrained", None, "none"
    if row["retriever_kind"] != "job":
        return None
    try:
        config = jobs.load_spec(workspace, row["retriever_id"]).config
        made_of = query_sets.load(workspace, config["query_set"])
    except (CdpError, KeyError):
        return None
    method = METHOD_OF.get("human" if made_of.kind == "human" else made_of.method)
    weighting = _printed(config.get("weighting", "none"))
    per_doc = config.get("per_doc") or made_of.per_doc
    return str(config.get("retriever", "")).lower(), method, per_doc, weighting


def _printed(weighting: str) -> str | None:
    """What the published tables call a weighting; None where they do not have it."""
    definition = WEIGHTINGS.get(weighting)
    return definition.paper or None if definition else None
