"""A comparison as text: the table of a paper, and every difference with its tests, in the forms that others read."""

from __future__ import annotations

import csv
import io
from dataclasses import asdict, fields
from typing import Any

from cdp.base.text import spreadsheet
from cdp.base.workspace import Workspace
from cdp.services.results import SIGNIFICANT, TESTS, ComparedRow, Comparison, evaluated
from cdp.services.results.formats import Table, comparison_table
from cdp.services.results.means import groups, scores


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
        groups={group.title: group.members for group in groups(comparison.rows)},
        daggers={(row.retriever, row.place) for row in comparison.rows if row.significant},
        measure="NDCG@10",
        notes=notes(comparison),
        marks={(row.retriever, row.place): row.marks for row in comparison.rows if row.marks},
    )


def notes(comparison: Comparison) -> list[str]:
    """What the daggers mean: the test, the correction, and over how many queries and comparisons."""
    tested = [row for row in comparison.rows if row.p_holm is not None]
    if not tested:
        return []
    queries = {row.place: row.n_queries for row in tested}
    counted = ", ".join(f"{label} {n:,}" for label, n in queries.items())
    many = f", corrected with Holm for {comparison.n_tests} comparisons" if comparison.n_tests > 1 else ""
    sentences = [
        f"differs from {comparison.baseline} with p < {SIGNIFICANT:g}: {TESTS[comparison.test]} over the queries, "
        f"two-sided{many}. Queries: {counted}."
    ]
    averaged = [row for row in comparison.rows if row.seeds > 1]
    if averaged:
        spreads = "; ".join(f"{row.retriever} on {row.place} {spread(row)}" for row in averaged)
        sentences.append(
            "Runs that differ in the seed alone are averaged, query by query. "
            f"Mean ± standard deviation over seeds: {spreads}."
        )
    return [*sentences, *noise_notes(comparison)]


def noise_notes(comparison: Comparison) -> list[str]:
    """What the tests know of training noise: variance over seeds where there is some, else that it is not known."""
    sentences = []
    if any(row.noise == "seeds" for row in comparison.rows):
        sentences.append(
            "Where both sides were trained with several seeds (or one was not trained here), p and interval are those "
            "of the two-level test: variance over the queries plus variance of the means over the seeds, "
            "Satterthwaite's degrees of freedom."
        )
    alone = [row.retriever for row in comparison.rows if row.noise == "unknown"]
    if alone:
        names = ", ".join(dict.fromkeys(alone))
        sentences.append(
            f"Training noise is not in the test of {names} against {comparison.baseline}: a training stands for its "
            "recipe with one seed (or seeds without any spread), and a test over queries takes the trained model as "
            "given. Ten runs of one recipe that differed by seed alone were called different in 22% of their pairs. "
            "Train with three seeds or more, on both sides, and average them (Test and seeds on the page, "
            "--over-seeds)."
        )
    return sentences


def remarks(workspace: Workspace, comparison: Comparison) -> list[str]:
    """What has to be said beside the scores, each once, with the results that it is of: ``scifact (BM25): …``."""
    evaluations = {row["id"]: row for row in comparison.evaluations}
    retrievers_of: dict[tuple[str, str], list[str]] = {}
    everyone: dict[str, set[str]] = {}
    for row in comparison.rows:
        everyone.setdefault(row.place, set()).add(row.retriever)
        for evaluation in (evaluations[name] for name in row.evaluation_id.split("+") if name in evaluations):
            for remark in evaluated.remarks(workspace, evaluation):
                names = retrievers_of.setdefault((row.place, remark), [])
                if row.retriever not in names:
                    names.append(row.retriever)
    of = {
        key: "" if set(names) == everyone[key[0]] else f" ({', '.join(names)})" for key, names in retrievers_of.items()
    }
    return [f"{label}{of[label, remark]}: {remark}" for label, remark in retrievers_of]


def spread(row: ComparedRow) -> str:
    """``41.20 ± 0.35 (3 seeds)``; the score alone for a single run."""
    if row.seed_sd is None:
        return f"{row.ndcg:.2f} ({row.seeds} seeds, no spread)" if row.seeds > 1 else f"{row.ndcg:.2f}"
    return f"{row.ndcg:.2f} ± {row.seed_sd:.2f} ({row.seeds} seeds)"


def to_csv(comparison: Comparison) -> str:
    """The rows of a comparison as CSV with a header; numbers in full, empty where there is none."""
    out = io.StringIO()
    writer = csv.DictWriter(out, [f.name for f in fields(ComparedRow)], lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: spreadsheet(value) for name, value in asdict(row).items()} for row in comparison.rows)
    return out.getvalue()


def to_dict(comparison: Comparison) -> dict[str, Any]:
    """The comparison without the scores of single queries, and the paper's table with its notes, for JSON."""
    values = {
        f.name: getattr(comparison, f.name) for f in fields(comparison) if f.name not in ("scores", "evaluations")
    }
    table = paper_table(comparison)
    return {**values, "rows": [asdict(row) for row in comparison.rows], "table": table.records(), "notes": table.notes}


def write(comparison: Comparison, form: str) -> str:
    """The paper's table as ``markdown``, ``latex`` or ``table-csv``, or every row with its tests as ``csv``."""
    return to_csv(comparison) if form == "csv" else paper_table(comparison).write(form.removeprefix("table-"))
