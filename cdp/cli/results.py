"""Commands on results: evaluations, the leaderboard, comparisons, and imports of other programs."""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated, Any, Literal

from cdp.base.config import EvaluationConfig, ResultImportConfig
from cdp.cli import display
from cdp.cli.answers import Run, note
from cdp.cli.declare import command
from cdp.cli.overview import DONE


@command("evaluate", places=("retriever",), project=("benchmark",), job=True)
def evaluate(run: Run, config: EvaluationConfig) -> int:
    """Evaluate a retriever on a benchmark, or on each of a group."""
    from cdp.services import benchmarks, evaluation

    if not benchmarks.is_several(run.workspace, config.benchmark):
        return run.started(evaluation.start(run.workspace, config))
    begun = benchmarks.evaluate(run.workspace, config)
    left_out = f"; missing: {', '.join(begun.missing)}" if begun.missing else ""
    note(
        f"{begun.name}: started {len(begun.jobs)}, done before {len(begun.reused)}, "
        f"in the workspace {begun.coverage}{left_out}"
    )
    code = run.followed(begun.jobs) if run.wait else DONE
    value = {
        "jobs": list(begun.jobs),
        "reused": list(begun.reused),
        "missing": list(begun.missing),
        "coverage": begun.coverage,
    }
    run.say(value, "\n".join(begun.jobs) or "nothing was left to evaluate")
    return code


# the leaderboard


@command("results list", project=())
def list_(
    run: Run,
    *,
    benchmark: Annotated[list[str] | None, "only this one; repeatable"] = None,
    tag: Annotated[list[str] | None, "only runs with this tag; repeatable"] = None,
    archived: Annotated[bool, "archived rows too"] = False,
) -> int:
    """The leaderboard: every run on every benchmark beside the retriever that it started from, the best first."""
    from cdp.services import leaderboard as boards

    whole = boards.board(run.workspace, run.scope)
    board = boards.filtered(whole, benchmarks=benchmark or [], tags=tag or [], archived=archived)
    shown = {"ndcg", "difference", "interval", "name", "badges", "benchmark", "start", "id"}
    shown |= {"tags"} if board.tags else set()
    rows = [{each.title: each.text(row) for each in boards.COLUMNS if each.key in shown} for row in board.rows]
    empty = "No row fits." if board.every else "No result yet: evaluate RETRIEVER --benchmark NAME"
    text = display.table(rows, empty=empty)
    return run.say([boards.record(row) for row in board.rows], "\n".join([text, *boards.left_out(board)]))


# comparing


@command("results compare", project=())
def compare(
    run: Run,
    *,
    baseline: Annotated[str, "a retriever: preset, training job, or model"],
    retriever: Annotated[list[str] | None, "compare only this one; repeatable"] = None,
    benchmark: Annotated[list[str] | None, "only on this one; repeatable"] = None,
    over_seeds: Annotated[bool, "average runs whose settings differ in the seed alone"] = False,
    format: Annotated[
        Literal["table", "csv", "json", "markdown", "latex"],
        "markdown, latex: a paper's table; csv: every difference in full; json: both",
    ] = "table",
) -> int:
    """A table of retrievers by benchmarks, and every difference from a baseline with its tests."""
    from cdp.services import result_tables, results

    # Holm's correction counts the runs of the project alone.
    own = run.scope.keep("evaluation", results.list_evaluations(run.workspace))
    comparison = results.compare(run.workspace, baseline, retriever, over_seeds=over_seeds, evaluations=own)
    comparison = result_tables.only(comparison, benchmark or [])
    run.json = run.json or format == "json"
    if not run.json and format != "table":
        return run.say(None, result_tables.write(comparison, format).removesuffix("\n"))
    remarks = result_tables.remarks(run.workspace, comparison)
    text = _comparison(comparison, result_tables.paper_table(comparison), remarks)
    return run.say({**result_tables.to_dict(comparison), "remarks": remarks}, text)


def _comparison(comparison: Any, paper: Any, remarks: Collection[str]) -> str:
    """Return the table of a paper, then each difference with its tests, and the remarks."""
    from cdp.services.result_tables import spread

    scores = [
        {"NDCG@10": name, **{column: _score(cell) for column, cell in zip(paper.columns, cells, strict=True)}}
        for name, cells in paper.rows
    ]
    marked = any(row.marks for row in comparison.rows)
    rows = [
        {
            "benchmark": row.place,
            "retriever": row.retriever,
            "NDCG@10": spread(row) if row.seeds > 1 else row.ndcg,
            "difference": f"{row.difference:+.2f}{'†' if row.significant else ''}",
            "95% interval": f"{row.low:+.2f} to {row.high:+.2f}",
            "p (t)": _p(row.p_t),
            "p (random.)": _p(row.p_random),
            "p (seeds)": _p(row.p_seeds),
            "p (Holm)": _p(row.p_holm),
            "effect": row.effect,
            "queries": row.n_queries,
            **({"marks": row.marks} if marked else {}),
        }
        for row in comparison.rows
        if row.difference is not None
    ]
    parts = [display.table(scores, ["NDCG@10", *paper.columns], "no results to compare")]
    if rows:
        parts.append(f"Differences from {comparison.baseline}:\n{display.table(rows)}")
    parts += [f"{'† ' if i == 0 else ''}{text}" for i, text in enumerate(paper.notes)]
    parts += ["\n".join(remarks)] if remarks else []
    if comparison.families and not any(row.seeds > 1 for row in comparison.rows):
        names = ", ".join(f"{name} ({n} seeds)" for name, n in comparison.families.items())
        parts.append(f"Differ in nothing but the seed from another run: {names}. Average them with --over-seeds.")
    return "\n\n".join(parts)


def _score(cell: Any) -> str:
    """Return ``52.2†``, a partial mean with its coverage, the best in asterisks and the second in underscores."""
    if cell.value is None:
        return "–"
    mark = {1: "*", 2: "_"}.get(cell.place, "")
    more = ", ".join(filter(None, (cell.coverage, cell.mark)))
    return f"{mark}{cell.value:.1f}{mark}{'†' if cell.dagger else ''}{f' ({more})' if more else ''}"


def _p(value: float | None) -> str:
    return "–" if value is None else "< 0.001" if value < 0.001 else f"{value:.3f}"


@command("results import", places=("path",), job=True)
def import_(run: Run, config: ResultImportConfig) -> int:
    """Take in another program's TREC run as an evaluation."""
    from cdp.services import evaluation

    return run.started(evaluation.start_import(run.workspace, config))
