"""Commands on results: evaluate, the leaderboard, comparisons, imports of other programs."""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated, Literal

from cdp.base.config import EvaluationConfig, ResultImportConfig
from cdp.base.text import interval, p_value, signed
from cdp.cli import display
from cdp.cli.answers import Run, note
from cdp.cli.declare import command
from cdp.results import board, differences, paper
from cdp.results.differences import Comparison
from cdp.retrievers import sending
from cdp.services import jobs


@command("evaluate", places=("retriever",), project=("benchmark",), job=True)
def evaluate(run: Run, config: EvaluationConfig) -> int:
    """Evaluate a retriever on a benchmark."""
    note(*(sent.sentence for sent in sending.for_evaluation(run.workspace, config)))
    return run.started(jobs.start(run.workspace, "evaluation", config))


@command("results list", project=())
def list_(
    run: Run,
    *,
    benchmark: Annotated[list[str] | None, "only this one; repeatable"] = None,
) -> int:
    """The leaderboard: every recipe on every benchmark, runs that differ in the seed alone averaged, the best first."""
    evaluations = board.list_evaluations(run.workspace, run.scope)
    every = board.list_rows(run.workspace, evaluations)
    rows = [row for row in every if not benchmark or {row.place, row.benchmark} & {*benchmark}]
    of_files = any(row.per_file is not None for row in rows)
    shown = [
        {
            "NDCG@10": row.score,
            **({"per file": row.per_file, "judged per": row.judged_per} if of_files else {}),
            "recipe": row.retriever,
            "seeds": row.seeds if row.trained else "",
            "benchmark": row.place,
            "read with": ", ".join(badge.word for badge in row.badges),
            "start": row.start,
            "id": row.retriever_id,
        }
        for row in rows
    ]
    empty = "No row fits." if every else "No result yet: evaluate RETRIEVER --benchmark NAME"
    return run.say([row.record() for row in rows], display.table(shown, empty=empty))


@command("results compare", project=())
def compare(
    run: Run,
    *,
    baseline: Annotated[str, "a retriever: preset, training job, or model"],
    retriever: Annotated[list[str] | None, "compare only this one; repeatable"] = None,
    benchmark: Annotated[list[str] | None, "only on this one; repeatable"] = None,
    format: Annotated[
        Literal["table", "csv", "json", "markdown", "latex"],
        "markdown, latex: a paper's table; csv, json: every difference in full",
    ] = "table",
) -> int:
    """A table of retrievers by benchmarks, and every difference from a baseline with its tests."""
    # Holm's correction counts the runs of the project alone.
    own = board.list_evaluations(run.workspace, run.scope)
    comparison = differences.compare(run.workspace, baseline, retriever, evaluations=own)
    comparison = comparison.on(benchmark) if benchmark else comparison
    run.json = run.json or format == "json"
    if not run.json and format != "table":
        return run.say(None, paper.write(comparison, format).removesuffix("\n"))
    remarks = board.remarks(comparison.rows)
    return run.say({**paper.to_dict(comparison), "remarks": remarks}, _comparison(comparison, remarks))


def _comparison(comparison: Comparison, remarks: Collection[str]) -> str:
    """Return the table of a paper, then each difference with its tests, and the remarks."""
    table = paper.paper_table(comparison)
    scores = [
        {"NDCG@10": name, **dict(zip(table.columns, (cell.shown() for cell in cells), strict=True))}
        for name, cells in table.rows
    ]
    marked = any(row.marks for row in comparison.rows)
    rows = [
        {
            "benchmark": row.place,
            "retriever": row.retriever,
            "NDCG@10": row.score,
            "difference": f"{signed(row.difference)}{'†' if row.significant else ''}",
            "95% interval": interval((row.low, row.high), sign=True),
            "p (t)": p_value(row.p_t),
            "p (seeds)": p_value(row.p_seeds),
            "p (Holm)": p_value(row.p_holm),
            "queries": row.units,
            **({"marks": row.marks} if marked else {}),
        }
        for row in comparison.rows
        if row.difference is not None
    ]
    parts = [display.table(scores, ["NDCG@10", *table.columns], "no results to compare")]
    if rows:
        parts.append(f"Differences from {comparison.baseline}:\n{display.table(rows)}")
    parts += [f"{'† ' if i == 0 else ''}{text}" for i, text in enumerate(table.notes)]
    parts += ["\n".join(remarks)] if remarks else []
    return "\n\n".join(parts)


@command("results import", places=("path",), job=True)
def import_(run: Run, config: ResultImportConfig) -> int:
    """Take in another program's TREC run as an evaluation."""
    return run.started(jobs.start(run.workspace, "import", config))
